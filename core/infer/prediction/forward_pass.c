#include "core/infer/prediction/forward_pass.h"

#include <string.h>

#include "core/base/rows.h"
#include "core/distributed/ranks/devices.h"
#include "core/infer/prediction/load_trained.h"
#include "core/records/learnt/learnt.h"
#include "core/records/checkpoints/mapped_weights.h"
#include "core/step/checks/check_model.h"
#include "core/step/values/finite_rows.h"

/* ---- programs and weights ---- */

static tn_status forward_add_output(tn_forward *f, const tn_binding *output) {
  const tn_type *type = &output->type;
  char text[TN_TYPE_TEXT];
  tn_output_rows *rows = &f->outputs[f->n_outputs++];
  if (type->rank < 1 || type->dims[0] != f->batch)
    return tn_failf(&f->run->env, TN_EINVAL,
                    "%s: the model's output '%s' is %s for %lld samples, expected one row per sample",
                    f->run->ini.path, output->name, tn_type_format(type, text), (long long)f->batch);
  *rows = (tn_output_rows){.name = output->name, .row = tn_type_row(type)};
  rows->row_bytes = tn_type_bytes(&rows->row);
  return TN_OK;
}

static tn_status forward_find_outputs(tn_forward *f) {
  const tn_binding *first = tn_program_main_output(f->program);
  if (first == NULL)
    return tn_failf(&f->run->env, TN_EINVAL, "%s: the model has no output", f->run->ini.path);
  f->outputs = tn_arena_alloc(&f->run->arena, tn_size_mul((size_t)f->program->n_outputs, sizeof *f->outputs));
  if (f->outputs == NULL) return TN_ENOMEM;
  TN_TRY(forward_add_output(f, first));
  for (int32_t i = 0; i < f->program->n_outputs; i++)
    if (&f->program->outputs[i] != first) TN_TRY(forward_add_output(f, &f->program->outputs[i]));
  return TN_OK;
}

tn_status tn_forward_open(tn_run *run, int64_t batch, int64_t length, tn_forward *f) {
  *f = (tn_forward){
      .run = run, .batch = batch, .length = length > 0 ? length : tn_settings_longest(&run->settings)};
  tn_program_request request = {.slots = TN_FORWARD_SLOTS, .length = length};
  request.batch[TN_PROGRAM_PREDICT] = batch;
  TN_TRY(tn_run_open_device(run, &f->device));
  TN_TRY(tn_mapped_weights_open_configured(run, f->device, &f->mapped));
  request.mapped = tn_mapped_weights_states(f->mapped);
  TN_TRY(tn_programs_open(run, &run->env, f->device, &request, &f->set, &f->executor));
  f->program = f->set.programs[TN_PROGRAM_PREDICT];
  f->index = f->set.index[TN_PROGRAM_PREDICT];
  return forward_find_outputs(f);
}

tn_status tn_forward_load_weights(tn_forward *f, const char *command) {
  f->run->learnt = NULL; /* of an earlier call of the run */
  return tn_load_trained(f->run, &f->set, f->executor, command);
}

void tn_forward_close(tn_forward *f) {
  tn_loader_destroy(f->loader);
  tn_executor_destroy(f->executor);
  tn_programs_free(f->run, &f->set);
  tn_mapped_weights_close(f->mapped);
  tn_device_destroy(f->device);
}

/* ---- the loader ---- */

/* Checks the field of an input that the program reads. */
static tn_status forward_check_field(tn_forward *f, const tn_binding *input, const char *what) {
  char has[TN_TYPE_TEXT], wanted[TN_TYPE_TEXT];
  tn_signature_field expected = tn_field_of_input(input->name, &input->type);
  for (int32_t i = 0; i < tn_loader_field_count(f->loader); i++) {
    const tn_field *field = tn_loader_field(f->loader, i);
    if (!tn_text_equal(field->name, input->name)) continue;
    if (tn_type_equal(&field->type, &expected.type)) return TN_OK;
    return tn_failf(&f->run->env, TN_EINVAL, "%s: '%s' is %s behind the transforms, the model's input %s",
                    what, field->name, tn_type_format(&field->type, has),
                    tn_type_format(&expected.type, wanted));
  }
  return tn_failf(&f->run->env, TN_EINVAL, "%s: gives no '%s', which the model reads", what, input->name);
}

/* Fields that the program does not read get memory of their own. */
static tn_status forward_bind_slot(tn_forward *f, int32_t slot) {
  int32_t n = tn_loader_field_count(f->loader);
  f->fields[slot] = tn_arena_alloc(&f->run->arena, tn_size_mul((size_t)n, sizeof(void *)));
  f->ids[slot] = tn_arena_alloc(&f->run->arena, tn_size_mul((size_t)f->batch, sizeof(int64_t)));
  if (f->fields[slot] == NULL || f->ids[slot] == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) {
    const tn_field *field = tn_loader_field(f->loader, i);
    void *to = tn_executor_input(f->executor, f->index, slot, field->name);
    if (to == NULL)
      to = tn_arena_alloc(&f->run->arena, tn_size_mul(tn_type_bytes(&field->type), (size_t)f->batch));
    if (to == NULL) return TN_ENOMEM;
    f->fields[slot][i] = to;
  }
  return TN_OK;
}

tn_status tn_forward_attach(tn_forward *f, const tn_loader_options *given, const char *what) {
  tn_loader_options options = *given;
  options.batch = f->batch;
  TN_TRY(tn_learnt_text(f->run, options.source, &options.learnt));
  TN_TRY(tn_fields_padded(f->run, &options));
  options.lengths = &f->length; /* all batches have the length of the program */
  options.n_lengths = options.n_padded > 0 ? 1 : 0;
  options.shards = 1;
  options.accumulate = 1;
  options.prefetch = TN_FORWARD_SLOTS;
  options.pad_last = true;
  options.seed = (uint64_t)f->run->settings.run.seed;
  options.stop = &f->run->stop;
  TN_TRY(tn_loader_create(&f->run->env, &options, &f->loader));
  f->count = tn_loader_samples(f->loader);
  for (int32_t i = 0; i < f->program->n_inputs; i++)
    if (!tn_input_is_of_host(f->program->inputs[i].name))
      TN_TRY(forward_check_field(f, &f->program->inputs[i], what));
  for (int32_t slot = 0; slot < TN_FORWARD_SLOTS; slot++) TN_TRY(forward_bind_slot(f, slot));
  return TN_OK;
}

/* ---- running ---- */

static tn_status forward_submit(tn_forward *f, int32_t slot) {
  tn_batch batch = {.fields = f->fields[slot], .ids = f->ids[slot]};
  return tn_loader_submit(f->loader, &batch);
}

tn_status tn_forward_run(tn_forward *f, tn_forward_rows rows, void *context) {
  int64_t first = 0, n;
  TN_TRY(tn_loader_start(f->loader, 0, 0));
  for (int32_t slot = 0; slot < TN_FORWARD_SLOTS; slot++) TN_TRY(forward_submit(f, slot));
  for (int32_t slot = 0; first < f->count; slot = (slot + 1) % TN_FORWARD_SLOTS) {
    TN_TRY(tn_loader_wait(f->loader, &n));
    TN_TRY(tn_executor_run(f->executor, f->index, slot));
    TN_TRY(tn_executor_slot_wait(f->executor, slot));
    TN_TRY(rows(context, slot, first, n));
    TN_TRY(forward_submit(f, slot));
    first += n;
  }
  return TN_OK;
}

const void *tn_forward_output(const tn_forward *f, int32_t slot, int32_t k) {
  return tn_executor_output(f->executor, f->index, slot, f->outputs[k].name);
}

bool tn_forward_row_is_finite(const tn_forward *f, int32_t slot, int64_t row) {
  for (int32_t i = 0; i < tn_loader_field_count(f->loader); i++) {
    const tn_field *field = tn_loader_field(f->loader, i);
    const char *value = (const char *)f->fields[slot][i] + (size_t)row * tn_type_bytes(&field->type);
    if (field->role == TN_FIELD_INPUT && !tn_row_is_finite(&field->type, value)) return false;
  }
  for (int32_t k = 0; k < f->n_outputs; k++) {
    const tn_output_rows *output = &f->outputs[k];
    const char *value = (const char *)tn_forward_output(f, slot, k) + (size_t)row * output->row_bytes;
    if (!tn_row_is_finite(&output->row, value)) return false;
  }
  return true;
}
