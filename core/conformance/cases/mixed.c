/* core/conformance/cases/mixed.c: uses of several ops, as training in half precision has them: products in
 * the type of the case between norms, residuals and gradients of parameters in the type of sums. Kernels with
 * casts, slices and concatenations in their patterns are found by them. In f32 and f64 nothing is cast. */
#include "core/conformance/cases/cases.h"

static int32_t mixed_wide(const tn_draw *d) { return d->dtype == TN_F64 ? TN_F64 : TN_F32; }

static tn_val draw_mixed(tn_draw *d, int32_t dtype, int32_t rank, const int64_t *dims) {
  return tn_draw_tensor(d, tn_draw_type_of(dtype, rank, dims), TN_FILL_ANY);
}

static tn_val mixed_results(tn_draw *d, int32_t n, const tn_val *results) {
  for (int32_t i = 0; i < n; i++) d->results[i] = results[i];
  d->n_results = n;
  return results[0];
}

/* A linear layer whose result, with a bias and a residual, is in the type of sums. */
static tn_val mixed_case_linear(tn_draw *d, const tn_case *c) {
  int64_t rows[] = {tn_draw_size(d, 1, 2), tn_draw_size(d, 1, 5), tn_draw_size(d, 1, 6)};
  int64_t columns = tn_draw_size(d, 1, 5), y_dims[] = {rows[0], rows[1], columns};
  tn_val x = draw_mixed(d, d->dtype, 3, rows);
  tn_val w = draw_mixed(d, d->dtype, 2, (int64_t[]){columns, rows[2]});
  tn_val z = tn_to_dtype(d->b, tn_matmul(d->b, x, w, 0, 0, 1, TN_MATH_FULL), mixed_wide(d));
  (void)c;
  if (tn_draw_flag(d)) z = tn_add(d->b, z, draw_mixed(d, mixed_wide(d), 1, &columns));
  if (tn_draw_flag(d)) z = tn_add(d->b, draw_mixed(d, mixed_wide(d), 3, y_dims), z);
  return mixed_results(d, 1, &z);
}

/* The gradients of its weight and bias. */
static tn_val mixed_case_linear_grad(tn_draw *d, const tn_case *c) {
  int64_t rows = tn_draw_size(d, 1, 6), out = tn_draw_size(d, 1, 5), in = tn_draw_size(d, 1, 5), first = 0;
  tn_val dy = draw_mixed(d, d->dtype, 2, (int64_t[]){rows, out});
  tn_val x = draw_mixed(d, d->dtype, 2, (int64_t[]){rows, in});
  tn_val sum = tn_reduce_sum(d->b, tn_to_dtype(d->b, dy, mixed_wide(d)), 1, &first, 1);
  tn_val dw = tn_to_dtype(d->b, tn_matmul(d->b, dy, x, 0, 1, 0, TN_MATH_FULL), mixed_wide(d));
  (void)c;
  return mixed_results(d, 2, (tn_val[]){dw, sum});
}

/* Operands of a layer norm of rows, in the type of sums. */
typedef struct mixed_rows {
  tn_val x, weight, bias;
  int64_t dims[3];
} mixed_rows;

static mixed_rows draw_mixed_rows(tn_draw *d) {
  mixed_rows r = {.dims = {tn_draw_size(d, 1, 2), tn_draw_size(d, 1, 4), 4 * tn_draw_size(d, 1, 6)}};
  if (tn_draw_flag(d)) r.dims[2]--;
  r.x = draw_mixed(d, mixed_wide(d), 3, r.dims);
  r.weight = tn_draw_flag(d) ? draw_mixed(d, mixed_wide(d), 1, &r.dims[2]) : 0;
  r.bias = tn_draw_flag(d) ? draw_mixed(d, mixed_wide(d), 1, &r.dims[2]) : 0;
  return r;
}

/* A large epsilon, as in the cases of layer_norm. */
static tn_val emit_mixed_norm(tn_draw *d, const mixed_rows *r) {
  tn_draw_begin(d, "layer_norm", 3, (tn_val[]){r->x, r->weight, r->bias});
  tn_op_set_float(d->b, "epsilon", 0.1);
  return tn_op_end(d->b);
}

static tn_val mixed_case_layer_norm(tn_draw *d, const tn_case *c) {
  mixed_rows r = draw_mixed_rows(d);
  tn_val y = emit_mixed_norm(d, &r), narrow = tn_to_dtype(d->b, y, d->dtype);
  (void)c;
  return mixed_results(d, 3, (tn_val[]){narrow, tn_op_result(d->b, y, 1), tn_op_result(d->b, y, 2)});
}

/* Its gradient, which goes on through a residual and to the product before it, with the gradient of a bias.
 */
static tn_val mixed_case_layer_norm_grad(tn_draw *d, const tn_case *c) {
  mixed_rows r = draw_mixed_rows(d);
  int64_t rows[] = {r.dims[0] * r.dims[1], r.dims[2]}, first = 0;
  tn_val y = emit_mixed_norm(d, &r), dy = draw_mixed(d, d->dtype, 3, r.dims), all[5];
  tn_draw_begin(d, "layer_norm_grad", 5,
                (tn_val[]){tn_to_dtype(d->b, dy, mixed_wide(d)), r.x, tn_op_result(d->b, y, 1),
                           tn_op_result(d->b, y, 2), r.weight});
  tn_val dx = all[0] = tn_op_end(d->b);
  int32_t n = 3;
  (void)c;
  all[1] = tn_op_result(d->b, dx, 1);
  all[2] = tn_op_result(d->b, dx, 2);
  if (tn_draw_flag(d)) all[0] = tn_add(d->b, dx, draw_mixed(d, mixed_wide(d), 3, r.dims));
  if (tn_draw_flag(d)) {
    all[n++] = tn_to_dtype(d->b, all[0], d->dtype);
    if (tn_draw_flag(d)) all[n++] = tn_reduce_sum(d->b, tn_reshape(d->b, all[0], 2, rows), 1, &first, 1);
  }
  return mixed_results(d, n, all);
}

/* Images and weights of a convolution with kernels of 3x3 that keeps the size of the images. */
typedef struct mixed_conv2d {
  int64_t x[4], w[4], y[4];
} mixed_conv2d;

static mixed_conv2d draw_mixed_conv2d(tn_draw *d) {
  int64_t images = tn_draw_between(d, 1, 3), in = tn_draw_size(d, 1, 3), out = tn_draw_size(d, 1, 4);
  int64_t size = tn_draw_between(d, 2, d->large ? 20 : 6);
  return (mixed_conv2d){{images, in, size, size}, {out, in, 3, 3}, {images, out, size, size}};
}

static void begin_mixed_conv2d(tn_draw *d, const char *op, tn_val x, tn_val y) {
  static const int64_t ones[] = {1, 1};
  tn_draw_begin(d, op, 2, (tn_val[]){x, y});
  tn_op_set_ints(d->b, "stride", 2, ones);
  tn_op_set_ints(d->b, "padding", 2, ones);
  tn_op_set_ints(d->b, "dilation", 2, ones);
  tn_op_set_int(d->b, "groups", 1);
}

/* The gradient of the weight of a convolution. */
static tn_val mixed_case_conv2d_grad_weight(tn_draw *d, const tn_case *c) {
  mixed_conv2d v = draw_mixed_conv2d(d);
  tn_val x = draw_mixed(d, d->dtype, 4, v.x), dy = draw_mixed(d, d->dtype, 4, v.y);
  (void)c;
  begin_mixed_conv2d(d, "conv2d_grad_weight", x, dy);
  tn_op_set_ints(d->b, "dims", 4, v.w);
  tn_val dw = tn_to_dtype(d->b, tn_op_end(d->b), mixed_wide(d));
  return mixed_results(d, 1, &dw);
}

/* A convolution and the ReLU behind it, which are one kernel on most devices. */
static tn_val mixed_case_conv2d_relu(tn_draw *d, const tn_case *c) {
  mixed_conv2d v = draw_mixed_conv2d(d);
  tn_val x = draw_mixed(d, d->dtype, 4, v.x), w = draw_mixed(d, d->dtype, 4, v.w);
  tn_val bias = tn_draw_flag(d) ? draw_mixed(d, d->dtype, 1, v.w) : 0;
  (void)c;
  begin_mixed_conv2d(d, "conv2d", x, w);
  if (bias != 0) tn_op_arg(d->b, bias);
  tn_val y = tn_relu(d->b, tn_op_end(d->b));
  return mixed_results(d, 1, &y);
}

/* Queries, keys and values that are columns of one tensor. */
typedef struct mixed_heads {
  tn_val q, k, v;
  int64_t dims[3], heads;
  bool causal;
} mixed_heads;

static mixed_heads draw_mixed_heads(tn_draw *d) {
  mixed_heads h = {.heads = tn_draw_between(d, 1, 3), .causal = tn_draw_flag(d)};
  int64_t width = tn_draw_size(d, 1, 4);
  h.dims[0] = tn_draw_between(d, 1, 2);
  h.dims[1] = tn_draw_size(d, 1, 5);
  h.dims[2] = h.heads * width;
  tn_val x = draw_mixed(d, d->dtype, 3, (int64_t[]){h.dims[0], h.dims[1], 3 * h.dims[2]});
  h.q = tn_slice_axis(d->b, x, 2, 0, h.dims[2]);
  h.k = tn_slice_axis(d->b, x, 2, h.dims[2], 2 * h.dims[2]);
  h.v = tn_slice_axis(d->b, x, 2, 2 * h.dims[2], 3 * h.dims[2]);
  return h;
}

static tn_val emit_mixed_attention(tn_draw *d, const char *op, const mixed_heads *h, const tn_val *more,
                                   int32_t n_more) {
  tn_draw_begin(d, op, 3, (tn_val[]){h->q, h->k, h->v});
  for (int32_t i = 0; i < n_more; i++) tn_op_arg(d->b, more[i]);
  tn_op_set_int(d->b, "causal", h->causal);
  tn_op_set_int(d->b, "heads", h->heads);
  return tn_op_end(d->b);
}

static tn_val mixed_case_attention(tn_draw *d, const tn_case *c) {
  mixed_heads h = draw_mixed_heads(d);
  tn_val y = emit_mixed_attention(d, "attention", &h, NULL, 0);
  (void)c;
  return mixed_results(d, 2, (tn_val[]){y, tn_op_result(d->b, y, 1)});
}

/* Attention and its gradient, which is that of the one tensor. Only f32 and f64: in narrower types the
 * differences of the gradient cancel to noise. */
static tn_val mixed_case_attention_grad(tn_draw *d, const tn_case *c) {
  if (d->dtype != TN_F64) d->dtype = TN_F32;
  mixed_heads h = draw_mixed_heads(d);
  tn_val y = emit_mixed_attention(d, "attention", &h, NULL, 0), lse = tn_op_result(d->b, y, 1);
  tn_val dy = draw_mixed(d, d->dtype, 3, h.dims);
  tn_val dq = emit_mixed_attention(d, "attention_grad", &h, (tn_val[]){y, lse, dy}, 3);
  tn_val parts[] = {dq, tn_op_result(d->b, dq, 1), tn_op_result(d->b, dq, 2)};
  tn_val all = tn_concat(d->b, 3, parts, 2);
  (void)c;
  return mixed_results(d, 3, (tn_val[]){all, y, lse});
}

const tn_case tn_mixed_cases[] = {
    {"mixed_linear", mixed_case_linear, TN_FILL_ANY, TN_CASE_FLOATS, .forward_only = true},
    {"mixed_linear_grad", mixed_case_linear_grad, TN_FILL_ANY, TN_CASE_FLOATS, .forward_only = true},
    {"mixed_layer_norm", mixed_case_layer_norm, TN_FILL_ANY, TN_CASE_FLOATS, .forward_only = true},
    {"mixed_layer_norm_grad", mixed_case_layer_norm_grad, TN_FILL_ANY, TN_CASE_FLOATS, .forward_only = true},
    {"mixed_conv2d_grad_weight", mixed_case_conv2d_grad_weight, TN_FILL_ANY, TN_CASE_FLOATS,
     .forward_only = true},
    {"mixed_conv2d_relu", mixed_case_conv2d_relu, TN_FILL_ANY, TN_CASE_FLOATS, .forward_only = true},
    {"split_attention", mixed_case_attention, TN_FILL_ANY, TN_CASE_FLOATS, .forward_only = true,
     .masked = true},
    {"split_attention_grad", mixed_case_attention_grad, TN_FILL_ANY, TN_CASE_FLOATS, .forward_only = true,
     .masked = true},
    {NULL, NULL, 0, 0},
};
