/* core/commands/examine.c: tn_run_examine: a classifier's errors over the validation data. */
#include "core/run/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file/file.h"
#include "core/infer/prediction/class_scores.h"
#include "core/step/values/finite_rows.h"
#include "core/infer/prediction/forward_pass.h"
#include "core/infer/prediction/picture_text.h"

enum { WORST = 24, NAME = 4096, MOST_CLASSES = 200 };

/* A sample whose class was predicted wrongly. */
typedef struct examined_error {
  double log_probability; /* of the true class */
  int64_t sample, truth, predicted;
  double certainty; /* of the predicted class */
  char *picture;    /* NULL: the input is no picture */
} examined_error;

typedef struct tn_examine_command {
  tn_run *run;
  tn_forward forward;
  tn_class_scores scores;
  tn_finite_rows finite;
  int32_t label, input;        /* fields of the loader; input -1: none is a picture */
  json_t *names;               /* of the classes */
  examined_error worst[WORST]; /* the worst first */
  int32_t n_worst;
} tn_examine_command;

/* ---- which fields ---- */

/* A class number, or a part for each class, as from one_hot. */
static bool examine_is_label(const tn_field *f) {
  if (f->role != TN_FIELD_TARGET || f->classes <= 0) return false;
  if (f->type.dtype == TN_I32) return f->type.rank == 0;
  return f->type.dtype == TN_F32 && f->type.rank == 1 && f->type.dims[0] == f->classes;
}

/* The class of a row; -1: it has none. */
static int64_t examine_truth(const tn_examine_command *e, int32_t slot, int64_t row) {
  const tn_field *f = tn_loader_field(e->forward.loader, e->label);
  const void *values = e->forward.fields[slot][e->label];
  if (f->type.rank == 0) return ((const int32_t *)values)[row];
  const float *parts = (const float *)values + row * f->classes;
  int64_t best = 0;
  for (int64_t i = 0; i < f->classes; i++) {
    if (isnan(parts[i])) return -1;
    if (parts[i] > parts[best]) best = i;
  }
  return parts[best] > 0 ? best : -1;
}

static tn_status examine_find_fields(tn_examine_command *e) {
  const tn_loader *loader = e->forward.loader;
  e->label = e->input = -1;
  for (int32_t i = tn_loader_field_count(loader) - 1; i >= 0; i--) {
    const tn_field *f = tn_loader_field(loader, i);
    if (examine_is_label(f)) e->label = i;
    if (f->role == TN_FIELD_INPUT && tn_picture_is(&f->type)) e->input = i;
  }
  const tn_type *row = &e->forward.outputs[0].row;
  int64_t classes = e->label >= 0 ? tn_loader_field(loader, e->label)->classes : 0;
  if (e->label >= 0 && row->rank == 1 && row->dtype == TN_F32 && row->dims[0] == classes) return TN_OK;
  return tn_failf(&e->run->env, TN_EINVAL,
                  "%s: the model is no classifier: expected an output f32[classes] for a target with classes",
                  e->run->ini.path);
}

/* Names of the data, else numbers. */
static tn_status examine_name_classes(tn_examine_command *e) {
  const tn_field *label = tn_loader_field(e->forward.loader, e->label);
  e->names = json_array();
  for (int64_t i = 0; i < label->classes; i++) {
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)i);
    const char *name = label->class_names != NULL ? label->class_names[i] : number;
    json_array_append_new(e->names, tn_json_text(name));
  }
  return (int64_t)json_array_size(e->names) == label->classes ? TN_OK : TN_ENOMEM;
}

/* ---- the worst errors ---- */

/* The place among the worst; WORST: it does not belong to them. */
static int32_t examine_place(const tn_examine_command *e, double log_probability) {
  int32_t place = e->n_worst;
  while (place > 0 && log_probability < e->worst[place - 1].log_probability) place--;
  return place;
}

static tn_status examine_keep_error(tn_examine_command *e, const examined_error *error, const char *value) {
  int32_t place = examine_place(e, error->log_probability);
  if (place == WORST) return TN_OK;
  examined_error kept = *error;
  if (e->input >= 0) {
    const tn_type *type = &tn_loader_field(e->forward.loader, e->input)->type;
    kept.picture = tn_picture_text(&e->run->env, type, value);
    if (kept.picture == NULL) return TN_ENOMEM;
  }
  if (e->n_worst == WORST) tn_release(&e->run->env, e->worst[--e->n_worst].picture);
  memmove(&e->worst[place + 1], &e->worst[place], (size_t)(e->n_worst - place) * sizeof *e->worst);
  e->worst[place] = kept;
  e->n_worst++;
  return TN_OK;
}

static tn_status examine_sample(tn_examine_command *e, int32_t slot, int64_t row) {
  const tn_forward *f = &e->forward;
  const float *scores = (const float *)tn_forward_output(f, slot, 0) + row * e->scores.classes;
  examined_error error = {.sample = f->ids[slot][row], .truth = examine_truth(e, slot, row)};
  if (!tn_finite_rows_count(&e->finite, error.sample, tn_forward_row_is_finite(f, slot, row))) return TN_OK;
  if (!tn_class_scores_add(&e->scores, scores, error.truth, &error.predicted, &error.log_probability,
                           &error.certainty))
    return TN_OK;
  if (error.predicted == error.truth) return TN_OK;
  size_t bytes = e->input >= 0 ? tn_type_bytes(&tn_loader_field(f->loader, e->input)->type) : 0;
  return examine_keep_error(e, &error,
                            e->input >= 0 ? (char *)f->fields[slot][e->input] + (size_t)row * bytes : NULL);
}

static tn_status examine_take_rows(void *context, int32_t slot, int64_t first, int64_t n) {
  (void)first;
  for (int64_t i = 0; i < n; i++) TN_TRY(examine_sample(context, slot, i));
  return TN_OK;
}

/* ---- the result ---- */

static tn_status examine_describe_error(tn_examine_command *e, const examined_error *error, json_t *list) {
  char name[NAME];
  TN_TRY(tn_loader_sample_name(e->forward.loader, error->sample, name, sizeof name));
  json_t *one =
      json_pack("{s:o, s:O, s:O, s:f}", "input", tn_json_text(name), "truth",
                json_array_get(e->names, (size_t)error->truth), "predicted",
                json_array_get(e->names, (size_t)error->predicted), "probability", error->certainty);
  if (one == NULL) return TN_ENOMEM;
  if (error->picture != NULL) json_object_set_new(one, "picture", json_string(error->picture));
  return json_array_append_new(list, one) == 0 ? TN_OK : TN_ENOMEM;
}

static tn_status examine_result(tn_examine_command *e, json_t **result) {
  const tn_class_scores *s = &e->scores;
  json_t *worst = json_array(), *by_class = tn_class_scores_by_class(&e->run->env, s, e->names);
  tn_status status = TN_OK;
  for (int32_t i = 0; status == TN_OK && i < e->n_worst; i++)
    status = examine_describe_error(e, &e->worst[i], worst);
  *result = json_pack("{s:I, s:O, s:o, s:o, s:o}", "samples", (json_int_t)s->counted, "classes", e->names,
                      "means", tn_class_scores_means(by_class), "by_class", by_class, "worst", worst);
  if (*result != NULL && e->finite.bad > 0)
    json_object_set_new(*result, "not_finite", json_integer(e->finite.bad));
  if (*result != NULL && s->classes <= MOST_CLASSES)
    json_object_set_new(*result, "confusion", tn_class_scores_confusion(s));
  return *result != NULL ? status : TN_ENOMEM;
}

/* The run folder of a file FOLDER/checkpoints/NAME/model.safetensors; the caller's. NULL: the file lies
 * elsewhere. */
static char *examine_run_folder(tn_run *run, const char *file) {
  char *path = tn_strdup(&run->env, file), *config = NULL;
  for (int up_by = 0; path != NULL && up_by < 3; up_by++) {
    char *up = tn_path_folder(&run->env, path);
    tn_release(&run->env, path);
    path = up;
  }
  if (path != NULL) config = tn_path_join(&run->env, path, "config.ini");
  bool is_run = config != NULL && tn_file_exists(config);
  tn_release(&run->env, config);
  if (is_run) return path;
  tn_release(&run->env, path);
  return NULL;
}

/* evaluation.json beside config.ini of the run whose weights are examined; the caller's. NULL: they are of no
 * run. */
static char *examine_path(tn_run *run) {
  const char *file = run->weights_file;
  char *folder = file != NULL ? examine_run_folder(run, file) : NULL;
  char *path = folder != NULL ? tn_path_join(&run->env, folder, "evaluation.json") : NULL;
  tn_release(&run->env, folder);
  return path;
}

/* The result is written at the end. */
static tn_status examine_check_path(tn_run *run) {
  char *path = examine_path(run);
  tn_status status = path != NULL ? tn_file_check_new(&run->env, path) : TN_OK;
  tn_release(&run->env, path);
  return status;
}

static tn_status examine_keep(tn_run *run, const json_t *result) {
  char *path = examine_path(run);
  char *text = path != NULL ? json_dumps(result, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
  tn_status status = text != NULL ? tn_file_write_atomic(&run->env, path, text, strlen(text)) : TN_OK;
  free(text);
  tn_release(&run->env, path);
  return status;
}

static tn_status examine_run(tn_examine_command *e) {
  const tn_data_setting *data = &e->run->settings.data[TN_SPLIT_VALID];
  if (!data->given)
    return tn_failf(&e->run->env, TN_EINVAL, "%s: no [data] source, expected one to evaluate on",
                    e->run->ini.path);
  tn_loader_options options = {.source = data->source,
                               .source_options = data->options,
                               .split = TN_SPLIT_VALID,
                               .transforms = data->transforms,
                               .n_transforms = data->n_transforms,
                               .epoch_samples = data->section.epoch,
                               .workers = (int32_t)data->section.workers,
                               .where = data->where};
  TN_TRY(tn_forward_open(e->run, data->section.batch, 0, &e->forward));
  TN_TRY(tn_forward_load_weights(&e->forward, "evaluate"));
  TN_TRY(examine_check_path(e->run));
  TN_TRY(tn_forward_attach(&e->forward, &options, data->where));
  TN_TRY(examine_find_fields(e));
  TN_TRY(examine_name_classes(e));
  TN_TRY(
      tn_class_scores_start(&e->run->env, e->forward.outputs[0].row.dims[0], e->forward.count, &e->scores));
  return tn_forward_run(&e->forward, examine_take_rows, e);
}

static tn_status examine_judge(tn_examine_command *e) {
  char name[NAME];
  if (e->finite.bad == 0) return TN_OK;
  TN_TRY(tn_loader_sample_name(e->forward.loader, e->finite.first, name, sizeof name));
  return tn_finite_rows_judge(&e->run->env, &e->finite, name);
}

tn_status tn_run_examine(tn_run *run, char **json) {
  TN_ENTER(run);
  TN_NEED(run, json, "json");
  *json = NULL;
  tn_examine_command e = {.run = run, .forward = {.run = run}};
  json_t *result = NULL;
  tn_status status = examine_run(&e);
  if (status == TN_OK) status = examine_result(&e, &result);
  if (status == TN_OK) status = examine_keep(run, result);
  if (status == TN_OK)
    status = tn_json_take(&run->env, result, json);
  else
    json_decref(result);
  if (status == TN_OK) status = examine_judge(&e);
  for (int32_t i = 0; i < e.n_worst; i++) tn_release(&run->env, e.worst[i].picture);
  json_decref(e.names);
  tn_class_scores_free(&run->env, &e.scores);
  tn_forward_close(&e.forward);
  return status;
}
