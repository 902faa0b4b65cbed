/* core/onnx/rows/quantized.c: whole numbers that stand for real ones, (x - zero) * scale. Weights become the
 * real numbers; the values between layers are rounded as the file has it. */
#include <math.h>
#include <string.h>

#include "core/onnx/import.h"

/* ---- scales ---- */

/* Operand i, a scale or a zero, beside a tensor of `rank` dimensions along an axis, as f32. */
static const char *quantum_text(const onnx_use *n, int32_t i, int32_t rank, int32_t axis) {
  const tn_type own = *onnx_type(n, i);
  int64_t count;
  const double *known = onnx_peek(n, i, &count);
  if (known != NULL && count == 1 && onnx_operand(n, i)->line == NULL) return onnx_float_text(n, known[0]);
  const char *text = onnx_text_of(n, i, false), *parts = "";
  int64_t block = onnx_whole(n, "block_size", 0);
  if (text == NULL) return NULL;
  if (own.dtype != TN_F32) text = onnx_print(n, "cast(%s, to=f32)", text);
  if (own.rank == 0) return text;
  if (tn_type_count(&own) == 1 && own.rank == 1) return onnx_print(n, "op.reshape(%s, dims=[])", text);
  if (block > 0) return onnx_print(n, "repeat_interleave(%s, %lld, axis=%d)", text, (long long)block, axis);
  if (own.rank != 1 || axis < 0) return text;
  for (int32_t k = axis + 1; k < rank; k++) parts = onnx_print(n, "%s, None", parts);
  return parts[0] != '\0' ? onnx_let(n, "(%s)[:%s]", text, parts) : text;
}

/* Operand i with its scale and zero, operands i + 1 and i + 2, as real numbers. */
static const char *real_text(const onnx_use *n, int32_t i, int32_t scale, int32_t axis) {
  int32_t rank = onnx_type(n, i)->rank;
  const char *x = onnx_text_of(n, i, false), *by = quantum_text(n, scale, rank, axis);
  if (x == NULL || by == NULL) return NULL;
  if (!onnx_has(n, scale + 1)) return onnx_let(n, "cast(%s, to=f32) * %s", x, by);
  const char *zero = quantum_text(n, scale + 1, rank, axis);
  return zero != NULL ? onnx_let(n, "(cast(%s, to=f32) - %s) * %s", x, zero, by) : NULL;
}

/* ---- ranges ---- */

typedef struct quantum_range {
  double low, high;
  int32_t dtype;
} quantum_range;

static tn_status range_of(const onnx_use *n, int32_t data_type, quantum_range *r) {
  static const struct {
    int32_t data_type, dtype;
    double low, high;
  } rows[] = {{TN_ONNX_UINT8, TN_U8, 0, 255},     {TN_ONNX_INT8, TN_I8, -128, 127},
              {TN_ONNX_UINT16, TN_I32, 0, 65535}, {TN_ONNX_INT16, TN_I32, -32768, 32767},
              {TN_ONNX_UINT4, TN_U8, 0, 15},      {TN_ONNX_INT4, TN_I8, -8, 7},
              {TN_ONNX_UINT2, TN_U8, 0, 3},       {TN_ONNX_INT2, TN_I8, -2, 1}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].data_type == data_type) {
      *r = (quantum_range){rows[i].low, rows[i].high, rows[i].dtype};
      return TN_OK;
    }
  return ONNX_REFUSE(n, "rounding to %s", tn_onnx_type_name(data_type));
}

/* x in multiples of the scale, operand i, from the zero behind it on. */
static tn_status quantize(const onnx_use *n, const char *x, int32_t i, int32_t rank, int32_t axis) {
  quantum_range r = {0, 0, TN_ANY};
  bool has = onnx_has(n, i + 1);
  int64_t given = onnx_whole(n, "output_dtype", 0);
  TN_TRY(range_of(n, given != 0 ? (int32_t)given : has ? onnx_data_type(n, i + 1) : TN_ONNX_UINT8, &r));
  const char *scale = quantum_text(n, i, rank, axis), *zero = has ? quantum_text(n, i + 1, rank, axis) : "0";
  if (x == NULL || scale == NULL || zero == NULL) return onnx_failed(n);
  return onnx_compute(n, "cast(clip(round(%s / %s) + %s, min=%s, max=%s), to=%s)", x, scale, zero,
                      onnx_float_text(n, r.low), onnx_float_text(n, r.high), tn_dtype_name(r.dtype));
}

static int32_t quantum_axis(const onnx_use *n) {
  return onnx_axis(onnx_whole(n, "axis", 1), onnx_type(n, 0)->rank);
}

static tn_status row_quantize(const onnx_use *n) {
  tn_status status = quantize(n, onnx_text_of(n, 0, false), 1, onnx_type(n, 0)->rank, quantum_axis(n));
  if (status == TN_OK && onnx_has(n, 2)) onnx_find(n->m, n->node->out[0])->data_type = onnx_data_type(n, 2);
  return status;
}

/* ---- weights ---- */

/* Scales and zeros of a weight along an axis; one of each where `count` is 1. */
typedef struct weight_scale {
  const double *scale, *zero;  /* zero may be NULL */
  int64_t count, inner, block; /* inner: elements behind the axis; block: of the axis that share a scale */
  int64_t size;                /* of the axis */
} weight_scale;

static void weight_real(const void *how, const tn_type *type, const float *from, float *to) {
  const weight_scale *s = how;
  int64_t blocks = (s->size + s->block - 1) / s->block;
  for (int64_t i = 0; i < tn_type_count(type); i++) {
    int64_t at = i / s->inner % s->size, k = 0;
    if (s->count > 1 && s->block == 1) k = at;
    if (s->block > 1) k = (i / (s->inner * s->size) * blocks + at / s->block) * s->inner + i % s->inner;
    to[i] = (from[i] - (float)(s->zero != NULL ? s->zero[k] : 0)) * (float)s->scale[k];
  }
}

/* "fc.weight" of "fc.weight_quantized". */
static const char *weight_plain_name(const onnx_use *n, const char *name) {
  const char *end = strstr(name, "_quantized");
  return end != NULL ? onnx_print(n, "%.*s", (int)(end - name), name) : name;
}

/* Whether operand 0 is a tensor of the file with known scales; *tensor has the real numbers then. */
static tn_status weight_dequantize(const onnx_use *n, const tn_onnx_tensor **tensor) {
  const onnx_value *x = onnx_operand(n, 0);
  int64_t count = 0, zeros = 0, block = onnx_whole(n, "block_size", 0);
  const double *scale = onnx_peek(n, 1, &count), *zero = onnx_has(n, 2) ? onnx_peek(n, 2, &zeros) : NULL;
  int32_t axis = quantum_axis(n);
  *tensor = NULL;
  if (x->tensor == NULL || x->line != NULL || scale == NULL || (onnx_has(n, 2) && zero == NULL)) return TN_OK;
  if (axis < 0 && count > 1) return ONNX_REFUSE(n, "an axis that the operand lacks");
  weight_scale *s = tn_arena_alloc(&n->m->arena, sizeof *s);
  if (s == NULL) return TN_ENOMEM;
  *s = (weight_scale){scale, zero, count, 1, block > 0 ? block : 1, axis >= 0 ? x->type.dims[axis] : 1};
  for (int32_t i = axis + 1; axis >= 0 && i < x->type.rank; i++) s->inner *= x->type.dims[i];
  int64_t all = tn_type_count(&x->type), own = s->size > 0 && s->inner > 0 ? all / (s->size * s->inner) : 0;
  int64_t needed = block > 0 ? own * ((s->size + block - 1) / block) * s->inner : count > 1 ? s->size : 1;
  if (count != needed || (zero != NULL && zeros != needed))
    return ONNX_REFUSE(n, "scales of another shape than the weight");
  tn_onnx_tensor *from = tn_arena_alloc(&n->m->arena, sizeof *from);
  if (from == NULL) return TN_ENOMEM;
  *from = *x->tensor;
  from->name = weight_plain_name(n, x->tensor->name);
  *tensor = onnx_derive(n->m, from, &x->type, weight_real, s);
  return *tensor != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status row_dequantize(const onnx_use *n) {
  const tn_onnx_tensor *tensor;
  TN_TRY(weight_dequantize(n, &tensor));
  if (tensor != NULL) return onnx_bind_tensor(n, tensor, true);
  const char *y = real_text(n, 0, 1, quantum_axis(n));
  return y != NULL ? onnx_bind(n, 0, y) : onnx_failed(n);
}

/* ---- operators on whole numbers ---- */

/* Operand i less its zero, as doubles, which hold all sums. */
static const char *moved_text(const onnx_use *n, int32_t i, int32_t zero, int32_t axis) {
  const char *x = onnx_text_of(n, i, false);
  if (x == NULL || !onnx_has(n, zero)) return x != NULL ? onnx_print(n, "cast(%s, to=f64)", x) : NULL;
  const char *by = quantum_text(n, zero, onnx_type(n, i)->rank, axis);
  return by != NULL ? onnx_print(n, "cast(cast(%s, to=f32) - %s, to=f64)", x, by) : NULL;
}

static tn_status row_matmul_integer(const onnx_use *n) {
  int32_t rank = onnx_type(n, 0)->rank;
  const char *a = moved_text(n, 0, 2, rank - 2), *b = moved_text(n, 1, 3, onnx_type(n, 1)->rank - 1);
  return a != NULL && b != NULL ? onnx_compute(n, "cast(matmul(%s, %s), to=i32)", a, b) : onnx_failed(n);
}

static tn_status row_conv_integer(const onnx_use *n) {
  const char *x = moved_text(n, 0, 2, 1), *w = moved_text(n, 1, 3, 0);
  if (x == NULL || w == NULL) return onnx_failed(n);
  const char *y = onnx_conv_text(n, 1, onnx_print(n, "%s, %s", x, w));
  return y != NULL ? onnx_compute(n, "cast(%s, to=i32)", y) : onnx_failed(n);
}

static tn_status row_quantized_matmul(const onnx_use *n) {
  int32_t rank = onnx_type(n, 0)->rank;
  const char *a = real_text(n, 0, 1, rank - 2), *b = real_text(n, 3, 4, onnx_type(n, 3)->rank - 1);
  const char *y = a != NULL && b != NULL ? onnx_let(n, "matmul(%s, %s)", a, b) : NULL;
  return y != NULL ? quantize(n, y, 6, rank, rank - 1) : onnx_failed(n);
}

static tn_status row_quantized_conv(const onnx_use *n) {
  const char *x = real_text(n, 0, 1, 1), *w = real_text(n, 3, 4, 0);
  if (x == NULL || w == NULL) return onnx_failed(n);
  const char *all = onnx_print(n, "%s, %s", x, w);
  if (onnx_has(n, 8)) { /* of whole numbers, with the scales of both */
    const char *bias = onnx_text_of(n, 8, false), *a = quantum_text(n, 1, 1, 0),
               *b = quantum_text(n, 4, 1, 0);
    if (bias == NULL || a == NULL || b == NULL) return onnx_failed(n);
    all = onnx_print(n, "%s, cast(%s, to=f32) * %s * %s", all, bias, a, b);
  }
  const char *conv = onnx_conv_text(n, 3, all), *y = conv != NULL ? onnx_let(n, "%s", conv) : NULL;
  return y != NULL ? quantize(n, y, 6, onnx_type(n, 0)->rank, 1) : onnx_failed(n);
}

/* The scale and the zero are those of the interval of x and 0. */
static tn_status row_dynamic(const onnx_use *n) {
  const char *x = onnx_text_of(n, 0, false);
  if (x == NULL) return onnx_failed(n);
  const char *low = onnx_let(n, "minimum(reduce_min(%s), 0)", x),
             *high = onnx_let(n, "maximum(reduce_max(%s), 0)", x);
  const char *scale = low != NULL && high != NULL ? onnx_let(n, "(%s - %s) / 255", high, low) : NULL;
  const char *zero = scale != NULL ? onnx_let(n, "round(clip(-%s / %s, min=0, max=255))", low, scale) : NULL;
  if (zero == NULL) return onnx_failed(n);
  if (onnx_wants(n, 1)) TN_TRY(onnx_bind(n, 1, scale));
  if (onnx_wants(n, 2)) {
    const char *start = onnx_let(n, "cast(%s, to=u8)", zero);
    if (start == NULL) return onnx_failed(n);
    TN_TRY(onnx_bind(n, 2, start));
  }
  return onnx_compute(n, "cast(clip(round(%s / %s) + %s, min=0, max=255), to=u8)", x, scale, zero);
}

const onnx_row onnx_quantized_rows[] = {
    {"QuantizeLinear", row_quantize, NULL, 2},    {"DequantizeLinear", row_dequantize, NULL, 2},
    {"DynamicQuantizeLinear", row_dynamic, NULL}, {"MatMulInteger", row_matmul_integer, NULL, 2},
    {"ConvInteger", row_conv_integer, NULL, 2},   {"QLinearMatMul", row_quantized_matmul, NULL, 8},
    {"QLinearConv", row_quantized_conv, NULL, 8}, {NULL, NULL, NULL},
};
