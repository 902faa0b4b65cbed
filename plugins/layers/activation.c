/* plugins/layers/activation.c: relu, sigmoid, tanh, gelu (Hendrycks and Gimpel, 2016), silu, leaky_relu,
 * softmax, log_softmax. */
#include "plugins/layers/layers.h"

static tn_status build_relu(tn_build *b, const void *options) {
  (void)options;
  return layer_build_unary(b, "relu");
}
static tn_status build_sigmoid(tn_build *b, const void *options) {
  (void)options;
  return layer_build_unary(b, "sigmoid");
}
static tn_status build_tanh(tn_build *b, const void *options) {
  (void)options;
  return layer_build_unary(b, "tanh");
}
static tn_status build_silu(tn_build *b, const void *options) {
  (void)options;
  return layer_build_unary(b, "silu");
}

#define PLAIN(name, doc)                                                                                     \
  const tn_layer_kind layer_##name = {.item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, #name, doc),            \
                                      .min_in = 1,                                                           \
                                      .max_in = 1,                                                           \
                                      .types = "one tensor of any shape; the result has the same",           \
                                      .example = "inputs = x: f32[64]\nlayers = " #name,                     \
                                      .build = build_##name}
PLAIN(relu, "max(x, 0)");
PLAIN(sigmoid, "1 / (1 + exp(-x))");
PLAIN(tanh, "hyperbolic tangent");
PLAIN(silu, "x sigmoid(x)");

static const tn_option gelu_rows[] = {TN_OPT(tn_gelu_attributes, approximate, TN_OPT_ENUM, "none",
                                             "none|tanh",
                                             "none: exact, with erf; tanh: the approximation with tanh"),
                                      TN_OPT_END};

static tn_status build_gelu(tn_build *b, const void *given) {
  const tn_gelu_attributes *o = given;
  tn_build_yield(b, 0, tn_gelu(b, tn_build_in(b, 0), o->approximate));
  return TN_OK;
}

const tn_layer_kind layer_gelu = {.item = TN_ITEM(tn_layer_kind, TN_LAYER, "gelu",
                                                  "x times the normal distribution function of x",
                                                  tn_gelu_attributes, gelu_rows),
                                  .min_in = 1,
                                  .max_in = 1,
                                  .types = "one tensor of any shape; the result has the same",
                                  .example = "inputs = x: f32[64]\nlayers = gelu",
                                  .build = build_gelu};

static const tn_option leaky_rows[] = {
    TN_OPT(tn_leaky_relu_attributes, slope, TN_OPT_FLOAT, "0.01", "[-1e37, 1e37]", "slope for negative x"),
    TN_OPT_END};

static tn_status build_leaky(tn_build *b, const void *given) {
  const tn_leaky_relu_attributes *o = given;
  tn_build_yield(b, 0, tn_leaky_relu(b, tn_build_in(b, 0), o->slope));
  return TN_OK;
}

const tn_layer_kind layer_leaky_relu = {.item = TN_ITEM(tn_layer_kind, TN_LAYER, "leaky_relu",
                                                        "x for positive x, slope times x for negative x",
                                                        tn_leaky_relu_attributes, leaky_rows),
                                        .min_in = 1,
                                        .max_in = 1,
                                        .types = "one tensor of any shape; the result has the same",
                                        .example = "inputs = x: f32[64]\nlayers = leaky_relu(0.2)",
                                        .build = build_leaky};

static const tn_option axis_rows[] = {
    TN_OPT(tn_axis_attributes, axis, TN_OPT_INT, "-1", NULL, "the dimension whose results sum to one"),
    TN_OPT_END};

static tn_status build_axis(tn_build *b, const char *op, const void *given) {
  const tn_axis_attributes *o = given;
  tn_op_begin(b, op);
  tn_op_arg(b, tn_build_in(b, 0));
  tn_op_set_int(b, "axis", o->axis);
  tn_build_yield(b, 0, tn_op_end(b));
  return TN_OK;
}
static tn_status build_softmax(tn_build *b, const void *options) { return build_axis(b, "softmax", options); }
static tn_status build_log_softmax(tn_build *b, const void *options) {
  return build_axis(b, "log_softmax", options);
}

const tn_layer_kind layer_softmax = {.item = TN_ITEM(tn_layer_kind, TN_LAYER, "softmax",
                                                     "exp(x) divided by its sum along an axis",
                                                     tn_axis_attributes, axis_rows),
                                     .min_in = 1,
                                     .max_in = 1,
                                     .types = "one tensor of any shape; the result has the same",
                                     .example = "inputs = x: f32[64]\nlayers = softmax",
                                     .build = build_softmax};
const tn_layer_kind layer_log_softmax = {.item =
                                             TN_ITEM(tn_layer_kind, TN_LAYER, "log_softmax",
                                                     "logarithm of softmax", tn_axis_attributes, axis_rows),
                                         .min_in = 1,
                                         .max_in = 1,
                                         .types = "one tensor of any shape; the result has the same",
                                         .example = "inputs = x: f32[64]\nlayers = log_softmax",
                                         .build = build_log_softmax};
