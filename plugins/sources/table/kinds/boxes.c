/* plugins/sources/table/kinds/boxes.c: a list of boxes in a cell, four numbers each: 10 20 30 40; 5 5 9 9, or
 * lists of JSON. */
#include <string.h>

#include "plugins/sources/table/kinds/kinds.h"

static const char BOXES_BETWEEN[] = " \t,;|[]()";

/* The numbers of a cell; `to` NULL: they are only counted. A word that is no number is in *bad. */
static int64_t cell_boxes_parse(table_word cell, float *to, table_word *bad) {
  const char *at = cell.text, *end = at != NULL ? at + cell.n : at;
  int64_t n = 0;
  *bad = (table_word){NULL, 0};
  while (at < end) {
    double value;
    at += strspn(at, BOXES_BETWEEN); /* cells end with a NUL */
    table_word item = {at, strcspn(at, BOXES_BETWEEN)};
    if (item.n == 0) break;
    if (!table_to_number(item.text, item.n, &value)) {
      *bad = item;
      return n;
    }
    if (to != NULL) to[n] = (float)value;
    at += item.n;
    n++;
  }
  return n;
}

static tn_status cell_boxes_check(const table *t, const table_field *f, int64_t row) {
  table_word bad, cell = f->column[0]->texts[row];
  int64_t n = cell_boxes_parse(cell, NULL, &bad), most = f->choices.length;
  if (bad.text != NULL)
    return table_fail_cell(t, &t->env, f->names[0], row, bad.text, bad.n, "is no number of a box");
  if (n % 4 != 0)
    return table_fail_cell(t, &t->env, f->names[0], row, cell.text, cell.n,
                           "has %lld numbers, expected four for each box", (long long)n);
  if (most == 0 || n / 4 <= most) return TN_OK;
  return table_fail_cell(t, &t->env, f->names[0], row, cell.text, cell.n,
                         "has %lld boxes, expected at most %lld, the length of field '%s'",
                         (long long)(n / 4), (long long)most, f->name);
}

static tn_status cell_boxes_describe(table *t, table_field *f, tn_field *described) {
  for (int64_t i = 0; i < t->rows; i++) TN_TRY(cell_boxes_check(t, f, i));
  *described = kind_field(f, (tn_type){TN_F32, 2, {f->choices.length > 0 ? f->choices.length : -1, 4}});
  return TN_OK;
}

static tn_status cell_boxes_read(const table *t, const table_field *f, tn_sample *s, int32_t field) {
  (void)t;
  table_word bad, cell = f->column[0]->texts[s->index];
  int64_t n = cell_boxes_parse(cell, NULL, &bad), length = f->choices.length > 0 ? f->choices.length : n / 4;
  tn_type type = {TN_F32, 2, {length, 4}};
  float *to = tn_sample_field(s, field, &type);
  if (to == NULL) return TN_ENOMEM;
  cell_boxes_parse(cell, to, &bad);
  for (int64_t i = n; i < 4 * length; i++) to[i] = (float)f->choices.pad;
  return TN_OK;
}

const table_kind kind_boxes = {.name = "boxes",
                               .types = "f32[n, 4]",
                               .doc = "several boxes in a cell, four numbers each; padded to length",
                               .choices = CHOICE_LENGTH,
                               .form = TABLE_TEXTS,
                               .describe = cell_boxes_describe,
                               .read = cell_boxes_read};
