/* core/onnx/inputs.c: inputs, tensors and outputs of the graph as values and lines. */
#include <string.h>

#include "core/formats/npy.h"
#include "core/onnx/import.h"

/* ---- inputs ---- */

static bool input_is_sized(const tn_onnx_field *field, int32_t from) {
  for (int32_t i = from; i < field->type.rank; i++)
    if (field->type.dims[i] < 0) return false;
  return field->has_shape;
}

/* Whether the field is an input, and no tensor that older files list among them. */
static bool input_is_free(const onnx_import *m, const tn_onnx_field *field) {
  const onnx_value *value = onnx_find(m, field->name);
  return value == NULL || value->tensor == NULL;
}

bool onnx_can_be_batched(const onnx_import *m) {
  int64_t size = 0;
  for (int64_t i = 0; i < m->file->graph.n_inputs; i++) {
    const tn_onnx_field *field = &m->file->graph.inputs[i];
    if (!input_is_free(m, field)) continue;
    if (field->type.rank == 0 || (size > 0 && field->type.dims[0] > 0 && field->type.dims[0] != size))
      return false;
    if (field->type.dims[0] > 0) size = field->type.dims[0];
  }
  return true;
}

bool onnx_can_be_whole(const onnx_import *m) {
  for (int64_t i = 0; i < m->file->graph.n_inputs; i++)
    if (input_is_free(m, &m->file->graph.inputs[i]) &&
        (!input_is_sized(&m->file->graph.inputs[i], 0) || m->file->graph.inputs[i].type.rank == TN_MAX_RANK))
      return false;
  return true;
}

static tn_status input_check(const onnx_import *m, const tn_onnx_field *field) {
  if (field->type.dtype == TN_ANY)
    return tn_failf(m->env, TN_EUNSUPPORTED, "input '%s' is of %s, which Tenon lacks", field->name,
                    tn_onnx_type_name(field->data_type));
  if (!field->has_shape || (field->type.rank == 0 && !m->whole))
    return tn_failf(
        m->env, TN_EUNSUPPORTED,
        "input '%s' has no dimensions, expected the batch as its first one; export the model with its shapes",
        field->name);
  for (int32_t i = 0; i < field->type.rank; i++)
    if (field->type.dims[i] == 0)
      return tn_failf(m->env, TN_EUNSUPPORTED, "input '%s': dimension %d has no elements", field->name, i);
  for (int32_t i = m->whole ? 0 : 1; i < field->type.rank; i++)
    if (field->type.dims[i] < 0)
      return tn_failf(
          m->env, TN_EUNSUPPORTED,
          "input '%s': dimension %d has no size; export the model with fixed sizes, but for the batch",
          field->name, i);
  return TN_OK;
}

/* A name of an input has no dots. */
static const char *input_name(onnx_import *m, const char *text) {
  char *name = tn_arena_strdup(&m->arena, onnx_tidy(m, text));
  for (char *c = name; c != NULL && *c != '\0'; c++)
    if (*c == '.') *c = '_';
  return name != NULL ? onnx_unused(m, name) : NULL;
}

/* The line that takes the sample out of its batch. */
static tn_status input_open(onnx_import *m, const tn_onnx_field *field, const char *name, const char **line) {
  const onnx_use n = {m, NULL, 0};
  const char *dims = onnx_list_text(&n, field->type.dims, field->type.rank, false);
  *line = onnx_unused(m, name);
  if (*line == NULL) return TN_ENOMEM;
  return onnx_add_line(m, *line, onnx_print(&n, "op.reshape(%s, dims=%s)", name, dims));
}

static tn_status input_add(onnx_import *m, const tn_onnx_field *field) {
  int32_t first = m->whole ? 0 : 1;
  TN_TRY(input_check(m, field));
  tn_type type = {.dtype = onnx_value_dtype(field->data_type), .rank = field->type.rank - first};
  memcpy(type.dims, field->type.dims + first, (size_t)type.rank * sizeof *type.dims);
  const char *name = input_name(m, field->name), *line = name;
  if (name == NULL) return TN_ENOMEM;
  if (!m->whole && m->batch == 0 && field->type.dims[0] > 0) m->batch = field->type.dims[0];
  if (m->input == NULL) m->input = name;
  TN_TRY(tn_growing_input(m->model, name, &type));
  TN_TRY(tn_vec_push(m->env, &m->inputs, ((onnx_input){name, type})));
  if (m->whole) TN_TRY(input_open(m, field, name, &line));
  return onnx_add_value(m, &(onnx_value){.name = field->name,
                                         .line = line,
                                         .type = *tn_growing_type(m->model, line),
                                         .data_type = field->data_type});
}

/* ---- tensors ---- */

/* "val_12", as the newer exporter of PyTorch calls a tensor that it has computed. */
static bool tensor_is_computed(const onnx_import *m, const char *name) {
  size_t digits = strncmp(name, "val_", 4) == 0 ? strspn(name + 4, "0123456789") : 0;
  return digits > 0 && name[4 + digits] == '\0' && strcmp(m->file->producer, "pytorch") == 0;
}

/* A constant is computed, too, as the parts of a mask: all its elements are one number, which no parameter of
 * a layer has that begins at random. */
static tn_status tensor_tell_constant(onnx_import *m, onnx_value *value) {
  double step;
  if (value->type.dtype != TN_F32 || !tensor_is_computed(m, value->name)) return TN_OK;
  value->is_weight = false; /* so that more elements are looked at */
  TN_TRY(onnx_look(m, value));
  value->is_weight = value->known == NULL || !onnx_is_even(value, &step) || step != 0;
  if (value->is_weight) value->known = NULL;
  return TN_OK;
}

static tn_status tensor_add(onnx_import *m, const char *name, const tn_onnx_tensor *tensor) {
  onnx_value value = {.name = name, .tensor = tensor, .type = tensor->type, .is_weight = true};
  value.type.dtype = onnx_value_dtype(tensor->data_type);
  TN_TRY(tensor_tell_constant(m, &value));
  return onnx_add_value(m, &value);
}

static const tn_onnx_field *tensor_field(const onnx_import *m, const char *name) {
  for (int64_t i = 0; i < m->file->graph.n_inputs; i++)
    if (strcmp(m->file->graph.inputs[i].name, name) == 0) return &m->file->graph.inputs[i];
  return NULL;
}

static tn_status tensor_copy(tn_onnx_file *file, const tn_onnx_tensor *tensor, void *to) {
  (void)file;
  memcpy(to, tensor->how, tn_type_bytes(&tensor->type));
  return TN_OK;
}

/* A value that the caller gives for an input. */
static tn_status tensor_given(onnx_import *m, const tn_onnx_given *given) {
  const tn_onnx_field *field = tensor_field(m, given->name);
  tn_onnx_tensor *tensor = tn_arena_alloc(&m->arena, sizeof *tensor);
  void *data = NULL;
  if (tensor == NULL) return TN_ENOMEM;
  if (field == NULL)
    return tn_failf(m->env, TN_EINVAL, "the model has no input '%.100s', for which %s is given", given->name,
                    given->path);
  *tensor = (tn_onnx_tensor){.name = field->name, .bytes = -1, .make = tensor_copy};
  TN_TRY(tn_npy_read(m->env, given->path, &tensor->type, &data));
  tensor->data_type = field->data_type;
  void *kept = tn_arena_alloc(&m->arena, tn_type_bytes(&tensor->type) + 1);
  if (kept != NULL) memcpy(kept, data, tn_type_bytes(&tensor->type));
  tn_release(m->env, data);
  tensor->how = kept;
  return kept != NULL ? tensor_add(m, field->name, tensor) : TN_ENOMEM;
}

tn_status onnx_begin(onnx_import *m, const tn_onnx_request *request) {
  const tn_onnx_graph *f = &m->file->graph;
  m->scope = "";
  for (int64_t i = 0; i < f->n_initializers; i++)
    TN_TRY(tensor_add(m, f->initializers[i].name, &f->initializers[i]));
  for (int32_t i = 0; i < request->n_given; i++) TN_TRY(tensor_given(m, &request->given[i]));
  if (!m->whole && !onnx_can_be_batched(m))
    return tn_failf(m->env, TN_EUNSUPPORTED,
                    "the inputs differ in their first dimension, expected the batch");
  for (int64_t i = 0; i < f->n_inputs; i++)
    if (input_is_free(m, &f->inputs[i])) TN_TRY(input_add(m, &f->inputs[i]));
  m->scope = NULL;
  return m->input != NULL ? TN_OK : tn_failf(m->env, TN_EUNSUPPORTED, "the graph has no input");
}

/* ---- outputs ---- */

static bool line_is_input(const onnx_import *m, const char *line) {
  for (size_t i = 0; i < m->inputs.n; i++)
    if (strcmp(m->inputs.v[i].name, line) == 0) return true;
  return false;
}

/* The name of an output has no dots, as that of an input, and some names are taken. */
static const char *output_name(onnx_import *m, const char *name) {
  static const char *const taken[] = {"loss", "grad_norm", "loss_scale", "skipped"};
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
    if (strcmp(name, taken[i]) == 0) return input_name(m, "result");
  return input_name(m, name);
}

/* Several outputs have the names of the file; the only one keeps that of its line, if it needs no other. */
static tn_status output_line(onnx_import *m, const char *name, const char **line) {
  const onnx_use n = {m, NULL, 0};
  const tn_type type = *tn_growing_type(m->model, *line);
  bool plain = strchr(*line, '.') == NULL && !line_is_input(m, *line);
  if (!m->whole && (m->file->graph.n_outputs == 1 || strcmp(*line, name) == 0) && plain) return TN_OK;
  int64_t dims[TN_MAX_RANK + 1] = {1};
  if (m->whole && type.rank == TN_MAX_RANK) return ONNX_REFUSE(&n, "an output of %d dimensions", TN_MAX_RANK);
  memcpy(dims + 1, type.dims, (size_t)type.rank * sizeof *dims);
  const char *from = *line;
  *line = output_name(m, name);
  if (*line == NULL) return TN_ENOMEM;
  if (m->whole)
    return onnx_add_line(
        m, *line,
        onnx_print(&n, "op.reshape(%s, dims=%s)", from, onnx_list_text(&n, dims, type.rank + 1, false)));
  return onnx_add_line(m, *line, line_is_input(m, from) ? onnx_print(&n, "copy(%s)", from) : from);
}

static tn_status output_end(onnx_import *m, const char *name) {
  const onnx_use n = {m, NULL, 0};
  const onnx_value *value = onnx_find(m, name);
  if (value->lost) return ONNX_REFUSE(&n, "'%.100s' is computed by no node", name);
  const char *line = onnx_line_of(&n, name);
  if (line == NULL) return onnx_failed(&n);
  const tn_type *type = tn_growing_type(m->model, line);
  if (!m->whole && (type->rank == 0 || type->dims[0] != ONNX_BATCH))
    return ONNX_REFUSE(&n, "'%.100s' does not have the batch as its first dimension", name);
  TN_TRY(output_line(m, name, &line));
  return tn_vec_push(m->env, &m->outputs, line);
}

tn_status onnx_end(onnx_import *m) {
  m->scope = "";
  for (int64_t i = 0; i < m->file->graph.n_outputs; i++) {
    const char *name = m->file->graph.outputs[i].name;
    if (name[0] == '\0' || (onnx_find(m, name)->lost && m->missing.n > 0)) continue;
    tn_status status = output_end(m, name);
    if (status == TN_OK) continue;
    if (status != TN_EUNSUPPORTED && status != TN_EINVAL) return status;
    TN_TRY(onnx_miss(m, "output", tn_error_text(m->env)));
    tn_error_clear(m->env);
  }
  return m->file->graph.n_outputs > 0 ? TN_OK : onnx_miss(m, "output", "the graph has none");
}
