/* core/step/graphs/device_transforms.c: emits the transforms that the device applies: from the fields of the
 * loader's batch to the inputs of the model. */
#include "core/step/graphs/device_transforms.h"

#include "core/base/rows.h"
#include "core/base/text/text.h"

/* The chain of inputs under construction. */
typedef struct tn_device_transforms {
  tn_build *b;
  const tn_model_request *request;
  const tn_transform_chain *chain;
  tn_val *fields;   /* [n_outputs] of the chain: the current value; 0: not read yet */
  tn_val *in, *out; /* of one call */
} tn_device_transforms;

/* The value of a field; the first use makes it an input of the program. */
static tn_val device_transforms_field(tn_device_transforms *t, int32_t i) {
  const tn_field *field = &t->chain->fields[i];
  if (t->fields[i] != 0 || tn_build_status(t->b) != TN_OK) return t->fields[i];
  tn_type type = tn_type_batched(&field->type, t->request->batch);
  t->fields[i] = tn_graph_input(tn_builder_graph(t->b), field->name, &type);
  if (t->fields[i] == 0) tn_builder_fail(t->b, tn_builder_graph(t->b)->env->record->code);
  return t->fields[i];
}

/* Stages per batch have types with the batch. */
static tn_type device_transforms_result_type(const tn_device_transforms *t, const tn_stage *stage,
                                             int32_t k) {
  if (stage->transform->granularity == TN_PER_BATCH) return stage->out[k];
  return tn_type_batched(&stage->out[k], t->request->batch);
}

static tn_status device_transforms_check_result(tn_device_transforms *t, const tn_stage *stage, int32_t k) {
  tn_type expected = device_transforms_result_type(t, stage, k);
  char has[TN_TYPE_TEXT], wants[TN_TYPE_TEXT];
  if (t->out[k] != 0 && tn_type_equal(tn_val_type(t->b, t->out[k]), &expected)) return TN_OK;
  return tn_failf(t->b, TN_EABI, "its build yields %s as result %d, but infer says %s",
                  t->out[k] != 0 ? tn_type_format(tn_val_type(t->b, t->out[k]), has) : "nothing", (int)k,
                  tn_type_format(&expected, wants));
}

static tn_status device_transforms_call(tn_device_transforms *t, const tn_stage *stage) {
  tn_build_frame frame = {.in = t->in,
                          .n_in = stage->n + (stage->draws >= 0),
                          .yielded = t->out,
                          .n_yield = stage->n,
                          .prefix = stage->transform->item.name,
                          .where = stage->where,
                          .training = t->request->training,
                          .seed = t->request->seed};
  tn_builder_push(t->b, &frame);
  tn_status status = stage->transform->build(t->b, stage->options);
  if (status != TN_OK) tn_builder_fail(t->b, status);
  status = tn_build_status(t->b);
  tn_builder_pop(t->b);
  for (int32_t k = 0; status == TN_OK && k < stage->n; k++)
    status = device_transforms_check_result(t, stage, k);
  return status;
}

static tn_status device_transforms_run_stage(tn_device_transforms *t, const tn_stage *stage) {
  for (int32_t k = 0; k < stage->n; k++) {
    t->in[k] = device_transforms_field(t, stage->field[k]);
    t->out[k] = 0;
  }
  if (stage->draws >= 0) t->in[stage->n] = device_transforms_field(t, stage->draws);
  tn_status status = tn_build_status(t->b);
  if (status == TN_OK) status = device_transforms_call(t, stage);
  for (int32_t k = 0; k < stage->n; k++) t->fields[stage->field[k]] = t->out[k];
  if (status == TN_OK) return TN_OK;
  status = tn_wrap(t->b, status, "%s%stransform '%s' on the device", stage->where,
                   stage->where[0] != '\0' ? ": " : "", stage->transform->item.name);
  tn_builder_fail(t->b, status);
  return status;
}

/* Implements tn_prepared_inputs.emit. The inputs are the chain's replaced fields, in their order. */
static tn_status device_transforms_emit(tn_build *b, const tn_model_request *request) {
  const tn_prepared_inputs *inputs = request->prepared;
  const tn_transform_chain *chain = inputs->context;
  size_t n = (size_t)chain->n_outputs, most = (size_t)chain->most_fields + 1;
  tn_val *values = tn_alloc(b, tn_size_mul(n + 2 * most, sizeof *values));
  if (values == NULL) return TN_ENOMEM;
  tn_device_transforms t = {b, request, chain, values, values + n, values + n + most};
  tn_status status = TN_OK;
  for (int32_t s = 0; status == TN_OK && s < chain->n_device_stages; s++)
    status = device_transforms_run_stage(&t, &tn_transform_chain_device_stages(chain)[s]);
  for (int32_t i = 0, at = 0; i < chain->n_fields; i++)
    if (values[i] != 0) inputs->v[at++].value = values[i];
  tn_release(b, values);
  return status;
}

static bool device_transforms_replace(const tn_transform_chain *chain, int32_t field) {
  int32_t from = chain->n_stages;
  return tn_transform_chain_last_stage(chain, from, from + chain->n_device_stages, field) >= 0;
}

tn_status tn_device_transforms_prepare(tn_arena *arena, const tn_transform_chain *chain, const char *where,
                                       tn_prepared_inputs *inputs) {
  *inputs = (tn_prepared_inputs){.emit = device_transforms_emit, .context = chain};
  inputs->v = tn_arena_alloc(arena, tn_size_mul((size_t)chain->n_fields, sizeof *inputs->v));
  if (inputs->v == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < chain->n_fields; i++)
    if (device_transforms_replace(chain, i))
      inputs->v[inputs->n++] = (tn_prepared_input){.name = chain->fields[i].name, .where = where};
  return TN_OK;
}
