/* plugins/sources/joined/joined.c: the parts of a source that joins others. */
#include "plugins/sources/field_list.h"
#include "plugins/sources/joined/joined.h"

#include <stdlib.h>
#include <string.h>

/* ---- the list of names ---- */

static const char sources_form[] = "names of sections: sources = a, b for [source a] and [source b]";

static int32_t joined_count_names(const char *text) {
  field_list list = field_list_of(NULL, "sources", sources_form, text);
  field_entry entry;
  int32_t n = 0;
  while (field_list_next(&list, &entry)) n++;
  return n;
}

static tn_status joined_take_names(joined *j, const char *text) {
  field_list list = field_list_of(&j->env, "sources", sources_form, text);
  field_entry entry;
  for (int32_t i = 0; field_list_next(&list, &entry); i++) {
    char *name = j->parts[i].name;
    field_word word = entry.whole;
    if (word.n >= JOINED_NAME)
      return tn_fail(&j->env, TN_EINVAL, "sources",
                     "sources: the name %.*s has %zu characters, expected at most %d", (int)word.n, word.text,
                     word.n, JOINED_NAME - 1);
    memcpy(name, word.text, word.n);
    for (int32_t k = 0; k < i; k++)
      if (strcmp(j->parts[k].name, name) == 0)
        return tn_fail(&j->env, TN_EINVAL, "sources",
                       "sources: '%s' stands there twice; leave one of them out", name);
  }
  return TN_OK;
}

/* ---- opening and closing ---- */

tn_status joined_new(tn_env *env, const joined_options *o, joined **out) {
  joined *j = tn_new(env, sizeof *j);
  *out = j;
  if (j == NULL) return TN_ENOMEM;
  j->env = *env;
  j->n_parts = joined_count_names(o->sources);
  if (j->n_parts == 0)
    return tn_fail(env, TN_EINVAL, "sources", "sources: there is no name, expected %s", sources_form);
  j->parts = tn_new(env, (size_t)j->n_parts * sizeof *j->parts);
  if (j->parts == NULL) {
    j->n_parts = 0;
    return TN_ENOMEM;
  }
  return joined_take_names(j, o->sources);
}

void joined_close(tn_env *env, void *source) {
  joined *j = source;
  if (j == NULL) return;
  j->env = *env;
  for (int32_t i = 0; i < j->n_parts; i++) {
    joined_part *p = &j->parts[i];
    if (p->self != NULL) p->source->close(env, p->self);
    for (int32_t f = 0; f < JOINED_FIELDS; f++) tn_delete(env, p->classes[f]);
  }
  for (int32_t f = 0; f < JOINED_FIELDS; f++) {
    for (int32_t c = 0; c < j->n_class_names[f]; c++) tn_delete(env, (void *)(uintptr_t)j->class_names[f][c]);
    tn_delete(env, (void *)j->class_names[f]);
  }
  tn_delete(env, j->parts);
  free(j->learnt);
  tn_delete(env, j);
}

tn_status joined_take(tn_status status, joined *j, void **source) {
  if (status == TN_OK)
    *source = j;
  else if (j != NULL)
    joined_close(&j->env, j);
  return status;
}

/* Whether the part gives its samples weights. */
static int32_t joined_asks_weights(joined *j, const joined_part *p) {
  double weight;
  return p->description.count > 0 && p->source->weight_of != NULL &&
         p->source->weight_of(&j->env, p->self, 0, &weight) == TN_OK;
}

static tn_status joined_describe_part(joined *j, joined_part *p) {
  p->description = (tn_description){.struct_size = sizeof p->description};
  TN_TRY(p->source->describe(&j->env, p->self, &p->description));
  const tn_description *d = &p->description;
  if (p->source->next != NULL)
    return tn_fail(&j->env, TN_EINVAL, "sources",
                   "sources: '%s' is read in order, as it is a stream, and cannot be joined with others",
                   p->name);
  p->is_weighted = joined_asks_weights(j, p);
  if (d->n_fields <= JOINED_FIELDS) return TN_OK;
  return tn_fail(&j->env, TN_EINVAL, "sources", "sources: '%s' has %d fields, expected at most %d", p->name,
                 (int)d->n_fields, JOINED_FIELDS);
}

static tn_status joined_open_as(joined *j, int32_t part, tn_part_use *use) {
  joined_part *p = &j->parts[part];
  tn_part opened = {.struct_size = sizeof opened};
  char *learnt;
  TN_TRY(joined_learnt_of(j, p->name, &learnt));
  use->struct_size = sizeof *use;
  use->learnt = learnt;
  tn_status status = tn_part_open(&j->env, p->name, use, &opened);
  free(learnt);
  if (status != TN_OK) return status;
  p->source = opened.source;
  p->self = opened.self;
  return joined_describe_part(j, p);
}

tn_status joined_open_part(joined *j, int32_t part, int32_t split, uint64_t seed) {
  return joined_open_as(j, part, &(tn_part_use){.split = split, .seed = seed});
}

tn_status joined_open_files(joined *j, int32_t part, const char *const *paths, int32_t n) {
  tn_part_use use = {.split = TN_SPLIT_VALID, .paths = paths, .n_paths = n};
  TN_TRY(joined_open_as(j, part, &use));
  if (part > 0) j->parts[0] = j->parts[part];
  j->n_parts = 1;
  j->reads_files = 1;
  return TN_OK;
}
