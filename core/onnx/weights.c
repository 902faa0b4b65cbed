/* core/onnx/weights.c: parameters, and tensors that follow from those of the file. They are computed when the
 * file of weights is written, one after the other. */
#include <string.h>

#include "core/base/element.h"
#include "core/onnx/import.h"

tn_status onnx_add_weight(onnx_import *m, const char *path, const tn_onnx_tensor *tensor) {
  const onnx_weight weight = {.path = path, .tensor = tensor, .next = -1};
  return path != NULL && tensor != NULL ? tn_vec_push(m->env, &m->weights, weight) : TN_ENOMEM;
}

const tn_onnx_tensor *onnx_weight_tensor(onnx_import *m, const onnx_layer_weight *weight) {
  if (weight->tensor != NULL) return weight->tensor;
  const tn_onnx_tensor *tensor = onnx_find(m, weight->from)->tensor;
  return weight->transposed ? onnx_transposed(m, tensor) : tensor;
}

static tn_status weight_copy(tn_onnx_file *file, const tn_onnx_tensor *tensor, void *to) {
  (void)file;
  memcpy(to, tensor->how, tn_type_bytes(&tensor->type));
  return TN_OK;
}

const tn_onnx_tensor *onnx_make_tensor(onnx_import *m, const char *name, const tn_type *type,
                                       const double *elements) {
  tn_onnx_tensor *tensor = tn_arena_alloc(&m->arena, sizeof *tensor);
  if (tensor == NULL) return NULL;
  *tensor = (tn_onnx_tensor){.name = name,
                             .data_type = TN_ONNX_DOUBLE,
                             .type = *type,
                             .make = weight_copy,
                             .how = elements,
                             .bytes = -1};
  tensor->type.dtype = TN_F64;
  return tensor;
}

/* ---- tensors that follow from others ---- */

typedef struct derivation {
  const tn_onnx_tensor *from;
  onnx_shaping shape;
  const void *how;
} derivation;

static tn_status derive_make(tn_onnx_file *file, const tn_onnx_tensor *tensor, void *to) {
  const derivation *d = tensor->how;
  const tn_type *type = &d->from->type;
  int64_t count = tn_type_count(type);
  void *read = tn_alloc(file->env, tn_type_bytes(type) + 1);
  float *from = tn_alloc(file->env, (size_t)count * sizeof *from + 1);
  tn_status status = read != NULL && from != NULL ? tn_onnx_tensor_read(file, d->from, read) : TN_ENOMEM;
  for (int64_t i = 0; status == TN_OK && i < count; i++)
    from[i] = (float)tn_element_load(type->dtype, read, i);
  if (status == TN_OK) d->shape(d->how, type, from, to);
  tn_release(file->env, read);
  tn_release(file->env, from);
  return status;
}

const tn_onnx_tensor *onnx_derive(onnx_import *m, const tn_onnx_tensor *from, const tn_type *type,
                                  onnx_shaping shape, const void *how) {
  tn_onnx_tensor *tensor = tn_arena_alloc(&m->arena, sizeof *tensor);
  derivation *d = tn_arena_alloc(&m->arena, sizeof *d);
  if (tensor == NULL || d == NULL || from == NULL) return NULL;
  *d = (derivation){from, shape, how};
  *tensor = (tn_onnx_tensor){.name = from->name,
                             .data_type = TN_ONNX_FLOAT,
                             .type = *type,
                             .make = derive_make,
                             .how = d,
                             .bytes = -1};
  tensor->type.dtype = TN_F32;
  return tensor;
}

static void weight_transpose(const void *how, const tn_type *type, const float *from, float *to) {
  (void)how;
  int64_t rows = type->dims[type->rank - 2], columns = type->dims[type->rank - 1];
  for (int64_t at = 0; at < tn_type_count(type); at += rows * columns)
    tn_elements_transpose(sizeof *to, rows, columns, from + at, to + at);
}

bool onnx_same_tensor(const tn_onnx_tensor *x, const tn_onnx_tensor *y) {
  if (x == y || x->make != derive_make || y->make != derive_make) return x == y;
  const derivation *a = x->how, *b = y->how;
  return a->from == b->from && a->shape == b->shape && a->how == NULL && b->how == NULL;
}

const tn_onnx_tensor *onnx_transposed(onnx_import *m, const tn_onnx_tensor *from) {
  const derivation *before = from->make == derive_make ? from->how : NULL;
  if (before != NULL && before->shape == weight_transpose) return before->from;
  tn_type type = from->type;
  type.dims[type.rank - 1] = from->type.dims[type.rank - 2];
  type.dims[type.rank - 2] = from->type.dims[type.rank - 1];
  return onnx_derive(m, from, &type, weight_transpose, NULL);
}

int32_t onnx_data_type(const onnx_use *n, int32_t i) {
  const onnx_value *value = onnx_operand(n, i);
  return value->tensor != NULL && value->line == NULL ? value->tensor->data_type : value->data_type;
}

tn_status onnx_bind_tensor(const onnx_use *n, const tn_onnx_tensor *tensor, bool is_weight) {
  if (tensor == NULL) return TN_ENOMEM;
  onnx_value value = {
      .name = n->node->out[0], .tensor = tensor, .type = tensor->type, .is_weight = is_weight};
  value.type.dtype = onnx_value_dtype(tensor->data_type);
  return onnx_add_value(n->m, &value);
}
