/* core/ops/conv.c: convolution (cross-correlation) over one to three spatial dimensions and its two
 * gradients: x is (N, C, spatial...), w is (O, C / groups, kernel...). All three ops are linear in both
 * operands, so the gradients of each are the other two. The ops over two dimensions are primitives;
 * conv_ranks.c decomposes the others. */
#include "core/ops/conv.h"

/* ---- shapes ---- */

static tn_status conv_infer(tn_infer *n) {
  const tn_type *w = n->node.in[1];
  TN_TRY(tn_conv_slide(n, n->node.attributes, tn_ops_spatial(n), n->node.in[0], w, &n->node.out[0]));
  return tn_conv_check_bias(n, n->node.in[2], w->dims[0]);
}

static tn_status conv_grad_input_infer(tn_infer *n) {
  const tn_conv2d_attributes *a = n->node.attributes;
  tn_type y, *dx = &n->node.out[0];
  tn_status status = tn_ops_check_dims(n, &a->dims, dx);
  if (status == TN_OK) status = tn_conv_slide(n, a, tn_ops_spatial(n), dx, n->node.in[1], &y);
  return status != TN_OK ? status : tn_ops_check_dims_of(n, "dy", n->node.in[0], &y);
}

static tn_status conv_grad_weight_infer(tn_infer *n) {
  const tn_conv2d_attributes *a = n->node.attributes;
  tn_type y, *dw = &n->node.out[0];
  tn_status status = tn_ops_check_dims(n, &a->dims, dw);
  if (status == TN_OK) status = tn_conv_slide(n, a, tn_ops_spatial(n), n->node.in[0], dw, &y);
  return status != TN_OK ? status : tn_ops_check_dims_of(n, "dy", n->node.in[1], &y);
}

/* ---- gradients ---- */

/* The gradients of a convolution have the dims of `like`. */
static tn_val conv_emit_dx(tn_build *b, tn_val dy, tn_val w, const tn_conv2d_attributes *a, tn_val like) {
  tn_type dims = tn_ops_type(b, like);
  return tn_conv_emit(b, "_grad_input", dy, w, 0, a, &dims);
}
static tn_val conv_emit_dw(tn_build *b, tn_val x, tn_val dy, const tn_conv2d_attributes *a, tn_val like) {
  tn_type dims = tn_ops_type(b, like);
  return tn_conv_emit(b, "_grad_weight", x, dy, 0, a, &dims);
}

static tn_status conv_grad(tn_build *b, const void *attributes) {
  tn_val x = tn_build_in(b, 0), w = tn_build_in(b, 1), dy = tn_build_out_grad(b, 0);
  int32_t rank = tn_val_type(b, x)->rank;
  int64_t all_but_channels[] = {0, 2, 3, 4};
  if (tn_build_wants_grad(b, 0)) tn_build_yield(b, 0, conv_emit_dx(b, dy, w, attributes, x));
  if (tn_build_wants_grad(b, 1)) tn_build_yield(b, 1, conv_emit_dw(b, x, dy, attributes, w));
  if (tn_build_wants_grad(b, 2)) tn_build_yield(b, 2, tn_reduce_sum(b, dy, rank - 1, all_but_channels, 0));
  return TN_OK;
}

static tn_status conv_grad_input_grad(tn_build *b, const void *attributes) {
  tn_val dy = tn_build_in(b, 0), w = tn_build_in(b, 1), g = tn_build_out_grad(b, 0);
  if (tn_build_wants_grad(b, 0)) tn_build_yield(b, 0, tn_conv_emit(b, "", g, w, 0, attributes, NULL));
  if (tn_build_wants_grad(b, 1)) tn_build_yield(b, 1, conv_emit_dw(b, g, dy, attributes, w));
  return TN_OK;
}

static tn_status conv_grad_weight_grad(tn_build *b, const void *attributes) {
  tn_val x = tn_build_in(b, 0), dy = tn_build_in(b, 1), g = tn_build_out_grad(b, 0);
  if (tn_build_wants_grad(b, 0)) tn_build_yield(b, 0, conv_emit_dx(b, dy, g, attributes, x));
  if (tn_build_wants_grad(b, 1)) tn_build_yield(b, 1, tn_conv_emit(b, "", x, g, 0, attributes, NULL));
  return TN_OK;
}

/* ---- cost ---- */

static void conv_cost(const tn_node *n, tn_cost *cost) {
  double bias = n->in[2] != NULL ? tn_ops_count(&n->out[0]) : 0;
  tn_ops_cost(n, cost, tn_conv_flops(&n->out[0], n->in[1]) + bias);
}
static void conv_grad_input_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, tn_conv_flops(n->in[0], n->in[1]));
}
static void conv_grad_weight_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, tn_conv_flops(n->in[1], &n->out[0]));
}

/* ---- descriptors ---- */

static const tn_option conv1d_options[] = {TN_CONV_OF_1(TN_CONV_OPTIONS), TN_OPT_END};
static const tn_option conv2d_options[] = {TN_CONV_OF_2(TN_CONV_OPTIONS), TN_OPT_END};
static const tn_option conv3d_options[] = {TN_CONV_OF_3(TN_CONV_OPTIONS), TN_OPT_END};
static const tn_option conv2d_grad_options[] = {TN_CONV_OF_2(TN_CONV_OPTIONS), TN_CONV_DIMS, TN_OPT_END};
static const tn_option conv3d_grad_options[] = {TN_CONV_OF_3(TN_CONV_OPTIONS), TN_CONV_DIMS, TN_OPT_END};

/* The op, its gradient by x and its gradient by w. DECOMPOSE of an op over other than two dimensions. */
#define CONV(name, help, DECOMPOSE, GRAD)                                                                    \
  const tn_op tn_op_##name = {                                                                               \
      .item = TN_ITEM(tn_op, TN_OP, #name, help, tn_conv2d_attributes, name##_options),                      \
      .schema = "(x:T, w:T, bias?:T) -> (y:T)" TN_OPS_PRODUCTS,                                              \
      .op_class = TN_CLASS_MATMUL,                                                                           \
      .infer = conv_infer,                                                                                   \
      .decompose = DECOMPOSE,                                                                                \
      .grad = GRAD,                                                                                          \
      .cost = conv_cost,                                                                                     \
      .notes = "Cross-correlation, as in PyTorch.",                                                          \
  };
#define CONV_GRADIENTS(name, DX, DW)                                                                         \
  const tn_op tn_op_##name##_grad_input = {                                                                  \
      .item = TN_ITEM(tn_op, TN_OP, #name "_grad_input", "gradient of " #name " by its input",               \
                      tn_conv2d_attributes, name##_grad_options),                                            \
      .schema = "(dy:T, w:T) -> (dx:T)" TN_OPS_FLOATS,                                                       \
      .op_class = TN_CLASS_MATMUL,                                                                           \
      .infer = conv_grad_input_infer,                                                                        \
      .decompose = DX,                                                                                       \
      .grad = conv_grad_input_grad,                                                                          \
      .cost = conv_grad_input_cost,                                                                          \
      .notes = "`dims` are those of x.",                                                                     \
  };                                                                                                         \
  const tn_op tn_op_##name##_grad_weight = {                                                                 \
      .item = TN_ITEM(tn_op, TN_OP, #name "_grad_weight", "gradient of " #name " by its weight",             \
                      tn_conv2d_attributes, name##_grad_options),                                            \
      .schema = "(x:T, dy:T) -> (dw:T)" TN_OPS_FLOATS,                                                       \
      .op_class = TN_CLASS_MATMUL,                                                                           \
      .infer = conv_grad_weight_infer,                                                                       \
      .decompose = DW,                                                                                       \
      .grad = conv_grad_weight_grad,                                                                         \
      .cost = conv_grad_weight_cost,                                                                         \
      .notes = "`dims` are those of w.",                                                                     \
  };

CONV(conv1d, "one-dimensional convolution of (N, C, W) with (O, C / groups, w)", tn_conv1d_decompose, NULL)
CONV(conv2d, "two-dimensional convolution of (N, C, H, W) with (O, C / groups, h, w)", NULL, conv_grad)
CONV(conv3d, "three-dimensional convolution of (N, C, D, H, W) with (O, C / groups, d, h, w)",
     tn_conv3d_decompose, conv_grad)
CONV_GRADIENTS(conv2d, NULL, NULL)
CONV_GRADIENTS(conv3d, tn_conv3d_grad_input_decompose, tn_conv3d_grad_weight_decompose)
