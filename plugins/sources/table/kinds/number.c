/* plugins/sources/table/kinds/number.c: one number, or several columns as a vector. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/sources/table/kinds/kinds.h"

/* ---- learning ---- */

static int number_compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double table_median(double *v, int64_t n) {
  qsort(v, (size_t)n, sizeof(*v), number_compare);
  return n % 2 == 1 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* The numbers of the listed rows that are not missing. */
static tn_status number_collect(const table *t, const table_column *c, const int64_t *rows, int64_t n,
                                double **v, int64_t *count) {
  *count = 0;
  *v = tn_new(&t->env, (size_t)n * sizeof(**v) + 1);
  if (*v == NULL) return TN_ENOMEM;
  for (int64_t i = 0; i < n; i++)
    if (!isnan(c->numbers[rows[i]])) (*v)[(*count)++] = c->numbers[rows[i]];
  if (*count > 0) return TN_OK;
  return tn_fail(&t->env, TN_EINVAL, NULL,
                 "%s: column '%s' has no number in the training rows, so it has no mean; leave it out, or "
                 "set missing to "
                 "a number and standardize = no",
                 t->parts[0].path, c->name);
}

static void number_measure(table_field *f, int32_t k, double *v, int64_t n) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n; i++) sum += v[i];
  double mean = sum / (double)n;
  for (int64_t i = 0; i < n; i++) squares += (v[i] - mean) * (v[i] - mean);
  double deviation = sqrt(squares / (double)n);
  if (f->choices.standardize) {
    f->mean[k] = mean;
    f->deviation[k] = deviation > 0 ? deviation : 1;
  }
  if (f->fill != NULL) f->fill[k] = f->choices.missing == MISSING_MEDIAN ? table_median(v, n) : mean;
}

static tn_status number_make_lists(table *t, table_field *f) {
  size_t bytes = (size_t)f->n * sizeof(double);
  if (f->choices.missing != MISSING_ERROR) f->fill = table_memory_take(&t->memory, bytes);
  if (f->choices.standardize) f->mean = table_memory_take(&t->memory, bytes);
  if (f->choices.standardize) f->deviation = table_memory_take(&t->memory, bytes);
  bool all = (f->choices.missing == MISSING_ERROR || f->fill != NULL) &&
             (!f->choices.standardize || (f->mean != NULL && f->deviation != NULL));
  return all ? TN_OK : TN_ENOMEM;
}

tn_status table_learn_numbers(table *t, table_field *f, const int64_t *rows, int64_t n) {
  bool constant = f->choices.missing == MISSING_CONSTANT;
  TN_TRY(number_make_lists(t, f));
  bool measures = f->choices.standardize || (f->fill != NULL && !constant);
  for (int32_t k = 0; k < f->n; k++) {
    double *v = NULL;
    int64_t count;
    tn_status status = measures ? number_collect(t, f->column[k], rows, n, &v, &count) : TN_OK;
    if (status == TN_OK && measures) number_measure(f, k, v, count);
    if (constant) f->fill[k] = f->choices.constant;
    tn_delete(&t->env, v);
    TN_TRY(status);
  }
  return TN_OK;
}

double table_scaled(const table_field *f, int32_t k, double value) {
  if (isnan(value) && f->fill != NULL) value = f->fill[k];
  return f->mean != NULL ? (value - f->mean[k]) / f->deviation[k] : value;
}

static tn_status number_fail(const table *t, const table_field *f, int32_t k, int64_t row) {
  char value[32];
  if (isnan(f->column[k]->numbers[row]))
    return table_fail_cell(t, &t->env, f->names[k], row, "", 0,
                           "is missing; set missing = mean, median or a number for field '%s'", f->name);
  int n = snprintf(value, sizeof(value), "%.9g", f->column[k]->numbers[row]);
  return table_fail_cell(
      t, &t->env, f->names[k], row, value, (size_t)n,
      "does not fit f32, whose largest number is 3.4e38; set standardize = yes for field '%s'", f->name);
}

/* Puts the numbers of a row side by side, as they are given: a sample is then one place in memory. */
static tn_status number_pack(table *t, table_field *f, int64_t width) {
  f->values = tn_new(&t->env, (size_t)t->rows * (size_t)width * sizeof(*f->values) + 1);
  if (f->values == NULL) return TN_ENOMEM;
  for (int32_t k = 0; k < f->n; k++) {
    const double *v = f->column[k]->numbers;
    for (int64_t i = 0; i < t->rows; i++) {
      float *row = &f->values[i * width];
      double scaled = table_scaled(f, k, v[i]);
      if (!(fabs(scaled) <= (double)FLT_MAX)) return number_fail(t, f, k, i);
      row[k] = (float)scaled;
      if (width > f->n) row[f->n + k] = isnan(v[i]) ? 1.0F : 0.0F;
    }
    table_column_release(t, f->column[k]);
  }
  return TN_OK;
}

tn_status table_check_numbers(const table *t, const table_field *f) {
  for (int32_t k = 0; k < f->n; k++)
    for (int64_t i = 0; i < t->rows; i++)
      if (!(fabs(table_scaled(f, k, f->column[k]->numbers[i])) <= (double)FLT_MAX))
        return number_fail(t, f, k, i);
  return TN_OK;
}

void table_tell_units(const table_field *f, tn_field *described) {
  if (f->role != TN_FIELD_TARGET || tn_type_count(&described->type) != f->n) return;
  described->scale = f->deviation;
  described->shift = f->mean;
}

/* ---- the kinds ---- */

static tn_status number_describe(table *t, table_field *f, tn_field *described) {
  int64_t n = f->n * (f->choices.indicator ? 2 : 1);
  *described = kind_field(f, (tn_type){TN_F32, f->kind->several ? 1 : 0, {n}});
  if (!f->kind->several) described->type = (tn_type){TN_F32, 0, {0}};
  table_tell_units(f, described);
  return number_pack(t, f, n);
}

static void number_write(const table *t, const table_field *f, int64_t row, void *to) {
  (void)t;
  memcpy(to, &f->values[row * f->width], f->row_bytes);
}

const table_kind kind_number = {.name = "number",
                                .types = "f32[]",
                                .doc = "a column of numbers",
                                .choices = CHOICE_FILL | CHOICE_STANDARDIZE,
                                .form = TABLE_NUMBERS,
                                .learn = table_learn_numbers,
                                .describe = number_describe,
                                .write = number_write};

const table_kind kind_numbers = {.name = "numbers",
                                 .types = "f32[k]",
                                 .doc = "columns of numbers; * is all that no other field uses",
                                 .choices = CHOICE_FILL | CHOICE_STANDARDIZE | CHOICE_INDICATOR,
                                 .form = TABLE_NUMBERS,
                                 .several = true,
                                 .learn = table_learn_numbers,
                                 .describe = number_describe,
                                 .write = number_write};
