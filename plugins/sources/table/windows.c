/* plugins/sources/table/windows.c: samples of several rows. Rows are put in the order of their series and
 * times once, so that a window is one place in memory, and a sample is the number of its first row. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/sources/table/table.h"

static bool windows_given(const char *option) { return option[0] != '\0'; }

static tn_status windows_check(const table *t) {
  const table_options *o = t->options;
  if (!table_has_windows(t) && (windows_given(o->series) || o->horizon != 1 || o->stride != 1))
    return tn_fail(&t->env, TN_EINVAL, "window", "series, horizon and stride have no effect without window");
  for (int32_t i = 0; i < t->n_fields && table_has_windows(t); i++)
    if (t->fields[i].kind->write == NULL)
      return tn_fail(&t->env, TN_EINVAL, "window",
                     "field '%s': %s has no windows; number, numbers, time, category and categories have",
                     t->fields[i].name, t->fields[i].kind->name);
  if (table_has_windows(t) && windows_given(o->fold) && !windows_given(o->group))
    return tn_fail(&t->env, TN_EINVAL, "fold",
                   "fold divides single rows, which cuts windows; set group to the column of the series");
  return TN_OK;
}

/* A column that orders the rows is kept beside those of fields. */
static tn_status windows_add(table *t, const char *name, int32_t form) {
  if (!windows_given(name)) return TN_OK;
  table_column *c = table_column_add(t, name, form);
  if (c != NULL) c->users++;
  return c != NULL ? TN_OK : TN_ENOMEM;
}

tn_status table_windows_columns(table *t) {
  TN_TRY(windows_check(t));
  if (!table_has_windows(t)) return TN_OK;
  TN_TRY(windows_add(t, t->options->series, TABLE_WORDS));
  return windows_add(t, t->options->time, TABLE_TIMES);
}

static const table_column *windows_column(const table *t, const char *name, int32_t form) {
  for (int32_t i = 0; i < t->n_columns && windows_given(name); i++)
    if (t->columns[i]->form == form && strcmp(t->columns[i]->name, name) == 0) return t->columns[i];
  return NULL;
}

/* ---- the order of rows ---- */

typedef struct window_row {
  int64_t row;
  double time;
  int32_t part, series;
} window_row;

static int windows_compare(const void *a, const void *b) {
  const window_row *x = a, *y = b;
  if (x->part != y->part) return x->part < y->part ? -1 : 1;
  if (x->series != y->series) return x->series < y->series ? -1 : 1;
  if (x->time != y->time) return x->time < y->time ? -1 : 1;
  return (x->row > y->row) - (x->row < y->row);
}

static tn_status windows_fail_missing(const table *t, const char *column, int64_t row) {
  return table_fail_cell(t, &t->env, column, row, "", 0, "is missing, and orders the rows of windows");
}

static tn_status windows_look(const table *t, window_row *list) {
  const table_column *series = windows_column(t, t->options->series, TABLE_WORDS),
                     *time = windows_column(t, t->options->time, TABLE_TIMES);
  int32_t part = 0;
  for (int64_t i = 0; i < t->rows; i++) {
    while (part + 1 < t->n_parts && t->parts[part + 1].first <= i) part++;
    list[i] = (window_row){.row = i, .part = part};
    if (series != NULL && (list[i].series = series->words[i]) < 0)
      return windows_fail_missing(t, series->name, i);
    if (time != NULL && isnan(list[i].time = time->numbers[i])) return windows_fail_missing(t, time->name, i);
  }
  return TN_OK;
}

tn_status table_windows_order(table *t) {
  window_row *list = tn_new(&t->env, (size_t)t->rows * sizeof(*list) + 1);
  int64_t *order = tn_new(&t->env, (size_t)t->rows * sizeof(*order) + 1);
  tn_status status = list != NULL && order != NULL ? windows_look(t, list) : TN_ENOMEM;
  if (status == TN_OK) {
    qsort(list, (size_t)t->rows, sizeof(*list), windows_compare);
    for (int64_t i = 0; i < t->rows; i++) order[i] = list[i].row;
    status = table_rows_order(t, order);
  }
  tn_delete(&t->env, list);
  tn_delete(&t->env, order);
  return status;
}

int64_t table_series_end(const table *t, int64_t row) {
  const table_column *series = windows_column(t, t->options->series, TABLE_WORDS);
  const table_part *part = table_part_of(t, row);
  int64_t limit = part + 1 < t->parts + t->n_parts ? part[1].first : t->rows, end = row + 1;
  while (end < limit && (series == NULL || series->words[end] == series->words[row])) end++;
  return end;
}

/* ---- the windows ---- */

/* The rows of a window and its targets. */
static int64_t windows_rows(const table *t) {
  bool targets = false;
  for (int32_t i = 0; i < t->n_fields; i++) targets |= t->fields[i].role == TN_FIELD_TARGET;
  return t->options->window + (targets ? t->options->horizon : 0);
}

/* Adds the windows of rows that follow one another, of which the last window has the last row. */
static void windows_of_run(table *t, int64_t first, int64_t end, int64_t wanted) {
  int64_t stride = t->options->stride,
          at = end - first < wanted ? end : first + (end - first - wanted) % stride;
  for (; at + wanted <= end; at += stride) t->windows[t->samples++] = at;
}

tn_status table_windows_find(table *t, const int64_t *rows, int64_t n) {
  int64_t wanted = windows_rows(t), longest = 0;
  t->windows = tn_new(&t->env, (size_t)n * sizeof(*t->windows) + 1);
  if (t->windows == NULL) return TN_ENOMEM;
  for (int64_t i = 0, next; i < n; i = next) {
    int64_t first = rows != NULL ? rows[i] : i, limit = table_series_end(t, first);
    for (next = i + 1; next < n && (rows != NULL ? rows[next] : next) == first + next - i; next++)
      if (first + next - i >= limit) break;
    if (next - i > longest) longest = next - i;
    windows_of_run(t, first, first + next - i, wanted);
  }
  if (t->samples > 0) return TN_OK;
  return tn_fail(
      &t->env, TN_EINVAL, "window",
      "%s: no series has the %lld rows of a window and its horizon; the longest of this part has %lld",
      t->parts[0].path, (long long)wanted, (long long)longest);
}

/* Scale and shift of a target are those of each of its rows. */
static const double *windows_repeat(table *t, const double *v, int64_t n, int64_t times) {
  double *all = v != NULL ? table_memory_take(&t->memory, (size_t)(n * times) * sizeof(*all)) : NULL;
  for (int64_t k = 0; all != NULL && k < n * times; k++) all[k] = v[k % n];
  return all;
}

tn_status table_windows_describe(table *t, tn_field *described) {
  bool target = described->role == TN_FIELD_TARGET;
  int64_t times = target ? t->options->horizon : t->options->window, n = tn_type_count(&described->type);
  tn_type *type = &described->type;
  if (target && times == 1) return TN_OK;
  if (described->scale != NULL) {
    described->scale = windows_repeat(t, described->scale, n, times);
    described->shift = windows_repeat(t, described->shift, n, times);
    if (described->scale == NULL || described->shift == NULL) return TN_ENOMEM;
  }
  memmove(&type->dims[1], &type->dims[0], (size_t)type->rank * sizeof(*type->dims));
  type->dims[0] = times;
  type->rank++;
  return TN_OK;
}
