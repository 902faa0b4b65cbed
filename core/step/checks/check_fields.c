/* core/step/checks/check_fields.c: the fields of the data against the inputs of the model. */
#include <string.h>

#include "core/base/rows.h"
#include "core/data/transform_chain.h"
#include "core/graph/input_state.h"
#include "core/step/checks/check_model.h"
#include "core/step/graphs/incremental.h"

static tn_status fields_fail_type(tn_run *run, const char *where, const tn_field *field,
                                  const tn_type *wanted) {
  char has[TN_TYPE_TEXT], wants[TN_TYPE_TEXT];
  const char *remedy = field->type.dtype == TN_U8 && wanted->dtype == TN_F32
                           ? "add to_float to transforms"
                           : "change [model] inputs or the transforms";
  return tn_failf(&run->env, TN_EINVAL, "%s: field '%s' is %s, but the model takes %s; %s", where,
                  field->name, tn_type_format(&field->type, has), tn_type_format(wanted, wants), remedy);
}

static tn_status fields_fail_missing(tn_run *run, const char *where, const tn_loader *loader,
                                     const char *name) {
  tn_text names = tn_text_new(&run->env);
  for (int32_t k = 0; k < tn_loader_field_count(loader); k++)
    tn_text_addf(&names, "%s%s", k > 0 ? ", " : "", tn_loader_field(loader, k)->name);
  tn_status status =
      tn_failf(&run->env, TN_EINVAL, "%s: the source gives no field '%s' that the model takes; it gives %s",
               where, name, names.v ? names.v : "none");
  tn_text_free(&names);
  return status;
}

static const tn_field *fields_find(const tn_loader *loader, const char *name) {
  for (int32_t k = 0; k < tn_loader_field_count(loader); k++)
    if (tn_text_equal(tn_loader_field(loader, k)->name, name)) return tn_loader_field(loader, k);
  return NULL;
}

tn_status tn_fields_check(tn_run *run, int32_t split, const tn_loader *loader,
                          const tn_signature_field *wanted, int32_t n) {
  const char *where = run->settings.data[split].where;
  for (int32_t i = 0; i < n; i++) {
    const tn_field *field = fields_find(loader, wanted[i].name);
    tn_status status = TN_OK;
    if (field == NULL)
      status = fields_fail_missing(run, where, loader, wanted[i].name);
    else if (!tn_type_equal(&field->type, &wanted[i].type))
      status = fields_fail_type(run, where, field, &wanted[i].type);
    TN_TRY(tn_ini_note(&run->env, &run->ini, status));
  }
  return TN_OK;
}

static int32_t fields_list_padded(const tn_signature_field *fields, int32_t n, tn_padded_field *padded) {
  int32_t count = 0;
  for (int32_t i = 0; i < n; i++) {
    int32_t axis = tn_signature_axis(&fields[i].type);
    if (axis >= 0) padded[count++] = (tn_padded_field){fields[i].name, axis};
  }
  return count;
}

/* The device applies no transforms where a dimension varies. */
static tn_status fields_refuse_device(tn_run *run, tn_loader_options *options) {
  int32_t on_device = options->device_transforms;
  options->device_transforms = 0;
  if (on_device <= 0) return TN_OK;
  const char *why = run->settings.sizes ? "a program of the device would have transforms of one size"
                                        : "a device would take samples before they are padded";
  return tn_failf(&run->env, TN_EINVAL, "%s: device_transforms = %d with [model] %s: %s; expected 0 or auto",
                  options->where != NULL ? options->where : run->ini.path, on_device,
                  tn_settings_lengths_key(&run->settings), why);
}

tn_status tn_fields_padded(tn_run *run, tn_loader_options *options) {
  tn_signature signature;
  const tn_settings *s = &run->settings;
  if (s->n_lengths == 0 || run->emit != NULL) return TN_OK;
  if (s->sizes) return fields_refuse_device(run, options);
  tn_status status = tn_signature_read(&run->env, &run->arena, &run->ini, &signature);
  if (status == TN_EINVAL) { /* the model tells it */
    tn_error_clear(&run->env);
    return TN_OK;
  }
  TN_TRY(status);
  size_t most = (size_t)(signature.n_inputs + signature.n_targets);
  tn_padded_field *padded = tn_arena_alloc(&run->arena, tn_size_mul(most, sizeof *padded));
  if (padded == NULL) return TN_ENOMEM;
  int32_t n = fields_list_padded(signature.inputs, signature.n_inputs, padded);
  n += fields_list_padded(signature.targets, signature.n_targets, padded + n);
  options->lengths = s->lengths;
  options->n_lengths = s->n_lengths;
  options->padded = padded;
  options->n_padded = n;
  return fields_refuse_device(run, options);
}

tn_signature_field tn_field_of_input(const char *name, const tn_type *type) {
  return (tn_signature_field){name, tn_type_row(type)};
}

bool tn_input_is_of_host(const char *name) {
  return tn_text_equal(name, "sample.weight") || tn_text_equal(name, TN_ITERATION_INPUT) ||
         tn_text_equal(name, TN_BLOCK_INPUT) || tn_text_equal(name, TN_POSITION_INPUT) ||
         tn_text_starts(name, "control.");
}

/* The inputs on which an output, a commit or an effect depends. */
static int32_t fields_collect_inputs(const tn_graph *graph, const bool *live, tn_signature_field *wanted) {
  int32_t n = 0;
  for (size_t i = 0; i < graph->inputs.n; i++) {
    tn_val value = graph->inputs.v[i];
    const tn_input_attributes *a = tn_graph_maker(graph, value)->attributes;
    if (!live[graph->values.v[value].node] || tn_input_is_of_host(a->name)) continue;
    wanted[n++] = tn_field_of_input(a->name, tn_graph_type(graph, value));
  }
  return n;
}

tn_status tn_fields_check_graph(tn_run *run, int32_t split, const tn_loader *loader, const tn_graph *graph) {
  bool *live;
  if (loader == NULL) return TN_OK;
  tn_signature_field *wanted = tn_arena_alloc(&run->arena, tn_size_mul(graph->inputs.n + 1, sizeof *wanted));
  if (wanted == NULL) return TN_ENOMEM;
  TN_TRY(tn_graph_live(graph, &live));
  tn_status status = tn_fields_check(run, split, loader, wanted, fields_collect_inputs(graph, live, wanted));
  tn_release(graph->env, live);
  return status;
}

tn_status tn_fields_check_signature(tn_run *run, int32_t split, const tn_loader *loader) {
  tn_signature signature;
  if (loader == NULL || run->emit != NULL || tn_loader_chain(loader)->n_device_stages > 0) return TN_OK;
  tn_status status = tn_signature_read(&run->env, &run->arena, &run->ini, &signature);
  if (status != TN_OK) return tn_ini_note(&run->env, &run->ini, status);    /* the model has told it */
  if (signature.word != NULL && run->settings.n_lengths == 0) return TN_OK; /* the model has told it */
  tn_signature_size(&signature, tn_settings_longest(&run->settings));
  return tn_fields_check(run, split, loader, signature.inputs, signature.n_inputs > 0 ? 1 : 0);
}
