/* core/train/commands/predict.c: tn_run_predict: rows of a .npy file through the model, batch by batch. */
#include "core/train/result.h"

#include <string.h>

#include "core/formats/npy.h"
#include "core/train/checkpoints/weights.h"
#include "core/train/distributed/devices.h"

typedef struct tn_predict_command {
  tn_run *run;
  tn_device *device;
  tn_program_set set;
  tn_executor *executor;
  int32_t index;
  const tn_program *program;
  tn_type in_type, out_type; /* of the files */
  char *in;
  char *out;
  size_t in_row, out_row; /* bytes */
  int64_t batch;
} tn_predict_command;

static const tn_binding *predict_find_binding(const tn_binding *bindings, int32_t n, const char *name) {
  for (int32_t i = 0; i < n; i++)
    if (tn_text_equal(bindings[i].name, name)) return &bindings[i];
  return NULL;
}

static tn_status predict_check_input(tn_predict_command *p, const char *path, const tn_binding *input) {
  tn_type rows = p->in_type;
  if (rows.rank > 0) rows.dims[0] = p->batch;
  if (tn_type_equal(&rows, &input->type)) return TN_OK;
  tn_text wanted = tn_text_new(&p->run->env);
  char has[TN_TYPE_TEXT];
  for (int32_t i = 1; i < input->type.rank; i++)
    tn_text_addf(&wanted, ", %lld", (long long)input->type.dims[i]);
  tn_status status =
      tn_failf(&p->run->env, TN_EINVAL, "%s: holds %s, expected %s[rows%s] for the model's input '%s'", path,
               tn_type_format(&p->in_type, has), tn_dtype_name(input->type.dtype), wanted.v ? wanted.v : "",
               input->name);
  tn_text_free(&wanted);
  return status;
}

static tn_status predict_prepare(tn_predict_command *p, const char *path) {
  tn_program_request request = {{0}};
  const tn_data_setting *data = &p->run->settings.data[TN_SPLIT_VALID];
  void *in = NULL;
  TN_TRY(tn_npy_read(&p->run->env, path, &p->in_type, &in));
  p->in = in;
  int64_t rows = p->in_type.rank > 0 ? p->in_type.dims[0] : 0;
  p->batch = data->given ? data->section.batch : 32;
  if (rows > 0 && rows < p->batch) p->batch = rows;
  request.batch[TN_PROGRAM_PREDICT] = p->batch;
  TN_TRY(tn_run_open_device(p->run, &p->device));
  request.slots = 1;
  TN_TRY(tn_programs_open(p->run, &p->run->env, p->device, &request, &p->set, &p->executor));
  p->program = p->set.programs[TN_PROGRAM_PREDICT];
  p->index = p->set.index[TN_PROGRAM_PREDICT];
  if (p->program->n_inputs != 1)
    return tn_failf(&p->run->env, TN_EINVAL, "%s: the model takes %d inputs, predict feeds one",
                    p->run->ini.path, p->program->n_inputs);
  TN_TRY(predict_check_input(p, path, &p->program->inputs[0]));
  TN_TRY(tn_executor_run(p->executor, p->set.index[TN_PROGRAM_INIT], 0));
  TN_TRY(tn_executor_slot_wait(p->executor, 0));
  TN_TRY(tn_weights_load_required(p->run, p->executor, p->set.map, "predict"));
  return tn_programs_refresh(&p->set, p->executor);
}

static tn_status predict_run_rows(tn_predict_command *p) {
  const tn_binding *output = predict_find_binding(p->program->outputs, p->program->n_outputs, "output");
  int64_t rows = p->in_type.dims[0];
  p->out_type = output->type;
  if (p->out_type.rank < 1 || p->out_type.dims[0] != p->batch)
    return tn_failf(&p->run->env, TN_EINVAL, "%s: the model's output does not have one row per sample",
                    p->run->ini.path);
  p->out_row = tn_type_bytes(&p->out_type) / (size_t)p->batch;
  p->in_row = tn_type_bytes(&p->in_type) / (size_t)(rows > 0 ? rows : 1);
  p->out_type.dims[0] = rows;
  p->out = tn_alloc(&p->run->env, tn_size_add(tn_size_mul((size_t)rows, p->out_row), 1));
  if (p->out == NULL) return TN_ENOMEM;
  char *slot = tn_executor_input(p->executor, p->index, 0, p->program->inputs[0].name);
  const char *result = tn_executor_output(p->executor, p->index, 0, "output");
  for (int64_t row = 0; row < rows; row += p->batch) {
    int64_t n = rows - row < p->batch ? rows - row : p->batch;
    memset(slot, 0, (size_t)p->batch * p->in_row);
    memcpy(slot, p->in + (size_t)row * p->in_row, (size_t)n * p->in_row);
    TN_TRY(tn_executor_run(p->executor, p->index, 0));
    TN_TRY(tn_executor_slot_wait(p->executor, 0));
    memcpy(p->out + (size_t)row * p->out_row, result, (size_t)n * p->out_row);
  }
  return TN_OK;
}

tn_status tn_run_predict(tn_run *run, const char *input, const char *output, char **json) {
  TN_ENTER(run);
  TN_NEED(run, json, "json");
  *json = NULL;
  TN_NEED(run, input, "input");
  TN_NEED(run, output, "output");
  tn_predict_command p = {.run = run};
  tn_status status = predict_prepare(&p, input);
  if (status == TN_OK) status = predict_run_rows(&p);
  if (status == TN_OK) status = tn_npy_write(&run->env, output, &p.out_type, p.out);
  if (status == TN_OK)
    status = tn_json_take(
        run, json_pack("{s:I, s:s}", "rows", (json_int_t)p.in_type.dims[0], "output", output), json);
  tn_executor_destroy(p.executor);
  tn_programs_free(run, &p.set);
  tn_device_destroy(p.device);
  tn_release(&run->env, p.in);
  tn_release(&run->env, p.out);
  return status;
}
