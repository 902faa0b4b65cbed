/* core/train/commands/predict.c: tn_run_predict: files or rows of arrays through the model, batch by batch. A
 * loader reads them, so pictures are decoded and transformed by the worker threads as for validation. */
#include "core/train/result.h"

#include <string.h>

#include "core/formats/npy.h"
#include "core/train/checkpoints/weights_file.h"
#include "core/train/commands/predict_classes.h"
#include "core/train/commands/predict_inputs.h"
#include "core/train/distributed/devices.h"
#include "core/train/programs/check_model.h"

enum { SLOTS = 2, NAME = 4096 };

typedef struct tn_predict_command {
  tn_run *run;
  const tn_predict_options *options;
  tn_predict_inputs inputs;
  tn_device *device;
  tn_program_set set;
  tn_executor *executor;
  int32_t index;
  const tn_program *program;
  tn_loader *loader;
  void **addresses[SLOTS]; /* by field of the loader */
  int64_t batch, count;
  tn_type out_type; /* of all rows */
  size_t out_row;   /* bytes */
  char *out;
  json_t *predictions;
  tn_predict_classes classes;
} tn_predict_command;

static const tn_binding *predict_find_output(const tn_program *program) {
  for (int32_t i = 0; i < program->n_outputs; i++)
    if (tn_text_equal(program->outputs[i].name, "output")) return &program->outputs[i];
  return NULL;
}

/* ---- programs and weights ---- */

/* No larger than needed: a batch is computed whole. */
static int64_t predict_batch(const tn_predict_command *p) {
  const tn_data_setting *data = &p->run->settings.data[TN_SPLIT_VALID];
  int64_t batch = data->given ? data->section.batch : 32, n = tn_predict_inputs_samples(&p->inputs, batch);
  return n > 0 && n < batch ? n : batch;
}

static tn_status predict_open_programs(tn_predict_command *p) {
  tn_program_request request = {.slots = SLOTS};
  p->batch = predict_batch(p);
  request.batch[TN_PROGRAM_PREDICT] = p->batch;
  TN_TRY(tn_run_open_device(p->run, &p->device));
  TN_TRY(tn_programs_open(p->run, &p->run->env, p->device, &request, &p->set, &p->executor));
  p->program = p->set.programs[TN_PROGRAM_PREDICT];
  p->index = p->set.index[TN_PROGRAM_PREDICT];
  return TN_OK;
}

static tn_status predict_load_weights(tn_predict_command *p) {
  TN_TRY(tn_executor_run(p->executor, p->set.index[TN_PROGRAM_INIT], 0));
  TN_TRY(tn_executor_slot_wait(p->executor, 0));
  TN_TRY(tn_weights_load_required(p->run, p->executor, p->set.map, "predict"));
  return tn_programs_refresh(&p->set, p->executor);
}

/* ---- the loader ---- */

static tn_status predict_open_loader(tn_predict_command *p) {
  const tn_data_setting *data = &p->run->settings.data[TN_SPLIT_VALID];
  bool transforms = !p->inputs.arrays || p->inputs.transforms;
  if (!p->inputs.arrays && !data->given)
    return tn_failf(&p->run->env, TN_EINVAL, "%s: no [data] source, which would read %s; give a .npy file",
                    p->run->ini.path, p->inputs.paths[0]);
  tn_loader_options options = {.source = p->inputs.arrays ? &tn_predict_rows_source : data->source,
                               .source_options =
                                   p->inputs.arrays ? (const void *)&p->inputs.rows : data->options,
                               .split = TN_SPLIT_VALID,
                               .files = p->inputs.paths,
                               .n_files = p->inputs.arrays ? 0 : p->options->n_inputs,
                               .transforms = data->transforms,
                               .n_transforms = transforms ? data->n_transforms : 0,
                               .batch = p->batch,
                               .shards = 1,
                               .accumulate = 1,
                               .workers = data->given ? (int32_t)data->section.workers : 0,
                               .prefetch = SLOTS,
                               .pad_last = true,
                               .seed = (uint64_t)p->run->settings.run.seed,
                               .where = p->inputs.arrays ? NULL : data->where,
                               .stop = &p->run->stop};
  TN_TRY(tn_loader_create(&p->run->env, &options, &p->loader));
  p->count = tn_loader_samples(p->loader);
  return TN_OK;
}

/* Checks the field of an input that the program reads. */
static tn_status predict_check_field(tn_predict_command *p, const tn_binding *input) {
  char has[TN_TYPE_TEXT], wanted[TN_TYPE_TEXT];
  tn_signature_field field = tn_field_of_input(input->name, &input->type);
  for (int32_t i = 0; i < tn_loader_field_count(p->loader); i++) {
    const tn_field *f = tn_loader_field(p->loader, i);
    if (!tn_text_equal(f->name, input->name)) continue;
    if (tn_type_equal(&f->type, &field.type)) return TN_OK;
    return tn_failf(&p->run->env, TN_EINVAL, "%s: '%s' is %s behind the transforms, the model's input %s",
                    p->inputs.paths[0], f->name, tn_type_format(&f->type, has),
                    tn_type_format(&field.type, wanted));
  }
  return tn_failf(&p->run->env, TN_EINVAL, "%s: gives no '%s', which the model reads", p->inputs.paths[0],
                  input->name);
}

/* Fields that the program does not read get memory of their own. */
static tn_status predict_bind_slot(tn_predict_command *p, int32_t slot) {
  int32_t n = tn_loader_field_count(p->loader);
  p->addresses[slot] = tn_arena_alloc(&p->run->arena, tn_size_mul((size_t)n, sizeof(void *)));
  if (p->addresses[slot] == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) {
    const tn_field *f = tn_loader_field(p->loader, i);
    void *to = tn_executor_input(p->executor, p->index, slot, f->name);
    if (to == NULL)
      to = tn_arena_alloc(&p->run->arena, tn_size_mul(tn_type_bytes(&f->type), (size_t)p->batch));
    if (to == NULL) return TN_ENOMEM;
    p->addresses[slot][i] = to;
  }
  return TN_OK;
}

static tn_status predict_connect(tn_predict_command *p) {
  for (int32_t i = 0; i < p->program->n_inputs; i++)
    if (!tn_input_is_of_host(p->program->inputs[i].name))
      TN_TRY(predict_check_field(p, &p->program->inputs[i]));
  for (int32_t slot = 0; slot < SLOTS; slot++) TN_TRY(predict_bind_slot(p, slot));
  return TN_OK;
}

/* ---- running ---- */

static tn_status predict_make_outputs(tn_predict_command *p) {
  const tn_binding *output = predict_find_output(p->program);
  p->out_type = output->type;
  if (p->out_type.rank < 1 || p->out_type.dims[0] != p->batch)
    return tn_failf(&p->run->env, TN_EINVAL, "%s: the model's output does not have one row per sample",
                    p->run->ini.path);
  tn_type row = {p->out_type.dtype, p->out_type.rank - 1, {0}};
  memcpy(row.dims, p->out_type.dims + 1, sizeof *row.dims * (size_t)row.rank);
  p->out_row = tn_type_bytes(&row);
  p->out_type.dims[0] = p->count;
  p->out = tn_alloc(&p->run->env, tn_size_add(tn_size_mul((size_t)p->count, p->out_row), 1));
  tn_predict_classes_start(p->run, &row, p->options->top, &p->classes);
  if (p->classes.classes > 0) p->predictions = json_array();
  return p->out != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status predict_submit(tn_predict_command *p, int32_t slot) {
  tn_batch batch = {.fields = p->addresses[slot]};
  return tn_loader_submit(p->loader, &batch);
}

static tn_status predict_batch_of_slot(tn_predict_command *p, int32_t slot, int64_t row, int64_t samples) {
  TN_TRY(tn_executor_run(p->executor, p->index, slot));
  TN_TRY(tn_executor_slot_wait(p->executor, slot));
  memcpy(p->out + (size_t)row * p->out_row, tn_executor_output(p->executor, p->index, slot, "output"),
         (size_t)samples * p->out_row);
  return TN_OK;
}

static tn_status predict_run_batches(tn_predict_command *p) {
  int64_t row = 0, samples;
  TN_TRY(tn_loader_start(p->loader, 0, 0));
  for (int32_t slot = 0; slot < SLOTS; slot++) TN_TRY(predict_submit(p, slot));
  for (int32_t slot = 0; row < p->count; slot = (slot + 1) % SLOTS) {
    TN_TRY(tn_loader_wait(p->loader, &samples));
    TN_TRY(predict_batch_of_slot(p, slot, row, samples));
    TN_TRY(predict_submit(p, slot));
    row += samples;
  }
  return TN_OK;
}

/* {"input": "cat.jpg", "top": [...]} for each row. */
static tn_status predict_describe_rows(tn_predict_command *p) {
  char name[NAME];
  for (int64_t i = 0; p->predictions != NULL && i < p->count; i++) {
    TN_TRY(tn_loader_sample_name(p->loader, i, name, sizeof name));
    json_t *top =
        tn_predict_classes_row(&p->classes, (const float *)(void *)(p->out + (size_t)i * p->out_row));
    json_t *text = json_string(name);
    json_array_append_new(p->predictions, json_pack("{s:o, s:o}", "input",
                                                    text ? text : json_string("(not UTF-8)"), "top", top));
  }
  return TN_OK;
}

/* An array without rows gives an array without rows. */
static tn_status predict_rows_of_loader(tn_predict_command *p) {
  bool none = p->inputs.arrays && tn_predict_rows_count(&p->inputs.rows) == 0;
  if (!none) TN_TRY(predict_open_loader(p));
  if (!none) TN_TRY(predict_connect(p));
  TN_TRY(predict_make_outputs(p));
  if (none) return TN_OK;
  TN_TRY(predict_run_batches(p));
  return predict_describe_rows(p);
}

static tn_status predict_run(tn_predict_command *p) {
  TN_TRY(tn_predict_inputs_read(&p->inputs));
  TN_TRY(predict_open_programs(p));
  TN_TRY(tn_predict_inputs_bind(&p->inputs, p->program));
  TN_TRY(predict_load_weights(p));
  TN_TRY(predict_rows_of_loader(p));
  if (p->options->output != NULL) return tn_npy_write(&p->run->env, p->options->output, &p->out_type, p->out);
  if (p->predictions != NULL) return TN_OK;
  return tn_failf(&p->run->env, TN_EINVAL,
                  "%s: the model's output is no scores of classes; name a file for it: --output FILE.npy",
                  p->run->ini.path);
}

static json_t *predict_result(tn_predict_command *p) {
  json_t *result = json_pack("{s:I}", "rows", (json_int_t)p->count);
  if (p->options->output != NULL) json_object_set_new(result, "output", json_string(p->options->output));
  if (p->predictions != NULL) json_object_set(result, "predictions", p->predictions);
  return result;
}

tn_status tn_run_predict(tn_run *run, const tn_predict_options *options, char **json) {
  TN_ENTER(run);
  TN_NEED(run, json, "json");
  *json = NULL;
  TN_NEED(run, options, "options");
  TN_NEED(run, options->inputs, "options->inputs");
  if (options->n_inputs < 1)
    return tn_failf(&run->env, TN_EINVAL, "%d inputs, expected 1 or more", (int)options->n_inputs);
  tn_predict_command p = {.run = run, .options = options, .inputs = {.run = run, .options = options}};
  tn_status status = predict_run(&p);
  if (status == TN_OK) status = tn_json_take(run, predict_result(&p), json);
  tn_predict_classes_finish(&p.classes);
  json_decref(p.predictions);
  tn_loader_destroy(p.loader);
  tn_executor_destroy(p.executor);
  tn_programs_free(run, &p.set);
  tn_device_destroy(p.device);
  tn_predict_rows_free(&run->env, &p.inputs.rows);
  tn_release(&run->env, p.out);
  return status;
}
