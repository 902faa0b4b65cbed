/* core/export/onnx/weight_data.c: the contents of initializers: read, transposed, folded, rounded. */
#include <math.h>
#include <string.h>

#include "core/base/element.h"
#include "core/export/onnx/write.h"

typedef struct weight_norm {
  float *factor, *shift; /* by channel */
} weight_norm;

/* A vector of a state, or of one number where the path is NULL. */
static tn_status weight_vector(const export_writer *w, const char *path, int64_t n, float otherwise,
                               float *to) {
  for (int64_t i = 0; i < n; i++) to[i] = otherwise;
  return path != NULL ? w->request->read(w->request->context, path, to, (size_t)n * sizeof *to) : TN_OK;
}

/* f = weight / sqrt(variance + epsilon), and (bias - mean) f + shift. */
static tn_status weight_norm_compute(const export_writer *w, const export_norm *norm, float *v[5]) {
  int64_t n = norm->channels;
  TN_TRY(weight_vector(w, norm->mean, n, 0, v[0]));
  TN_TRY(weight_vector(w, norm->variance, n, 1, v[1]));
  TN_TRY(weight_vector(w, norm->weight, n, 1, v[2]));
  TN_TRY(weight_vector(w, norm->bias, n, 0, v[3]));
  TN_TRY(weight_vector(w, norm->kernel_bias, n, 0, v[4]));
  for (int64_t i = 0; i < n; i++) {
    double factor = v[2][i] / sqrt((double)v[1][i] + norm->epsilon);
    v[3][i] = (float)((v[4][i] - (double)v[0][i]) * factor + v[3][i]);
    v[2][i] = (float)factor;
  }
  return TN_OK;
}

static tn_status weight_norm_read(const export_writer *w, const export_norm *norm, float *room,
                                  weight_norm *made) {
  float *v[5];
  for (int i = 0; i < 5; i++) v[i] = room + i * norm->channels;
  TN_TRY(weight_norm_compute(w, norm, v));
  *made = (weight_norm){v[2], v[3]};
  return TN_OK;
}

/* The kernel with the factor of each channel, or the shifts alone. */
static tn_status weight_fold(const export_writer *w, const export_weight *weight, float *to) {
  const export_norm *norm = weight->norm;
  int64_t count = tn_type_count(&weight->type), row = count / (norm->channels > 0 ? norm->channels : 1);
  weight_norm made;
  float *room = tn_alloc(w->request->env, (size_t)norm->channels * 5 * sizeof *room + 1);
  if (room == NULL) return TN_ENOMEM;
  tn_status status = weight_norm_read(w, norm, room, &made);
  if (status == TN_OK && weight->is_shift) memcpy(to, made.shift, (size_t)count * sizeof *to);
  if (status == TN_OK && !weight->is_shift) {
    status = w->request->read(w->request->context, weight->path, to, (size_t)count * sizeof *to);
    for (int64_t i = 0; i < count; i++) to[i] *= made.factor[i / row];
  }
  tn_release(w->request->env, room);
  return status;
}

static void weight_exchange(const tn_type *to_type, size_t element, const char *from, char *to) {
  int64_t rows = to_type->dims[0], columns = to_type->dims[1];
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < columns; k++)
      memcpy(to + (size_t)(i * columns + k) * element, from + (size_t)(k * rows + i) * element, element);
}

static void weight_round(const tn_type *from_type, const void *from, int32_t dtype, void *to) {
  int64_t count = tn_type_count(from_type);
  for (int64_t i = 0; i < count; i++)
    tn_element_store(dtype, to, i, tn_element_load(from_type->dtype, from, i));
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
  TN_TRY(weight->norm != NULL
             ? weight_fold(w, weight, (float *)(void *)state)
             : w->request->read(w->request->context, weight->path, state, tn_type_bytes(&type)));
  if (weight->transposed) weight_exchange(&type, tn_dtype_size(type.dtype), state, turned);
  const char *from = weight->transposed ? turned : state;
  if (weight->type.dtype != type.dtype)
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
