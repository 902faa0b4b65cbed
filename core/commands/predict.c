/* core/commands/predict.c: tn_run_predict: files or rows of arrays through the model. A loader reads
 * them, so pictures are decoded and transformed by the worker threads as for validation. */
#include "core/run/result.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/file/file.h"
#include "core/infer/places/places.h"
#include "core/step/values/finite_rows.h"
#include "core/infer/prediction/forward_pass.h"
#include "core/infer/prediction/picture_source.h"
#include "core/infer/prediction/predict_classes.h"
#include "core/infer/prediction/predict_csv.h"
#include "core/infer/prediction/predict_inputs.h"
#include "core/infer/prediction/predict_outputs.h"
#include "core/infer/prediction/predict_texts.h"

enum { NAME = 4096, DEFAULT_TOP = 5 };
static const double DEFAULT_THRESHOLD = 0.5;

typedef struct tn_predict_command {
  tn_run *run;
  const tn_predict_options *options;
  tn_predict_inputs inputs;
  tn_picture_source pictures;
  tn_forward forward;
  tn_predict_outputs outputs;
  json_t *predictions;
  tn_predict_classes classes;
  tn_places places;
  bool lists; /* predictions are the values of the outputs */
  tn_finite_rows finite;
} tn_predict_command;

/* No larger than needed: a batch is computed whole. */
static int64_t predict_batch(const tn_predict_command *p) {
  const tn_data_setting *data = &p->run->settings.data[TN_SPLIT_VALID];
  int64_t batch = data->given ? data->section.batch : 32, n = tn_predict_inputs_samples(&p->inputs, batch);
  return n > 0 && n < batch ? n : batch;
}

static tn_status predict_attach(tn_predict_command *p) {
  const tn_data_setting *data = &p->run->settings.data[TN_SPLIT_VALID];
  bool arrays = p->inputs.arrays;
  if (!arrays && !data->given)
    return tn_failf(&p->run->env, TN_EINVAL, "%s: no [data] source, which would read %s; give a .npy file",
                    p->run->ini.path, p->inputs.paths[0]);
  tn_loader_options options = {.source = arrays ? &tn_predict_rows_source : data->source,
                               .source_options = arrays ? (const void *)&p->inputs.rows : data->options,
                               .split = TN_SPLIT_VALID,
                               .files = p->inputs.paths,
                               .n_files = arrays ? 0 : p->options->n_inputs,
                               .transforms = data->transforms,
                               .n_transforms = !arrays || p->inputs.transforms ? data->n_transforms : 0,
                               .inputs_alone = true,
                               .workers = data->given ? (int32_t)data->section.workers : 0,
                               .where = arrays ? NULL : data->where};
  TN_TRY(tn_picture_source_open(&p->inputs, &p->pictures));
  if (p->pictures.wanted) {
    options.source = &p->pictures.source;
    options.source_options = &p->pictures;
  }
  return tn_forward_attach(&p->forward, &options, p->inputs.paths[0]);
}

static tn_status predict_start_outputs(tn_predict_command *p) {
  tn_predict_classes_start(p->run, &p->forward.outputs[0].row, p->options->top, &p->classes);
  p->places.masks = p->outputs.folder;
  p->places.show = p->options->show;
  p->places.threshold = p->options->threshold != 0 ? p->options->threshold : DEFAULT_THRESHOLD;
  p->places.top = p->options->top > 0 ? p->options->top : DEFAULT_TOP;
  TN_TRY(tn_places_start(&p->forward, &p->places));
  p->lists = !p->inputs.arrays && p->classes.classes == 0 && p->places.kind == TN_PLACES_NONE &&
             p->outputs.given == NULL && tn_predict_values_fit(&p->forward);
  if (p->classes.classes > 0 || p->lists || p->places.kind != TN_PLACES_NONE) p->predictions = json_array();
  return tn_predict_outputs_start(&p->outputs);
}

/* {"input": "cat.jpg", "top": [...]}, or "values": {"price": 12.5} of a model without classes. */
static tn_status predict_describe_row(tn_predict_command *p, int64_t i, bool finite, const float *scores) {
  char name[NAME];
  TN_TRY(tn_loader_sample_name(p->forward.loader, i, name, sizeof name));
  if (p->lists) {
    json_array_append_new(p->predictions, json_pack("{s:o, s:o}", "input", tn_json_text(name), "values",
                                                    tn_predict_values_row(&p->outputs, i)));
    return TN_OK;
  }
  json_t *top = finite ? tn_predict_classes_row(&p->classes, scores) : json_array();
  json_array_append_new(p->predictions, json_pack("{s:o, s:o}", "input", tn_json_text(name), "top", top));
  return TN_OK;
}

/* {"input": "cat.jpg", "areas": [...]} or "boxes". */
static tn_status predict_add_places(tn_predict_command *p, int32_t slot, int64_t row, int64_t i) {
  char name[NAME];
  snprintf(name, sizeof name, "%lld", (long long)i); /* a row of an array has no name */
  if (p->forward.loader != NULL) TN_TRY(tn_loader_sample_name(p->forward.loader, i, name, sizeof name));
  json_t *one = json_pack("{s:o}", "input", tn_json_text(name));
  if (one == NULL || json_array_append_new(p->predictions, one) != 0) return TN_ENOMEM;
  return tn_places_row(&p->places, slot, row, name, one);
}

static tn_status predict_take_rows(void *context, int32_t slot, int64_t first, int64_t n) {
  tn_predict_command *p = context;
  tn_predict_outputs_take(&p->outputs, slot, first, n);
  for (int64_t i = first; i < first + n; i++) {
    bool finite = tn_finite_rows_count(&p->finite, i, tn_forward_row_is_finite(&p->forward, slot, i - first));
    if (p->places.kind != TN_PLACES_NONE)
      TN_TRY(predict_add_places(p, slot, i - first, i));
    else if (p->predictions != NULL)
      TN_TRY(predict_describe_row(p, i, finite, tn_predict_outputs_row(&p->outputs, 0, i)));
  }
  return TN_OK;
}

/* An array without rows gives an array without rows. */
static tn_status predict_run_rows(tn_predict_command *p) {
  bool none = p->inputs.arrays && tn_predict_rows_count(&p->inputs.rows) == 0;
  int64_t length;
  TN_TRY(tn_predict_inputs_length(&p->inputs, &length));
  TN_TRY(tn_forward_open(p->run, predict_batch(p), length, &p->forward));
  TN_TRY(tn_predict_inputs_bind(&p->inputs, p->forward.program));
  TN_TRY(tn_predict_outputs_find(&p->outputs, &p->forward));
  TN_TRY(tn_forward_load_weights(&p->forward, "predict"));
  if (!none) TN_TRY(predict_attach(p));
  TN_TRY(predict_start_outputs(p));
  if (!none) TN_TRY(tn_forward_run(&p->forward, predict_take_rows, p));
  if (tn_predict_csv_wanted(&p->outputs)) return tn_predict_csv_write(&p->outputs, &p->classes);
  if (p->outputs.given != NULL || p->predictions != NULL) return tn_predict_outputs_write(&p->outputs);
  return tn_failf(&p->run->env, TN_EINVAL,
                  "%s: the model's output is no scores of classes; name a file for it: --output FILE.%s",
                  p->run->ini.path, p->forward.n_outputs > 1 ? "safetensors" : "npy");
}

static json_t *predict_result(tn_predict_command *p) {
  json_t *result = json_pack("{s:I}", "rows", (json_int_t)p->forward.count);
  json_object_set_new(result, "outputs", tn_predict_outputs_list(&p->outputs));
  if (p->options->output != NULL) json_object_set_new(result, "output", tn_json_text(p->outputs.path));
  if (p->predictions != NULL) json_object_set(result, "predictions", p->predictions);
  if (p->finite.bad > 0) json_object_set_new(result, "not_finite", json_integer(p->finite.bad));
  return result;
}

/* The predictions as a file. */
static tn_status predict_write_json(tn_predict_command *p, const json_t *result) {
  if (p->outputs.json == NULL) return TN_OK;
  char *text = json_dumps(result, JSON_INDENT(1));
  if (text == NULL) return TN_ENOMEM;
  tn_status status = tn_file_write_atomic(&p->run->env, p->outputs.json, text, strlen(text));
  free(text);
  return status;
}

static tn_status predict_run(tn_predict_command *p, json_t **result) {
  TN_TRY(tn_predict_outputs_name(p->run, p->options->output, &p->outputs));
  TN_TRY(tn_predict_inputs_read(&p->inputs));
  bool texts = false;
  TN_TRY(tn_predict_texts_wanted(&p->inputs, &texts));
  if (texts) return tn_predict_texts(&p->inputs, &p->finite, result);
  TN_TRY(predict_run_rows(p));
  *result = predict_result(p);
  return predict_write_json(p, *result);
}

static tn_status predict_judge(tn_predict_command *p) {
  char name[NAME];
  if (p->finite.bad == 0) return TN_OK;
  if (p->forward.loader == NULL)
    return tn_finite_rows_judge(&p->run->env, &p->finite, p->inputs.paths[p->finite.first]);
  TN_TRY(tn_loader_sample_name(p->forward.loader, p->finite.first, name, sizeof name));
  return tn_finite_rows_judge(&p->run->env, &p->finite, name);
}

tn_status tn_run_predict(tn_run *run, const tn_predict_options *given, char **json) {
  TN_ENTER(run);
  tn_predict_options options;
  TN_NEED(run, json, "json");
  *json = NULL;
  TN_NEED(run, given, "options");
  TN_TRY(TN_READ_STRUCT(run, tn_predict_options, inputs, given, &options));
  TN_NEED(run, options.inputs, "options->inputs");
  if (options.n_inputs < 1)
    return tn_failf(&run->env, TN_EINVAL, "%d inputs, expected 1 or more", (int)options.n_inputs);
  tn_predict_command p = {
      .run = run, .options = &options, .inputs = {.run = run, .options = &options}, .forward = {.run = run}};
  json_t *result = NULL;
  tn_status status = predict_run(&p, &result);
  if (status == TN_OK) status = tn_json_take(run, result, json);
  if (status == TN_OK) status = predict_judge(&p);
  tn_predict_classes_finish(&p.classes);
  tn_places_finish(&p.places);
  json_decref(p.predictions);
  tn_predict_outputs_free(&p.outputs);
  tn_forward_close(&p.forward);
  tn_predict_rows_free(&run->env, &p.inputs.rows);
  return status;
}
