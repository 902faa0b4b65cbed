/* core/ops/activations.c: activations, as composite pointwise ops. At kinks the gradients are PyTorch's. */
#include "core/ops/rows.h"

/* Uses the result, so that the operand is not stored for backward. The gradient at 0 is 0. */
ROW(relu, "max(x, 0)", UNARY BOTH, .formula = "y = maximum(x, 0)", .gradient = "dx = dy if y > 0 else 0");

static const tn_option leaky_relu_options[] = {
    TN_OPT(tn_leaky_relu_attributes, slope, TN_OPT_FLOAT, "0.01", "[-1e37, 1e37]", "slope below zero"),
    TN_OPT_END};

const tn_op tn_op_leaky_relu = {
    .item = TN_ITEM(tn_op, TN_OP, "leaky_relu", "x, or slope * x where x is not positive",
                    tn_leaky_relu_attributes, leaky_relu_options),
    .schema = UNARY FLOATS,
    .op_class = TN_CLASS_POINTWISE,
    .formula = "y = x if x > 0 else slope * x",
};

ROW(prelu, "x, or slope * x where x is not positive; slope is a value, or one a channel that broadcasts",
    "(x:T, slope:T) -> (y:T)" BOTH, .formula = "y = x if x > 0 else slope * x", .aliases = "PReLU");
ROW(silu, "x sigmoid(x)", UNARY FLOATS, .formula = "y = x * sigmoid(x)", .aliases = "swish");
ROW(mish, "x tanh(softplus(x))", UNARY FLOATS, .formula = "y = x * tanh(softplus(x))",
    .notes = "D. Misra, \"Mish: a self regularized non-monotonic activation function\", 2019.");
ROW(softsign, "x / (1 + |x|)", UNARY FLOATS, .formula = "y = x / (1 + abs(x))");
ROW(tanhshrink, "x - tanh(x)", UNARY FLOATS, .formula = "y = x - tanh(x)");
ROW(log_sigmoid, "logarithm of the sigmoid", UNARY FLOATS,
    .formula = "y = minimum(x, 0) - log1p(exp(-abs(x)))", .gradient = "dx = dy * sigmoid(-x)");
ROW(relu6, "x between 0 and 6", UNARY BOTH, .formula = "y = 0 if x <= 0 else 6 if x >= 6 else x",
    .gradient = "dx = dy if y > 0 and y < 6 else 0");
ROW(hardsigmoid, "x / 6 + 1/2 between 0 and 1", UNARY FLOATS,
    .formula = "y = 0 if x <= -3 else 1 if x >= 3 else (x + 3) / 6",
    .gradient = "dx = dy / 6 if y > 0 and y < 1 else 0");
ROW(hardswish, "x hardsigmoid(x)", UNARY FLOATS, .formula = "y = x * hardsigmoid(x)");
ROW(selu, "scaled elu, of mean 0 and variance 1", UNARY FLOATS,
    .formula = "y = 1.0507009873554805 * x if x > 0 else 1.7580993408473768 * expm1(x)",
    .gradient = "dx = 1.0507009873554805 * dy if x > 0 else dy * (1.7580993408473768 * exp(x))",
    .notes = "G. Klambauer et al., \"Self-normalizing neural networks\", 2017.");

ROW_WITH(elu, "x, or alpha (exp(x) - 1) where x is not positive",
         NUMBERS(NUMBER(0, "alpha", "1", NULL, "size of the lower limit")), UNARY FLOATS,
         .formula = "y = x if x > 0 else alpha * expm1(x)",
         .gradient = "dx = dy if x > 0 else dy * (alpha * exp(x))",
         .notes = "D.-A. Clevert et al., \"Fast and accurate deep network learning by exponential linear "
                  "units\", 2015.");
ROW_WITH(celu, "x, or alpha (exp(x / alpha) - 1) where x is not positive",
         NUMBERS(NUMBER(0, "alpha", "1", NULL, "size of the lower limit")), UNARY FLOATS,
         .formula = "y = x if x > 0 else alpha * expm1(x / alpha)",
         .gradient = "dx = dy if x > 0 else dy * exp(x / alpha)",
         .notes = "J. T. Barron, \"Continuously differentiable exponential linear units\", 2017.");
ROW_WITH(softplus, "log(1 + exp(beta x)) / beta; x where beta x is above the threshold",
         NUMBERS(NUMBER(0, "beta", "1", NULL, "sharpness"),
                 NUMBER(1, "threshold", "20", NULL, "from which beta * x on it is x")),
         UNARY FLOATS, .formula = "w = beta * x; y = x if w > threshold else log1p(exp(w)) / beta",
         .gradient = "w = beta * x; dx = dy if w > threshold else dy * sigmoid(w)");
ROW_WITH(softshrink, "x, moved toward 0 by lambda", NUMBERS(NUMBER(0, "lambda", "0.5", ">= 0", "distance")),
         UNARY FLOATS, .formula = "y = x - lambda if x > lambda else x + lambda if x < -lambda else 0 * x",
         .gradient = "dx = 0 if x >= -lambda and x <= lambda else dy");
ROW_WITH(hardshrink, "x, or 0 where x is lambda or less away from it",
         NUMBERS(NUMBER(0, "lambda", "0.5", ">= 0", "distance")), UNARY FLOATS,
         .formula = "y = 0 if x >= -lambda and x <= lambda else x");
ROW_WITH(hardtanh, "x between min and max",
         NUMBERS(NUMBER(0, "min", "-1", NULL, "lower limit"), NUMBER(1, "max", "1", NULL, "upper limit")),
         UNARY BOTH, .formula = "y = min if x <= min else max if x >= max else x");
ROW_WITH(threshold, "x, or value where x is not above the threshold",
         NUMBERS(NUMBER(0, "threshold", NULL, NULL, "which x has to be above"),
                 NUMBER(1, "value", NULL, NULL, "in its place")),
         UNARY BOTH, .formula = "y = value if x <= threshold else x");

/* ---- gelu ---- */

static const tn_option gelu_options[] = {TN_OPT(tn_gelu_attributes, approximate, TN_OPT_ENUM, "none",
                                                "none|tanh",
                                                "none: exact, with erf; tanh: the approximation with tanh"),
                                         TN_OPT_END};

/* The argument of tanh in the approximation, s (x + 0.044715 x^3) with s = sqrt(2 / pi); sqrt(1 / 2); and the
 * normal distribution function of x, or its approximation. */
#define GELU_CDF                                                                                             \
  "s = 0.79788456080286541; "                                                                                \
  "inner = x * (s * 0.044715 * (x * x) + s); "                                                               \
  "t = tanh(inner); "                                                                                        \
  "cdf = 0.5 * (t if approximate else erf(0.70710678118654752440 * x)) + 0.5; "

const tn_op tn_op_gelu = {
    .item = TN_ITEM(tn_op, TN_OP, "gelu", "x times the normal distribution function of x", tn_gelu_attributes,
                    gelu_options),
    .schema = UNARY FLOATS,
    .op_class = TN_CLASS_POINTWISE,
    .formula = GELU_CDF "y = x * cdf",
    .gradient = "dx = gelu_grad(dy, x, approximate=approximate)",
    .notes = "D. Hendrycks, K. Gimpel, \"Gaussian error linear units\", 2016.",
};

/* Uses the operand alone, so that no other value is stored for backward. The density is the derivative of the
 * distribution function: exp(-x^2 / 2) / sqrt(2 pi), or that of its approximation. */
const tn_op tn_op_gelu_grad = {
    .item = TN_ITEM(tn_op, TN_OP, "gelu_grad", "gradient of gelu", tn_gelu_attributes, gelu_options),
    .schema = "(dy:T, x:T) -> (dx:T)" FLOATS,
    .op_class = TN_CLASS_POINTWISE,
    .formula = GELU_CDF "exact = 0.39894228040143270 * exp(-0.5 * (x * x)); "
                        "slope = 3 * s * 0.044715 * (x * x) + s; "
                        "density = (0.5 - 0.5 * (t * t)) * slope if approximate else exact; "
                        "dx = dy * (cdf + x * density)",
};

/* ---- glu ---- */

enum { GATE_SIGMOID, GATE_TANH, GATE_RELU, GATE_GELU, GATE_SILU };
typedef struct glu_options {
  int64_t axis;
  int32_t gate;
} glu_options;
static const tn_option glu_rows[] = {
    TN_OPT(glu_options, axis, TN_OPT_INT, "-1", NULL, "dimension that is halved, -rank .. rank-1"),
    TN_OPT(glu_options, gate, TN_OPT_ENUM, "sigmoid", "sigmoid|tanh|relu|gelu|silu",
           "function of the second half"),
    TN_OPT_END};

static tn_val glu_gate(tn_build *b, tn_val x, int32_t gate) {
  switch (gate) {
  case GATE_TANH: return tn_tanh(b, x);
  case GATE_RELU: return tn_relu(b, x);
  case GATE_GELU: return tn_gelu(b, x, 0);
  case GATE_SILU: return tn_silu(b, x);
  default: return tn_sigmoid(b, x);
  }
}

static tn_status glu_decompose(tn_build *b, const void *attributes) {
  const glu_options *o = attributes;
  tn_val x = tn_build_in(b, 0);
  int32_t axis;
  TN_TRY(tn_ops_axis_of_x(b, o->axis, &axis));
  int64_t n = tn_val_dim(b, x, axis);
  if (n % 2 != 0)
    return tn_fail(b, TN_EINVAL, "axis", "dimension %d of x has %lld elements, expected an even number",
                   (int)axis, (long long)n);
  tn_val second = glu_gate(b, tn_slice_axis(b, x, axis, n / 2, n), o->gate);
  tn_build_yield(b, 0, tn_mul(b, tn_slice_axis(b, x, axis, 0, n / 2), second));
  return TN_OK;
}

TN_OPS_COMPOSITE(glu, "the first half of x, each element times a function of that in the second half",
                 glu_options, glu_rows, TN_CLASS_OTHER, UNARY FLOATS,
                 .notes =
                     "Y. Dauphin, A. Fan, M. Auli, D. Grangier, \"Language modeling with gated convolutional "
                     "networks\", 2017; other functions than sigmoid: N. Shazeer, \"GLU variants improve "
                     "Transformer\", 2020.");
