/* core/ops/activations.c: activations, as composite pointwise ops. Their decompositions compute f16 and bf16
 * in f32, as a fused kernel does. */
#include <math.h>

#include "core/ops/common.h"

/* ---- relu ---- */

static tn_status relu_decompose(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_val x = tn_build_in(b, 0);
  tn_build_yield(b, 0, tn_maximum(b, x, tn_ops_zero(b, x)));
  return TN_OK;
}

/* Uses the result, so that the operand is not stored for backward. The gradient at 0 is 0. */
static tn_status relu_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_val y = tn_build_out(b, 0), dy = tn_build_out_grad(b, 0), zero = tn_ops_zero(b, y);
  tn_build_yield(b, 0, tn_where(b, tn_gt(b, y, zero), dy, zero));
  return TN_OK;
}

const tn_op tn_op_relu = {
    .item = TN_ITEM_PLAIN(tn_op, TN_OP, "relu", "max(x, 0)"),
    .schema = "(x:T) -> (y:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_POINTWISE,
    .decompose = relu_decompose,
    .grad = relu_grad,
};

/* ---- leaky_relu ---- */

static const tn_option leaky_relu_options[] = {
    TN_OPT(tn_leaky_relu_attributes, slope, TN_OPT_FLOAT, "0.01", NULL, "slope below zero"), TN_OPT_END};

const tn_op tn_op_leaky_relu = {
    .item = TN_ITEM(tn_op, TN_OP, "leaky_relu", "x, or slope * x where x is not positive",
                    tn_leaky_relu_attributes, leaky_relu_options),
    .schema = "(x:T) -> (y:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_POINTWISE,
    .formula = "y = x if x > 0 else slope * x",
};

/* ---- silu ---- */

const tn_op tn_op_silu = {
    .item = TN_ITEM_PLAIN(tn_op, TN_OP, "silu", "x sigmoid(x)"),
    .schema = "(x:T) -> (y:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_POINTWISE,
    .formula = "y = x * sigmoid(x)",
};

/* ---- gelu ---- */

/* sqrt(2 / pi) (x + 0.044715 x^3), the argument of tanh in the approximation of Hendrycks and Gimpel,
 * "Gaussian error linear units", 2016. */
static tn_val gelu_inner(tn_build *b, tn_val x) {
  double scale = M_2_SQRTPI * M_SQRT1_2;
  return tn_mul(b, x, tn_affine(b, tn_mul(b, x, x), scale * 0.044715, scale));
}

/* The normal distribution function of x, or its approximation. */
static tn_val gelu_cdf(tn_build *b, tn_val x, int32_t approximate) {
  tn_val v = approximate ? tn_tanh(b, gelu_inner(b, x)) : tn_erf(b, tn_affine(b, x, M_SQRT1_2, 0));
  return tn_affine(b, v, 0.5, 0.5);
}

static tn_status gelu_decompose(tn_build *b, const void *attributes) {
  const tn_gelu_attributes *a = attributes;
  tn_val x = tn_ops_wide(b, tn_build_in(b, 0));
  tn_val y = tn_mul(b, x, gelu_cdf(b, x, a->approximate));
  tn_build_yield(b, 0, tn_to_dtype(b, y, tn_val_type(b, tn_build_in(b, 0))->dtype));
  return TN_OK;
}

static tn_status gelu_grad_rule(tn_build *b, const void *attributes) {
  const tn_gelu_attributes *a = attributes;
  tn_build_yield(b, 0, tn_gelu_grad(b, tn_build_out_grad(b, 0), tn_build_in(b, 0), a->approximate));
  return TN_OK;
}

static const tn_option gelu_options[] = {TN_OPT(tn_gelu_attributes, approximate, TN_OPT_ENUM, "none",
                                                "none|tanh", "exact, or the tanh approximation"),
                                         TN_OPT_END};

const tn_op tn_op_gelu = {
    .item = TN_ITEM(tn_op, TN_OP, "gelu", "x times the normal distribution function of x", tn_gelu_attributes,
                    gelu_options),
    .schema = "(x:T) -> (y:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_POINTWISE,
    .decompose = gelu_decompose,
    .grad = gelu_grad_rule,
    .notes = "D. Hendrycks, K. Gimpel, \"Gaussian error linear units\", 2016.",
};

/* The derivative of gelu_cdf, the density of the normal distribution, or of its approximation. */
static tn_val gelu_density(tn_build *b, tn_val x, int32_t approximate) {
  tn_val square = tn_mul(b, x, x);
  if (!approximate)
    return tn_affine(b, tn_exp(b, tn_affine(b, square, -0.5, 0)), M_2_SQRTPI * M_SQRT1_2 * 0.5, 0);
  double scale = M_2_SQRTPI * M_SQRT1_2;
  tn_val t = tn_tanh(b, gelu_inner(b, x)), slope = tn_affine(b, square, 3 * scale * 0.044715, scale);
  return tn_mul(b, tn_affine(b, tn_mul(b, t, t), -0.5, 0.5), slope);
}

/* Uses the operand alone, so that no other value is stored for backward. */
static tn_status gelu_grad_decompose(tn_build *b, const void *attributes) {
  const tn_gelu_attributes *a = attributes;
  tn_val dy = tn_ops_wide(b, tn_build_in(b, 0)), x = tn_ops_wide(b, tn_build_in(b, 1));
  tn_val slope = tn_add(b, gelu_cdf(b, x, a->approximate), tn_mul(b, x, gelu_density(b, x, a->approximate)));
  tn_build_yield(b, 0, tn_to_dtype(b, tn_mul(b, dy, slope), tn_val_type(b, tn_build_in(b, 0))->dtype));
  return TN_OK;
}

const tn_op tn_op_gelu_grad = {
    .item = TN_ITEM(tn_op, TN_OP, "gelu_grad", "gradient of gelu", tn_gelu_attributes, gelu_options),
    .schema = "(dy:T, x:T) -> (dx:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_POINTWISE,
    .decompose = gelu_grad_decompose,
};
