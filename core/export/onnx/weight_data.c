/* core/export/onnx/weight_data.c: the contents of initializers: read, transposed, folded, rounded. */
#include <math.h>
#include <string.h>

#include "core/base/element.h"
#include "core/export/onnx/write.h"

static void weight_round(const tn_type *from_type, const void *from, int32_t dtype, void *to) {
  int64_t count = tn_type_count(from_type);
  for (int64_t i = 0; i < count; i++)
    tn_element_store(dtype, to, i, tn_element_load(from_type->dtype, from, i));
}

/* Whole numbers, weight / scale. */
static void weight_quantize(const export_weight *weight, const float *from, int8_t *to) {
  int64_t count = tn_type_count(&weight->type);
  for (int64_t i = 0; i < count; i++)
    to[i] =
        (int8_t)nearbyintf(from[i] / weight->scale[export_slice_of(&weight->type, weight->scale_axis, i)]);
}

/* The type of the state, with the dimensions of the file. */
static tn_type weight_stored_type(const export_weight *weight) {
  tn_type type = weight->type;
  type.dtype = weight->stored;
  return type;
}

static tn_status weight_fill(const export_writer *w, const export_weight *weight, char *state, char *turned,
                             void *to) {
  tn_type type = weight_stored_type(weight);
  const tn_onnx_export_request *request = w->request;
  TN_TRY(weight->norm != NULL ? tn_export_fold_read(request->env, request->read, request->context,
                                                    weight->norm, weight->is_shift ? NULL : weight->path,
                                                    tn_type_count(&type), (float *)(void *)state)
                              : request->read(request->context, weight->path, state, tn_type_bytes(&type)));
  if (weight->transposed)
    tn_elements_transpose(tn_dtype_size(type.dtype), type.dims[1], type.dims[0], state, turned);
  const char *from = weight->transposed ? turned : state;
  if (weight->scale != NULL)
    weight_quantize(weight, (const float *)(const void *)from, to);
  else if (weight->type.dtype != type.dtype)
    weight_round(&type, from, weight->type.dtype, to);
  else
    memcpy(to, from, tn_type_bytes(&type));
  return TN_OK;
}

tn_status export_weight_read(const export_writer *w, const export_weight *weight, void *to) {
  tn_type type = weight_stored_type(weight);
  size_t bytes = tn_type_bytes(&type);
  char *state = tn_alloc(w->request->env, 2 * bytes + 1);
  if (state == NULL) return TN_ENOMEM;
  tn_status status = weight_fill(w, weight, state, state + bytes, to);
  tn_release(w->request->env, state);
  return status;
}
