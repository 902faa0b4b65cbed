/* plugins/sources/table/kinds/sequence.c: several numbers in a cell, and a text as its bytes. */
#include <string.h>

#include "plugins/sources/table/kinds/kinds.h"

/* ---- items ---- */

table_items table_items_of(const table_field *f, table_word cell) {
  table_items items = {cell.text, cell.text != NULL ? cell.text + cell.n : NULL, '\0', false};
  if (f->choices.separator != NULL) items.separator = *f->choices.separator;
  items.json = cell.n >= 2 && cell.text[0] == '[' && cell.text[cell.n - 1] == ']';
  if (items.json) {
    items.at++;
    items.end--;
  }
  return items;
}

static bool items_separates(const table_items *items, char c) {
  if (items->json) return c == ',';
  if (items->separator != '\0') return c == items->separator;
  return c == ' ' || c == ',' || c == ';' || c == '|' || c == '\t';
}

static bool items_is_blank(char c) { return c == ' ' || c == '\t'; }

bool table_items_next(table_items *items, table_word *item) {
  while (items->at < items->end && (items_separates(items, *items->at) || items_is_blank(*items->at)))
    items->at++;
  const char *first = items->at;
  while (items->at < items->end && !items_separates(items, *items->at)) items->at++;
  const char *last = items->at;
  while (last > first && items_is_blank(last[-1])) last--;
  if (items->json && last - first >= 2 && *first == '"' && last[-1] == '"') {
    first++;
    last--;
  }
  *item = (table_word){first, (size_t)(last - first)};
  return last > first;
}

/* ---- numbers ---- */

/* The numbers of a cell; `to` NULL: they are only counted. A word that is no number is in *bad. */
static int64_t sequence_parse(const table_field *f, table_word cell, float *to, table_word *bad) {
  table_items items = table_items_of(f, cell);
  table_word item;
  int64_t n = 0;
  bad->text = NULL;
  while (table_items_next(&items, &item)) {
    double value;
    if (!table_to_number(item.text, item.n, &value)) {
      *bad = item;
      return n;
    }
    if (to != NULL) to[n] = (float)value;
    n++;
  }
  return n;
}

static tn_status sequence_describe(table *t, table_field *f, tn_field *described) {
  int64_t length = f->choices.length;
  for (int64_t i = 0; i < t->rows; i++) {
    table_word bad, cell = f->column[0]->texts[i];
    int64_t n = sequence_parse(f, cell, NULL, &bad);
    if (bad.text != NULL) return table_fail_cell(t, &t->env, f->names[0], i, bad.text, bad.n, "is no number");
    if (length > 0 && n > length)
      return table_fail_cell(t, &t->env, f->names[0], i, cell.text, cell.n,
                             "has %lld numbers, expected at most %lld, the length of field '%s'",
                             (long long)n, (long long)length, f->name);
  }
  *described = kind_field(f, (tn_type){TN_F32, 1, {length > 0 ? length : -1}});
  return TN_OK;
}

static tn_status sequence_read(const table *t, const table_field *f, tn_sample *s, int32_t field) {
  (void)t;
  table_word bad, cell = f->column[0]->texts[s->index];
  int64_t n = sequence_parse(f, cell, NULL, &bad), length = f->choices.length > 0 ? f->choices.length : n;
  tn_type type = {TN_F32, 1, {length}};
  float *to = tn_sample_field(s, field, &type);
  if (to == NULL) return TN_ENOMEM;
  sequence_parse(f, cell, to, &bad);
  for (int64_t i = n; i < length; i++) to[i] = (float)f->choices.pad;
  return TN_OK;
}

const table_kind kind_sequence = {.name = "sequence",
                                  .types = "f32[n]",
                                  .doc = "several numbers in a cell; shorter ones are padded to length",
                                  .choices = CHOICE_SEPARATOR | CHOICE_LENGTH,
                                  .form = TABLE_TEXTS,
                                  .describe = sequence_describe,
                                  .read = sequence_read};

/* ---- bytes ---- */

static tn_status bytes_describe(table *t, table_field *f, tn_field *described) {
  (void)t;
  *described = kind_field(f, (tn_type){TN_I32, 1, {f->choices.length > 0 ? f->choices.length : -1}});
  return TN_OK;
}

static tn_status bytes_read(const table *t, const table_field *f, tn_sample *s, int32_t field) {
  (void)t;
  table_word cell = f->column[0]->texts[s->index];
  int64_t length = f->choices.length > 0 ? f->choices.length : (int64_t)cell.n;
  tn_type type = {TN_I32, 1, {length}};
  int32_t *to = tn_sample_field(s, field, &type);
  if (to == NULL) return TN_ENOMEM;
  for (int64_t i = 0; i < length; i++)
    to[i] = i < (int64_t)cell.n ? (uint8_t)cell.text[i] : (int32_t)f->choices.pad;
  return TN_OK;
}

const table_kind kind_text = {.name = "text",
                              .types = "i32[n]",
                              .doc = "a text as its bytes; cut and padded to length",
                              .choices = CHOICE_LENGTH,
                              .form = TABLE_TEXTS,
                              .describe = bytes_describe,
                              .read = bytes_read};
