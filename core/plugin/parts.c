/* core/plugin/parts.c: opens the sources that another source joins. */
#include "core/plugin/parts.h"

#include "core/base/text/text.h"

/* Sections that name each other in a circle would go on for ever. */
enum { PARTS_DEEPEST = 8 };

static const tn_part_setting *parts_find(const tn_part_settings *parts, const char *name) {
  for (int32_t i = 0; parts != NULL && i < parts->n; i++)
    if (tn_text_equal(parts->v[i].name, name)) return &parts->v[i];
  return NULL;
}

static tn_status parts_fail_unknown(tn_env *env, const char *name) {
  const tn_part_settings *parts = env->record->parts;
  tn_text names = tn_text_new(env);
  for (int32_t i = 0; parts != NULL && i < parts->n; i++)
    tn_text_addf(&names, "%s[source %s]", i > 0 ? ", " : "", parts->v[i].name);
  tn_status status = tn_failf(
      env, TN_EINVAL, "there is no section [source %s], expected one with the keys of that source%s%s", name,
      names.v != NULL ? "; there is " : "", names.v != NULL ? names.v : "");
  tn_text_free(&names);
  return status;
}

static tn_status parts_call_open(tn_env *env, const tn_part_setting *p, const tn_part_use *use, void **self) {
  if (use->paths == NULL) return p->source->open(env, p->options, use->split, use->seed, self);
  if (p->source->open_files != NULL)
    return p->source->open_files(env, p->options, use->paths, use->n_paths, self);
  return tn_failf(env, TN_EUNSUPPORTED, "it reads no files that a user names (%s); give a .npy file",
                  use->paths[0]);
}

static tn_status parts_check(tn_env *env, const tn_part_setting *p) {
  const tn_source *s = p->source;
  if (env->record->parts_open >= PARTS_DEEPEST)
    return tn_failf(env, TN_EINVAL,
                    "%d sources join each other, expected at most so many; does one join itself?",
                    PARTS_DEEPEST);
  if (s->open == NULL || s->close == NULL || s->describe == NULL || (s->read == NULL && s->next == NULL))
    return tn_failf(env, TN_EABI, "the source lacks one of open, close, describe, and read or next");
  return TN_OK;
}

tn_status tn_host_part_open(tn_env *env, const char *name, const tn_part_use *use, tn_part *part) {
  tn_error_record *record = env->record;
  const tn_part_setting *p = parts_find(record->parts, name);
  if (p == NULL) return parts_fail_unknown(env, name);
  const char *learnt = record->learnt;
  tn_status status = parts_check(env, p);
  record->learnt = use->learnt;
  record->parts_open++;
  if (status == TN_OK) status = parts_call_open(env, p, use, &part->self);
  record->parts_open--;
  record->learnt = learnt;
  part->source = p->source;
  tn_error_name_option(env);
  record->option[0] = '\0'; /* it is an option of the part, not of the source that joins it */
  return tn_wrap(env, status, "%s: [source %s]", p->where, p->name);
}
