#include "core/infer/prediction/predict_csv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file/file.h"
#include "core/base/text/text.h"
#include "core/infer/prediction/class_scores.h"
#include "core/run/result.h"

enum { SHOWN_VALUES = 64, SAMPLE_NAME = 4096 };

bool tn_predict_csv_wanted(const tn_predict_outputs *o) {
  return o->given != NULL && tn_text_ends(o->path, ".csv");
}

/* ---- cells ---- */

/* A spreadsheet takes a text that begins so for a formula; an apostrophe in front makes it a text. */
static bool csv_is_formula(const char *text) {
  char *end;
  if (*text == '\0' || strchr("=+-@", *text) == NULL) return false;
  strtod(text, &end);
  return *end != '\0';
}

/* As RFC 4180 asks: in quotation marks, which are doubled inside, where a cell has a mark of its own. */
static void csv_add_text(tn_text *to, const char *text) {
  bool quoted = strpbrk(text, ",\"\r\n") != NULL;
  if (quoted) tn_text_add(to, "\"");
  if (csv_is_formula(text)) tn_text_add(to, "'");
  for (; *text != '\0'; text++) tn_text_addf(to, *text == '"' ? "\"%c" : "%c", *text);
  if (quoted) tn_text_add(to, "\"");
}

/* Element i of a row in its dtype. */
static double csv_element(const tn_output_rows *output, const void *row, int64_t i) {
  if (output->row.dtype == TN_I32) return ((const int32_t *)row)[i];
  if (output->row.dtype == TN_I64) return (double)((const int64_t *)row)[i];
  if (output->row.dtype == TN_U8 || output->row.dtype == TN_BOOL) return ((const uint8_t *)row)[i];
  return (double)((const float *)row)[i];
}

static bool csv_can_show(const tn_output_rows *output) {
  int32_t dtype = output->row.dtype;
  return dtype == TN_F32 || dtype == TN_I32 || dtype == TN_I64 || dtype == TN_U8 || dtype == TN_BOOL;
}

/* ---- the first row ---- */

static void csv_add_classes(tn_text *to, const tn_predict_classes *c) {
  tn_text_add(to, c->independent ? ",labels" : ",class");
  for (int64_t i = 0; i < c->classes; i++) {
    const char *name = json_string_value(json_array_get(c->names, (size_t)i));
    tn_text_add(to, ",");
    if (name != NULL)
      csv_add_text(to, name);
    else
      tn_text_addf(to, "%lld", (long long)i);
  }
}

/* An output in the units of a target has its name. */
static const char *csv_name(const tn_predict_outputs *o, int32_t k) {
  return o->units[k].target != NULL ? o->units[k].target : o->forward->outputs[k].name;
}

static void csv_add_names(tn_text *to, const tn_predict_outputs *o, int32_t k) {
  const tn_output_rows *output = &o->forward->outputs[k];
  int64_t n = tn_type_count(&output->row);
  for (int64_t i = 0; i < n; i++) {
    tn_text_add(to, ",");
    csv_add_text(to, csv_name(o, k));
    if (output->row.rank > 0) tn_text_addf(to, "_%lld", (long long)i + 1);
  }
}

/* ---- rows ---- */

static void csv_add_name(tn_text *to, const tn_predict_classes *c, int64_t class) {
  const char *name = json_string_value(json_array_get(c->names, (size_t) class));
  if (name != NULL)
    tn_text_add(to, name);
  else
    tn_text_addf(to, "%lld", (long long)class);
}

/* The most probable class, or all labels of a probability above one half, with | between them. */
static void csv_add_chosen(tn_text *to, const tn_predict_classes *c, const float *scores) {
  tn_text cell = tn_text_new(to->handle);
  int64_t best = 0;
  for (int64_t i = 1; i < c->classes; i++)
    if (scores[i] > scores[best]) best = i;
  for (int64_t i = 0; i < c->classes; i++) {
    if (c->independent ? !(scores[i] > 0) : i != best) continue;
    if (cell.n > 0) tn_text_add(&cell, "|");
    csv_add_name(&cell, c, i);
  }
  csv_add_text(to, cell.n > 0 ? cell.v : "");
  to->failed = to->failed || cell.failed;
  tn_text_free(&cell);
}

static void csv_add_probabilities(tn_text *to, const tn_predict_classes *c, const float *scores) {
  const tn_score_scale all = tn_predict_scale(c, scores);
  tn_text_add(to, ",");
  csv_add_chosen(to, c, scores);
  for (int64_t i = 0; i < c->classes; i++)
    tn_text_addf(to, ",%.7g", tn_predict_probability(c, &all, scores[i]));
}

static void csv_add_values(tn_text *to, const tn_output_rows *output, const void *row) {
  int64_t n = tn_type_count(&output->row);
  for (int64_t i = 0; i < n; i++) tn_text_addf(to, ",%.9g", csv_element(output, row, i));
}

static tn_status csv_add_row(tn_text *to, const tn_predict_outputs *o, const tn_predict_classes *c,
                             int64_t i) {
  char name[SAMPLE_NAME];
  const tn_forward *f = o->forward;
  TN_TRY(tn_loader_sample_name(f->loader, i, name, sizeof name));
  csv_add_text(to, name);
  for (int32_t k = 0; k < f->n_outputs; k++) {
    const void *row = tn_predict_outputs_row(o, k, i);
    if (o->only >= 0 && k != o->only) continue;
    if (k == 0 && c->classes > 0)
      csv_add_probabilities(to, c, row);
    else
      csv_add_values(to, &f->outputs[k], row);
  }
  tn_text_add(to, "\n");
  return to->failed ? TN_ENOMEM : TN_OK;
}

static tn_status csv_add_first(tn_text *to, const tn_predict_outputs *o, const tn_predict_classes *c) {
  const tn_forward *f = o->forward;
  tn_text_add(to, "input");
  for (int32_t k = 0; k < f->n_outputs; k++) {
    if (o->only >= 0 && k != o->only) continue;
    if (!csv_can_show(&f->outputs[k]))
      return tn_failf(&f->run->env, TN_EUNSUPPORTED, "%s: output '%s' has elements of %s; name a .npy file",
                      o->path, f->outputs[k].name, tn_dtype_name(f->outputs[k].row.dtype));
    if (k == 0 && c->classes > 0)
      csv_add_classes(to, c);
    else
      csv_add_names(to, o, k);
  }
  tn_text_add(to, "\n");
  return TN_OK;
}

/* Rows are appended in portions, so that the text of a large table is not in memory at once. */
static tn_status csv_write_rows(const tn_predict_outputs *o, const tn_predict_classes *c, tn_new_file *file) {
  enum { PORTION = 256 };
  const tn_forward *f = o->forward;
  tn_text text = tn_text_new(&f->run->env);
  tn_status status = csv_add_first(&text, o, c);
  for (int64_t i = 0; i < f->count && status == TN_OK; i++) {
    status = csv_add_row(&text, o, c, i);
    if (status != TN_OK || i % PORTION != PORTION - 1) continue;
    status = tn_file_append(&f->run->env, file, text.v, text.n);
    tn_text_free(&text);
    text = tn_text_new(&f->run->env);
  }
  if (status == TN_OK && text.n > 0) status = tn_file_append(&f->run->env, file, text.v, text.n);
  tn_text_free(&text);
  return status;
}

tn_status tn_predict_csv_write(const tn_predict_outputs *o, const tn_predict_classes *classes) {
  const tn_env *env = &o->forward->run->env;
  tn_new_file file;
  TN_TRY(tn_file_begin(env, o->path, &file));
  tn_status status = o->forward->loader != NULL ? csv_write_rows(o, classes, &file) : TN_OK;
  if (status == TN_OK) return tn_file_commit(env, &file);
  tn_file_abandon(env, &file);
  return status;
}

/* ---- lines ---- */

bool tn_predict_values_fit(const tn_forward *f) {
  int64_t n = 0;
  for (int32_t k = 0; k < f->n_outputs; k++) {
    if (!csv_can_show(&f->outputs[k])) return false;
    n += tn_type_count(&f->outputs[k].row);
  }
  return n <= SHOWN_VALUES;
}

json_t *tn_predict_values_row(const tn_predict_outputs *o, int64_t i) {
  json_t *all = json_object();
  for (int32_t k = 0; k < o->forward->n_outputs; k++) {
    const tn_output_rows *output = &o->forward->outputs[k];
    const void *row = tn_predict_outputs_row(o, k, i);
    json_t *list = json_array();
    for (int64_t e = 0; e < tn_type_count(&output->row); e++)
      json_array_append_new(list, tn_json_real(csv_element(output, row, e)));
    bool one = output->row.rank == 0;
    json_object_set_new(all, csv_name(o, k), one ? json_incref(json_array_get(list, 0)) : json_incref(list));
    json_decref(list);
  }
  return all;
}
