/* core/ops/conv.c: two-dimensional convolution (cross-correlation) and its two gradients: x is (N, C, H, W),
 * w is (O, C / groups, h, w). All three ops are linear in both operands, so the gradients of each are the
 * other two. */
#include "core/ops/common.h"

/* ---- shapes ---- */

static tn_status conv2d_check_window(tn_infer *n, const tn_conv2d_attributes *a) {
  TN_TRY(tn_ops_check_list(n, "stride", &a->stride, 2, 1));
  TN_TRY(tn_ops_check_list(n, "padding", &a->padding, 2, 0));
  return tn_ops_check_list(n, "dilation", &a->dilation, 2, 1);
}

static tn_status conv2d_check_groups(tn_infer *n, int64_t groups, const tn_type *x, const tn_type *w) {
  if (x->dims[1] % groups != 0 || w->dims[0] % groups != 0)
    return tn_fail(n, TN_EINVAL, "groups",
                   "%lld groups must divide the %lld input and the %lld output channels", (long long)groups,
                   (long long)x->dims[1], (long long)w->dims[0]);
  if (w->dims[1] == x->dims[1] / groups) return TN_OK;
  return tn_fail(n, TN_EINVAL, NULL,
                 "w is %s, expected %lld as its second dimension: %lld input channels in %lld %s",
                 tn_ops_text(w).v, (long long)(x->dims[1] / groups), (long long)x->dims[1], (long long)groups,
                 groups == 1 ? "group" : "groups");
}

/* The type of the result of sliding w over x. */
static tn_status conv2d_slide(tn_infer *n, const tn_conv2d_attributes *a, const tn_type *x, const tn_type *w,
                              tn_type *y) {
  TN_TRY(conv2d_check_window(n, a));
  TN_TRY(tn_ops_check_rank(n, "x", x, 4, "batch, channels, height, width"));
  TN_TRY(tn_ops_check_rank(n, "w", w, 4, "output channels, input channels / groups, height, width"));
  TN_TRY(conv2d_check_groups(n, a->groups, x, w));
  y->dtype = x->dtype;
  y->rank = 4;
  y->dims[0] = x->dims[0];
  y->dims[1] = w->dims[0];
  for (int32_t i = 0; i < 2; i++) {
    int64_t kernel = w->dims[2 + i], padded = x->dims[2 + i], reach, twice;
    if (kernel < 1) return tn_fail(n, TN_EINVAL, NULL, "w is %s: an empty kernel", tn_ops_text(w).v);
    if (__builtin_mul_overflow(kernel - 1, a->dilation.v[i], &reach) ||
        __builtin_mul_overflow(a->padding.v[i], 2, &twice) ||
        __builtin_add_overflow(padded, twice, &padded) || reach >= padded)
      return tn_fail(
          n, TN_EINVAL, NULL,
          "the kernel of %lld with dilation %lld is larger than the input's %s of %lld with padding %lld",
          (long long)kernel, (long long)a->dilation.v[i], i == 0 ? "height" : "width",
          (long long)x->dims[2 + i], (long long)a->padding.v[i]);
    y->dims[2 + i] = (padded - reach - 1) / a->stride.v[i] + 1;
  }
  return tn_ops_check_count(n, y);
}

static tn_status conv2d_infer(tn_infer *n) {
  const tn_conv2d_attributes *a = n->node.attributes;
  const tn_type *w = n->node.in[1], *bias = n->node.in[2];
  tn_status status = conv2d_slide(n, a, n->node.in[0], w, &n->node.out[0]);
  if (status != TN_OK || bias == NULL || (bias->rank == 1 && bias->dims[0] == w->dims[0])) return status;
  return tn_fail(n, TN_EINVAL, NULL, "bias is %s, expected [%lld], one number for each output channel",
                 tn_ops_text(bias).v, (long long)w->dims[0]);
}

static tn_status conv2d_grad_input_infer(tn_infer *n) {
  const tn_conv2d_attributes *a = n->node.attributes;
  tn_type y, *dx = &n->node.out[0];
  tn_status status = tn_ops_check_dims(n, &a->dims, dx);
  if (status == TN_OK) status = conv2d_slide(n, a, dx, n->node.in[1], &y);
  return status != TN_OK ? status : tn_ops_check_dims_of(n, "dy", n->node.in[0], &y);
}

static tn_status conv2d_grad_weight_infer(tn_infer *n) {
  const tn_conv2d_attributes *a = n->node.attributes;
  tn_type y, *dw = &n->node.out[0];
  tn_status status = tn_ops_check_dims(n, &a->dims, dw);
  if (status == TN_OK) status = conv2d_slide(n, a, n->node.in[0], dw, &y);
  return status != TN_OK ? status : tn_ops_check_dims_of(n, "dy", n->node.in[1], &y);
}

/* ---- gradients ---- */

/* Each of the three ops with the window of `a`; gradients have the dims of `like`. */
static tn_val conv2d_emit(tn_build *b, tn_val x, tn_val w, const tn_conv2d_attributes *a) {
  return tn_conv2d(b, x, w, 0, 2, a->stride.v, 2, a->padding.v, 2, a->dilation.v, a->groups, a->math);
}

static tn_val conv2d_emit_dx(tn_build *b, tn_val dy, tn_val w, const tn_conv2d_attributes *a, tn_val like) {
  tn_type t = tn_ops_type(b, like);
  return tn_conv2d_grad_input(b, dy, w, 2, a->stride.v, 2, a->padding.v, 2, a->dilation.v, a->groups, a->math,
                              t.rank, t.dims);
}

static tn_val conv2d_emit_dw(tn_build *b, tn_val x, tn_val dy, const tn_conv2d_attributes *a, tn_val like) {
  tn_type t = tn_ops_type(b, like);
  return tn_conv2d_grad_weight(b, x, dy, 2, a->stride.v, 2, a->padding.v, 2, a->dilation.v, a->groups,
                               a->math, t.rank, t.dims);
}

static tn_status conv2d_grad(tn_build *b, const void *attributes) {
  tn_val x = tn_build_in(b, 0), w = tn_build_in(b, 1), dy = tn_build_out_grad(b, 0);
  int64_t all_but_channels[3] = {0, 2, 3};
  if (tn_build_wants_grad(b, 0)) tn_build_yield(b, 0, conv2d_emit_dx(b, dy, w, attributes, x));
  if (tn_build_wants_grad(b, 1)) tn_build_yield(b, 1, conv2d_emit_dw(b, x, dy, attributes, w));
  if (tn_build_wants_grad(b, 2)) tn_build_yield(b, 2, tn_reduce_sum(b, dy, 3, all_but_channels, 0));
  return TN_OK;
}

static tn_status conv2d_grad_input_grad(tn_build *b, const void *attributes) {
  tn_val dy = tn_build_in(b, 0), w = tn_build_in(b, 1), g = tn_build_out_grad(b, 0);
  if (tn_build_wants_grad(b, 0)) tn_build_yield(b, 0, conv2d_emit(b, g, w, attributes));
  if (tn_build_wants_grad(b, 1)) tn_build_yield(b, 1, conv2d_emit_dw(b, g, dy, attributes, w));
  return TN_OK;
}

static tn_status conv2d_grad_weight_grad(tn_build *b, const void *attributes) {
  tn_val x = tn_build_in(b, 0), dy = tn_build_in(b, 1), g = tn_build_out_grad(b, 0);
  if (tn_build_wants_grad(b, 0)) tn_build_yield(b, 0, conv2d_emit_dx(b, dy, g, attributes, x));
  if (tn_build_wants_grad(b, 1)) tn_build_yield(b, 1, conv2d_emit(b, x, g, attributes));
  return TN_OK;
}

/* ---- cost ---- */

/* Every element of y is a sum of C / groups * h * w products, padding included. The gradients compute the
 * same products in another order. */
static double conv2d_flops(const tn_type *y, const tn_type *w) {
  return 2 * tn_ops_count(y) * (double)w->dims[1] * (double)w->dims[2] * (double)w->dims[3];
}
static void conv2d_cost(const tn_node *n, tn_cost *cost) {
  double bias = n->in[2] != NULL ? tn_ops_count(&n->out[0]) : 0;
  tn_ops_cost(n, cost, conv2d_flops(&n->out[0], n->in[1]) + bias);
}
static void conv2d_grad_input_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, conv2d_flops(n->in[0], n->in[1]));
}
static void conv2d_grad_weight_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, conv2d_flops(n->in[1], &n->out[0]));
}

/* ---- descriptors ---- */

#define CONV2D_OPTIONS                                                                                       \
  TN_OPT(tn_conv2d_attributes, stride, TN_OPT_INTS, "[1, 1]", NULL, "step of the window: height, width"),    \
      TN_OPT(tn_conv2d_attributes, padding, TN_OPT_INTS, "[0, 0]", NULL,                                     \
             "zeros on both sides: height, width"),                                                          \
      TN_OPT(tn_conv2d_attributes, dilation, TN_OPT_INTS, "[1, 1]", NULL,                                    \
             "distance of neighbouring taps: height, width"),                                                \
      TN_OPT(tn_conv2d_attributes, groups, TN_OPT_INT, "1", ">= 1", "independent groups of channels"),       \
      TN_OPS_MATH(tn_conv2d_attributes)

static const tn_option conv2d_options[] = {CONV2D_OPTIONS, TN_OPT_END};
static const tn_option conv2d_grad_options[] = {
    CONV2D_OPTIONS, TN_OPT(tn_conv2d_attributes, dims, TN_OPT_INTS, NULL, NULL, "dimensions of the result"),
    TN_OPT_END};

const tn_op tn_op_conv2d = {
    .item = TN_ITEM(tn_op, TN_OP, "conv2d",
                    "two-dimensional convolution of (N, C, H, W) with (O, C / groups, h, w)",
                    tn_conv2d_attributes, conv2d_options),
    .schema = "(x:T, w:T, bias?:T) -> (y:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_MATMUL,
    .infer = conv2d_infer,
    .grad = conv2d_grad,
    .cost = conv2d_cost,
    .notes = "Cross-correlation, as in PyTorch.",
};

const tn_op tn_op_conv2d_grad_input = {
    .item = TN_ITEM(tn_op, TN_OP, "conv2d_grad_input", "gradient of conv2d by its input",
                    tn_conv2d_attributes, conv2d_grad_options),
    .schema = "(dy:T, w:T) -> (dx:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_MATMUL,
    .infer = conv2d_grad_input_infer,
    .grad = conv2d_grad_input_grad,
    .cost = conv2d_grad_input_cost,
    .notes = "`dims` are those of x.",
};

const tn_op tn_op_conv2d_grad_weight = {
    .item = TN_ITEM(tn_op, TN_OP, "conv2d_grad_weight", "gradient of conv2d by its weight",
                    tn_conv2d_attributes, conv2d_grad_options),
    .schema = "(x:T, dy:T) -> (dw:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_MATMUL,
    .infer = conv2d_grad_weight_infer,
    .grad = conv2d_grad_weight_grad,
    .cost = conv2d_grad_weight_cost,
    .notes = "`dims` are those of w.",
};
