/* plugins/sources/table/split.c: which rows are for training and which for validation. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/sources/table/table.h"

typedef struct split_rule {
  const table_column *by;  /* of split_column, group or time; NULL: none */
  int64_t fold, folds;     /* 0: no folds */
  double border;           /* of time: where validation begins */
  int32_t word;            /* of split_column: that of validation; TABLE_ABSENT: no row has it */
  bool of_series;          /* windows: the last part of each series is for validation */
  int64_t valid_from, end; /* of the series that was looked at last */
} split_rule;

static bool split_given(const char *option) { return option[0] != '\0'; }

static tn_status split_fold(const table *t, split_rule *r) {
  char rest;
  if (sscanf(t->options->fold, "%" SCNd64 "/%" SCNd64 "%c", &r->fold, &r->folds, &rest) == 2 &&
      r->fold >= 1 && r->folds >= 2 && r->fold <= r->folds)
    return TN_OK;
  return tn_fail(&t->env, TN_EINVAL, "fold",
                 "fold = %s, expected a part and the number of parts, from 2 on, such as 2/5",
                 t->options->fold);
}

/* One way to divide the rows, and the keys that belong to it. */
static tn_status split_check(const table *t) {
  const table_options *o = t->options;
  bool column = split_given(o->split_column), fold = split_given(o->fold), group = split_given(o->group),
       time = split_given(o->time), file = source_has_path(o->valid_file);
  int ways = (o->split > 0) + column + fold + file;
  if (ways > 1)
    return tn_fail(&t->env, TN_EINVAL, "split",
                   "split, split_column, fold and valid_file all divide the rows, expected one of them");
  if (group && !(o->split > 0 || fold))
    return tn_fail(&t->env, TN_EINVAL, "group", "group = %s has no effect without split or fold", o->group);
  if (time && !(o->split > 0) && !table_has_windows(t))
    return tn_fail(&t->env, TN_EINVAL, "time", "time = %s has no effect without split or window", o->time);
  if (time && group)
    return tn_fail(&t->env, TN_EINVAL, "group", "group and time both divide the rows, expected one of them");
  return TN_OK;
}

tn_status table_split_columns(table *t) {
  const table_options *o = t->options;
  TN_TRY(split_check(t));
  const struct {
    const char *name;
    int32_t form;
  } by[] = {{o->split_column, TABLE_WORDS}, {o->group, TABLE_WORDS}, {o->time, TABLE_TIMES}};
  for (int i = 0; i < 3; i++)
    if (split_given(by[i].name) && table_column_add(t, by[i].name, by[i].form) == NULL) return TN_ENOMEM;
  return TN_OK;
}

static int split_compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Rows of one time are in one part. */
static tn_status split_border(const table *t, split_rule *r) {
  double *v = tn_new(&t->env, (size_t)t->rows * sizeof(*v) + 1);
  if (v == NULL) return TN_ENOMEM;
  memcpy(v, r->by->numbers, (size_t)t->rows * sizeof(*v));
  qsort(v, (size_t)t->rows, sizeof(*v), split_compare);
  int64_t last = (int64_t)((double)t->rows * t->options->split + 0.5);
  r->border = v[last > 0 ? t->rows - last : t->rows - 1];
  tn_delete(&t->env, v);
  return TN_OK;
}

static tn_status split_check_present(const table *t, const split_rule *r) {
  for (int64_t i = 0; i < t->rows; i++)
    if (r->by->form == TABLE_TIMES ? isnan(r->by->numbers[i]) : r->by->words[i] < 0)
      return table_fail_cell(t, &t->env, r->by->name, i, "", 0,
                             "is missing, and decides the part of the row");
  return TN_OK;
}

static tn_status split_prepare(const table *t, split_rule *r) {
  const table_options *o = t->options;
  const char *by = split_given(o->split_column) ? o->split_column
                   : split_given(o->group)      ? o->group
                   : o->split > 0               ? o->time
                                                : "";
  *r = (split_rule){.by = NULL};
  for (int32_t i = 0; i < t->n_columns && split_given(by); i++)
    if (strcmp(t->columns[i]->name, by) == 0 &&
        t->columns[i]->form == (by == o->time ? TABLE_TIMES : TABLE_WORDS))
      r->by = t->columns[i];
  if (split_given(o->fold)) TN_TRY(split_fold(t, r));
  r->of_series = table_has_windows(t) && o->split > 0 && r->by == NULL;
  if (r->by == NULL) return TN_OK;
  TN_TRY(split_check_present(t, r));
  if (split_given(o->split_column))
    r->word = table_vocabulary_find(&r->by->vocabulary, o->split_value, strlen(o->split_value));
  return r->by->form == TABLE_TIMES ? split_border(t, r) : TN_OK;
}

/* Rows are asked for in their order. */
static bool split_is_last(const table *t, split_rule *r, int64_t row) {
  if (row >= r->end) {
    r->end = table_series_end(t, row);
    r->valid_from = r->end - (int64_t)((double)(r->end - row) * t->options->split + 0.5);
  }
  return row >= r->valid_from;
}

/* Whether a row is for validation. Rows of a group share the hash of its word. */
static bool split_is_valid(const table *t, split_rule *r, int64_t row) {
  const table_options *o = t->options;
  if (r->of_series) return split_is_last(t, r, row);
  if (split_given(o->split_column)) return r->by->words[row] == r->word;
  if (split_given(o->time) && r->by != NULL) return r->by->numbers[row] >= r->border;
  uint64_t key = (uint64_t)row;
  if (r->by != NULL) {
    const table_word *word = &r->by->vocabulary.words[r->by->words[row]];
    key = word->n;
    for (size_t i = 0; i < word->n; i++) key = tn_hash_mix(key, (uint8_t)word->text[i]);
  }
  uint64_t hash = tn_hash_mix((uint64_t)o->split_seed, key);
  if (r->folds > 0) return (int64_t)(hash % (uint64_t)r->folds) == r->fold - 1;
  return (double)(hash >> 11) * 0x1p-53 < o->split;
}

tn_status table_split(const table *t, int32_t split, int64_t **rows, int64_t *n) {
  split_rule rule;
  *n = 0;
  *rows = tn_new(&t->env, (size_t)t->rows * sizeof(**rows) + 1);
  if (*rows == NULL) return TN_ENOMEM;
  TN_TRY(split_prepare(t, &rule));
  for (int64_t i = 0; i < t->rows; i++) {
    bool divided = t->options->split > 0 || rule.folds > 0 || split_given(t->options->split_column);
    if ((divided && split_is_valid(t, &rule, i)) == (split == TN_SPLIT_VALID)) (*rows)[(*n)++] = i;
  }
  if (*n > 0) return TN_OK;
  return tn_fail(&t->env, TN_EINVAL, split_given(t->options->split_column) ? "split_value" : "split",
                 "%s: no row of %lld is for %s", t->parts[0].path, (long long)t->rows,
                 split == TN_SPLIT_VALID ? "validation" : "training");
}
