/* plugins/sources/table/kinds/tokens.c: a text as the ids of a tokenizer, which travels with the weights. */
#include <stdio.h>
#include <string.h>

#include "plugins/sources/table/kinds/kinds.h"

/* The file lies beside the table, unless its path is absolute. */
static tn_status token_ids_learn(table *t, table_field *f, const int64_t *rows, int64_t n) {
  (void)rows, (void)n;
  const char *name = f->choices.tokenizer;
  char path[PATH_MAX];
  if (name == NULL)
    return tn_fail(&t->env, TN_EINVAL, NULL,
                   "field '%s': expected tokenizer = FILE, a tokenizer.json, or tokenizer = bytes", f->name);
  bool as_it_is = name[0] == '/' || strcmp(name, "bytes") == 0;
  if (snprintf(path, sizeof(path), "%s%s", as_it_is ? "" : t->parts[0].folder, name) >= PATH_MAX)
    return tn_fail(&t->env, TN_EINVAL, NULL, "field '%s': %s is too long for a path", f->name, name);
  return tn_tokenizer_open(&t->env, path, &f->tokenizer);
}

static tn_status token_ids_describe(table *t, table_field *f, tn_field *described) {
  (void)t;
  *described = kind_field(f, (tn_type){TN_I32, 1, {f->choices.length > 0 ? f->choices.length : -1}});
  return TN_OK;
}

static tn_status token_ids_write(const table_field *f, tn_sample *s, int32_t field, const tn_token_ids *ids) {
  int64_t n = (int64_t)ids->n, length = f->choices.length > 0 ? f->choices.length : n;
  tn_type type = {TN_I32, 1, {length}};
  int32_t *to = tn_sample_field(s, field, &type);
  if (to == NULL) return TN_ENOMEM;
  for (int64_t i = 0; i < length; i++) to[i] = i < n ? ids->v[i] : (int32_t)f->choices.pad;
  return TN_OK;
}

static tn_status token_ids_read(const table *t, const table_field *f, tn_sample *s, int32_t field) {
  (void)t;
  table_word cell = f->column[0]->texts[s->index];
  tn_token_ids ids = {NULL, 0, 0};
  tn_status status = tn_tokenizer_encode(s, f->tokenizer, cell.text != NULL ? cell.text : "", cell.n,
                                         TN_TOKENIZE_TEMPLATE, &ids);
  if (status == TN_OK) status = token_ids_write(f, s, field, &ids);
  tn_delete(s, ids.v);
  return status;
}

const table_kind kind_tokens = {.name = "tokens",
                                .types = "i32[n]",
                                .doc = "a text as tokens; cut and padded to length",
                                .choices = CHOICE_TOKENIZER | CHOICE_LENGTH,
                                .form = TABLE_TEXTS,
                                .learn = token_ids_learn,
                                .describe = token_ids_describe,
                                .read = token_ids_read};
