/* core/data/open_source.c: see open_source.h. */
#include "core/data/open_source.h"

static tn_status open_source_call(tn_open_source *s, const tn_loader_options *o) {
  const tn_source *source = o->source;
  if (o->n_files == 0) return source->open(&s->env, o->source_options, o->split, o->seed, &s->self);
  if (source->open_files != NULL)
    return source->open_files(&s->env, o->source_options, o->files, o->n_files, &s->self);
  return tn_failf(&s->env, TN_EUNSUPPORTED, "it reads no files that a user names (%s); give a .npy file",
                  o->files[0]);
}

/* Puts the samples of options.fold in the place of all. */
static tn_status open_source_take_fold(tn_open_source *s, const tn_data_fold *fold) {
  if (fold->parts == 0 || s->n_files > 0) return TN_OK;
  TN_TRY(tn_fold_source(&s->env, s->source, s->self, fold, &s->description, &s->folded));
  s->source = &s->folded.source;
  s->self = &s->folded;
  return TN_OK;
}

static tn_status open_source_fill(tn_open_source *s, const tn_loader_options *o) {
  s->record.learnt = o->learnt;
  s->record.shards = o->shards;
  tn_status status = open_source_call(s, o);
  s->record.learnt = NULL; /* the text is the caller's */
  TN_TRY(status);
  s->opened = true;
  s->description.struct_size = sizeof s->description;
  TN_TRY(s->source->describe(&s->env, s->self, &s->description));
  return open_source_take_fold(s, &o->fold);
}

static tn_status open_source_new(const tn_env *env, const tn_loader_options *o, tn_open_source **out) {
  tn_open_source *s = tn_alloc(env, sizeof *s);
  if (s == NULL) return TN_ENOMEM;
  *s = (tn_open_source){.source = o->source,
                        .whole = o->source,
                        .options = o->source_options,
                        .split = o->split,
                        .n_files = o->n_files,
                        .seed = o->seed,
                        .fold = o->fold,
                        .users = 1};
  tn_error_record_init(&s->env, &s->record, env);
  tn_status status = open_source_fill(s, o);
  if (status == TN_OK) {
    *out = s;
    return TN_OK;
  }
  tn_error_move(env, &s->env);
  tn_open_source_drop(s);
  return status;
}

static bool open_source_is_of(const tn_open_source *s, const tn_loader_options *o) {
  return s->whole == o->source && s->whole->next == NULL && s->options == o->source_options &&
         s->split == o->split && s->seed == o->seed && s->n_files == 0 && o->n_files == 0 &&
         s->fold.part == o->fold.part && s->fold.parts == o->fold.parts &&
         s->fold.held_out == o->fold.held_out;
}

tn_status tn_open_source_get(const tn_env *env, const tn_loader_options *o, tn_open_source *other,
                             tn_open_source **source) {
  *source = NULL;
  if (other == NULL || !open_source_is_of(other, o)) return open_source_new(env, o, source);
  other->users++;
  *source = other;
  return TN_OK;
}

void tn_open_source_drop(tn_open_source *s) {
  if (s == NULL || --s->users > 0) return;
  if (s->opened) s->source->close(&s->env, s->self);
  tn_release(&s->env, s);
}
