/* plugins/sources/table/table.c: a table, CSV or lines of JSON, whose columns become fields. */
#include <stdio.h>
#include <string.h>

#include "plugins/sources/table/table.h"

static const tn_option options[] = {
    TN_OPT(table_options, file, TN_OPT_PATH, NULL, NULL,
           "the table: CSV, TSV or lines of JSON, also packed by gzip or zstd"),
    TN_OPT(table_options, valid_file, TN_OPT_PATH, "", NULL, "a table for validation"),
    TN_OPT(table_options, inputs, TN_OPT_TEXT, NULL, NULL,
           "fields, FIELD: KIND(COLUMN, OPTIONS), in lines or with commas between them: age: number(Age, "
           "missing=median)"),
    TN_OPT(table_options, targets, TN_OPT_TEXT, "", NULL, "the same for targets"),
    TN_OPT(table_options, format, TN_OPT_ENUM, "auto", "auto|csv|json",
           "auto: lines of JSON where the first character is {"),
    TN_OPT(table_options, header, TN_OPT_ENUM, "auto", "auto|yes|no",
           "whether the first row has names; auto: unless one of its cells is a number. Without, columns are "
           "called 1, 2, 3"),
    TN_OPT(table_options, delimiter, TN_OPT_ENUM, "auto", "auto|comma|semicolon|tab|bar|blank",
           "between cells; auto: the one that gives the first rows the same number of cells"),
    TN_OPT(table_options, decimal, TN_OPT_ENUM, "point", "point|comma",
           "between the whole and the fraction of a number of CSV: 1.5 or 1,5"),
    TN_OPT(table_options, split, TN_OPT_FLOAT, "0", "[0, 1)",
           "part of the rows that is for validation; 0: none"),
    TN_OPT(table_options, split_seed, TN_OPT_INT, "0", NULL, "another number chooses other rows"),
    TN_OPT(table_options, split_column, TN_OPT_TEXT, "", NULL,
           "column that says which rows are for validation"),
    TN_OPT(table_options, split_value, TN_OPT_TEXT, "valid", NULL, "what it has in these rows"),
    TN_OPT(table_options, group, TN_OPT_TEXT, "", NULL,
           "column whose equal values stay in one part, with split or fold"),
    TN_OPT(table_options, time, TN_OPT_TEXT, "", NULL,
           "column of times: the last part of them is for validation, with split; windows follow them"),
    TN_OPT(table_options, fold, TN_OPT_TEXT, "", NULL,
           "2/5: the second of five parts of the rows is for validation"),
    TN_OPT(
        table_options, weight, TN_OPT_TEXT, "", NULL,
        "column of weights: training draws rows in proportion to them, with replacement; balanced(COLUMN): "
        "its values come equally often"),
    TN_OPT(
        table_options, window, TN_OPT_INT, "0", "[0, 1048576]",
        "a sample is so many rows, one behind the other, and the targets are those behind them; 0: one row"),
    TN_OPT(table_options, horizon, TN_OPT_INT, "1", "[1, 1048576]",
           "rows behind a window that its targets have; 1: without a dimension of their own"),
    TN_OPT(table_options, stride, TN_OPT_INT, "1", "[1, 1048576]", "rows from one window to the next"),
    TN_OPT(table_options, series, TN_OPT_TEXT, "", NULL,
           "column whose equal values are a series of their own: no window has rows of two"),
    TN_OPT(table_options, max_pixels, TN_OPT_INT, "100000000", ">= 1",
           "the largest number of pixels of a picture"),
    TN_OPT_END};

/* ---- opening ---- */

static void table_close(tn_env *env, void *source) {
  table *t = source;
  for (int32_t i = 0; i < t->n_fields; i++) {
    table_vocabulary_free(env, &t->fields[i].words);
    tn_delete(env, t->fields[i].codes);
    tn_delete(env, t->fields[i].values);
    if (t->fields[i].tokenizer != NULL) tn_tokenizer_close(env, t->fields[i].tokenizer);
  }
  table_rows_free(t);
  tn_delete(env, t->windows);
  tn_delete(env, t->weights);
  t->memory.env = env;
  table_memory_free(&t->memory);
  tn_delete(env, t);
}

static tn_status table_teach(table *t, const int64_t *rows, int64_t n) {
  for (int32_t i = 0; i < t->n_fields; i++) {
    table_field *f = &t->fields[i];
    if (!f->taught && f->kind->learn != NULL) TN_TRY(f->kind->learn(t, f, rows, n));
    f->taught = true;
  }
  return TN_OK;
}

static tn_status table_teach_split(table *t) {
  int64_t *rows = NULL, n;
  tn_status status = table_split(t, TN_SPLIT_TRAIN, &rows, &n);
  if (status == TN_OK) status = table_teach(t, rows, n);
  tn_delete(&t->env, rows);
  return status;
}

/* Without a list all rows are samples, or in windows. */
static tn_status table_take_samples(table *t, const int64_t *rows, int64_t n) {
  if (table_has_windows(t)) return table_windows_find(t, rows, n);
  if (rows != NULL) table_rows_keep(t, rows, n);
  t->samples = t->rows;
  return TN_OK;
}

/* Reads a file, and orders its rows where samples are windows. */
static tn_status table_read_ordered(table *t, const char *path) {
  TN_TRY(table_read(t, path));
  return table_has_windows(t) ? table_windows_order(t) : TN_OK;
}

/* The rows of a file for validation, after those of the training file have taught the fields. */
static tn_status table_open_valid_file(table *t, bool taught) {
  if (!taught) {
    TN_TRY(table_read_ordered(t, t->options->file));
    TN_TRY(table_teach_split(t));
    table_rows_free(t);
  }
  TN_TRY(table_read_ordered(t, t->options->valid_file));
  return table_take_samples(t, NULL, t->rows);
}

static bool table_is_divided(const table_options *o) {
  return o->split > 0 || o->fold[0] != '\0' || o->split_column[0] != '\0';
}

static tn_status table_open_rows(table *t, int32_t split, bool taught) {
  int64_t *rows = NULL, n;
  const table_options *o = t->options;
  if (split == TN_SPLIT_VALID && source_has_path(o->valid_file)) return table_open_valid_file(t, taught);
  if (split == TN_SPLIT_VALID && !table_is_divided(o))
    return tn_fail(&t->env, TN_EUNAVAILABLE, "split",
                   "%s: no rows are for validation; set split = 0.2, valid_file, split_column or fold",
                   o->file);
  TN_TRY(table_read_ordered(t, o->file));
  if (!taught) TN_TRY(table_teach_split(t));
  tn_status status = table_split(t, split, &rows, &n);
  if (status == TN_OK) status = table_take_samples(t, rows, n);
  tn_delete(&t->env, rows);
  if (status == TN_OK && split == TN_SPLIT_TRAIN) status = table_weights_make(t);
  return status;
}

static tn_status table_describe_fields(table *t) {
  t->described = table_memory_take(&t->memory, ((size_t)t->n_fields + 1) * sizeof(*t->described));
  if (t->described == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < t->n_fields; i++) {
    table_field *f = &t->fields[i];
    TN_TRY(f->kind->describe(t, f, &t->described[i]));
    f->width = tn_type_count(&t->described[i].type);
    f->row_bytes = f->kind->write != NULL ? tn_type_bytes(&t->described[i].type) : 0;
    if (table_has_windows(t)) TN_TRY(table_windows_describe(t, &t->described[i]));
  }
  return TN_OK;
}

/* Reads the fields' lines, and what the weights know of them. */
static tn_status table_begin(table *t, bool targets) {
  const char *known = tn_env_learnt(&t->env);
  TN_TRY(table_spec_read(t, "inputs", t->options->inputs, TN_FIELD_INPUT));
  if (targets) TN_TRY(table_spec_read(t, "targets", t->options->targets, TN_FIELD_TARGET));
  if (t->n_fields == 0)
    return tn_fail(&t->env, TN_EINVAL, "inputs", "there is no field, expected one such as age: number(Age)");
  return known != NULL ? table_learnt_read(t, known) : TN_OK;
}

static table *table_new(tn_env *env, const void *opts) {
  table *t = tn_new(env, sizeof(*t));
  if (t == NULL) return NULL;
  t->env = *env;
  t->options = opts;
  t->memory.env = &t->env;
  return t;
}

static tn_status table_finish(tn_env *env, table *t, tn_status status, void **source) {
  if (status == TN_OK) status = table_describe_fields(t);
  if (status == TN_OK) status = table_learnt_write(t);
  if (status == TN_OK)
    *source = t;
  else
    table_close(env, t);
  return status;
}

static tn_status table_open(tn_env *env, const void *opts, int32_t split, uint64_t seed, void **source) {
  (void)seed;
  table *t = table_new(env, opts);
  if (t == NULL) return TN_ENOMEM;
  t->divides = true;
  tn_status status = table_begin(t, true);
  if (status == TN_OK) status = table_open_rows(t, split, tn_env_learnt(env) != NULL);
  return table_finish(env, t, status, source);
}

/* Weights that know nothing of their data, as from another program: the training rows teach again. */
static tn_status table_teach_again(table *t) {
  t->divides = true;
  TN_TRY(table_read_ordered(t, t->options->file));
  TN_TRY(table_teach_split(t));
  table_rows_free(t);
  t->divides = false;
  return TN_OK;
}

static tn_status table_open_files(tn_env *env, const void *opts, const char *const *paths, int32_t n,
                                  void **source) {
  table *t = table_new(env, opts);
  if (t == NULL) return TN_ENOMEM;
  tn_status status = table_begin(t, false);
  if (status == TN_OK && tn_env_learnt(env) == NULL) status = table_teach_again(t);
  for (int32_t i = 0; i < n && status == TN_OK; i++) status = table_read(t, paths[i]);
  if (status == TN_OK && table_has_windows(t)) status = table_windows_order(t);
  if (status == TN_OK) status = table_take_samples(t, NULL, t->rows);
  return table_finish(env, t, status, source);
}

/* ---- reading ---- */

static tn_status table_describe(tn_env *env, void *source, tn_description *description) {
  (void)env;
  table *t = source;
  description->count = t->samples;
  description->n_fields = t->n_fields;
  description->fields = t->described;
  for (int32_t i = 0; i < t->n_fields; i++) description->keep |= t->fields[i].kind->files;
  return TN_OK;
}

static tn_status table_read_field(tn_sample *s, const table *t, int32_t i) {
  const table_field *f = &t->fields[i];
  if (f->kind->write == NULL) return f->kind->read(t, f, s, i);
  char *to = tn_sample_field(s, i, NULL);
  if (to == NULL) return TN_ENOMEM;
  int64_t first, rows = table_sample_rows(t, f, s->index, &first);
  for (int64_t k = 0; k < rows; k++) f->kind->write(t, f, first + k, to + (size_t)k * f->row_bytes);
  return TN_OK;
}

static tn_status table_read_sample(tn_sample *s, void *source) {
  const table *t = source;
  for (int32_t i = 0; i < t->n_fields; i++) TN_TRY(table_read_field(s, t, i));
  return TN_OK;
}

/* A window has the name of its last row. */
static tn_status table_name(tn_env *env, void *source, int64_t index, char *text, size_t size) {
  (void)env;
  const table *t = source;
  int64_t row = t->windows != NULL ? t->windows[index] + t->options->window - 1 : index;
  snprintf(text, size, "%s:%u", table_part_of(t, row)->path, (unsigned)t->lines[row]);
  return TN_OK;
}

static tn_status table_class_of(tn_env *env, void *source, int64_t index, int64_t *number) {
  const table *t = source;
  for (int32_t i = 0; i < t->n_fields; i++)
    if (t->described[i].classes > 0) {
      int64_t row;
      table_sample_rows(t, &t->fields[i], index, &row);
      return *number = t->fields[i].codes[row], TN_OK;
    }
  return tn_fail(env, TN_EINVAL, "targets", "no target is a category");
}

static tn_status table_weight_of(tn_env *env, void *source, int64_t index, double *weight) {
  const table *t = source;
  if (t->weights == NULL) return tn_fail(env, TN_EUNAVAILABLE, "weight", "there are no weights");
  *weight = t->weights[index];
  return TN_OK;
}

/* Rows of a shuffled epoch lie anywhere: reading them one by one waits for memory each time. */
static void table_ahead(void *source, const int64_t *indices, int32_t n) {
  const table *t = source;
  for (int32_t i = 0; i < t->n_fields; i++) {
    const table_field *f = &t->fields[i];
    for (int32_t k = 0; k < n && f->kind->write != NULL; k++) {
      int64_t row;
      table_sample_rows(t, f, indices[k], &row);
      if (f->codes != NULL) __builtin_prefetch(&f->codes[row]);
      if (f->values == NULL) continue;
      __builtin_prefetch(&f->values[row * f->width]);
      __builtin_prefetch(&f->values[row * f->width + f->width - 1]);
    }
  }
}

static tn_status table_tell_learnt(tn_env *env, void *source, const char **text) {
  (void)env;
  *text = ((const table *)source)->learnt;
  return TN_OK;
}

const tn_source table_source = {
    .item = TN_ITEM(tn_source, TN_SOURCE, "table", "the rows of a CSV file or of lines of JSON",
                    table_options, options),
    .types = "a field for each line of inputs and targets",
    .example = "source = table\nfile = titanic.csv\ninputs = numbers: numbers(age, fare)\ntargets = "
               "survived: category",
    .open = table_open,
    .close = table_close,
    .describe = table_describe,
    .read = table_read_sample,
    .open_files = table_open_files,
    .name = table_name,
    .class_of = table_class_of,
    .learnt = table_tell_learnt,
    .weight_of = table_weight_of,
    .ahead = table_ahead,
};
