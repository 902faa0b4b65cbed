/* plugins/layers/activation.c: relu, sigmoid, tanh, gelu (Hendrycks and Gimpel, 2016), silu, leaky_relu,
 * softmax, log_softmax. */
#include "plugins/layers/layers.h"

/* Defines layer_NAME, whose result has the shape of its input; `line` is its line in the example. */
#define ACTIVATION(name, item_, line)                                                                        \
  const tn_layer_kind layer_##name = {.item = item_,                                                         \
                                      .min_in = 1,                                                           \
                                      .max_in = 1,                                                           \
                                      .types = "one tensor of any shape; the result has the same",           \
                                      .example = "inputs = x: f32[64]\nlayers = " line,                      \
                                      .build = build_##name}

/* An activation without options, by the op of its name. */
#define PLAIN(name, doc)                                                                                     \
  static tn_status build_##name(tn_build *b, const void *options) {                                          \
    (void)options;                                                                                           \
    return layer_build_unary(b, #name);                                                                      \
  }                                                                                                          \
  ACTIVATION(name, TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, #name, doc), #name)
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
ACTIVATION(gelu,
           TN_ITEM(tn_layer_kind, TN_LAYER, "gelu", "x times the normal distribution function of x",
                   tn_gelu_attributes, gelu_rows),
           "gelu");

static const tn_option leaky_rows[] = {
    TN_OPT(tn_leaky_relu_attributes, slope, TN_OPT_FLOAT, "0.01", "[-1e37, 1e37]", "slope for negative x"),
    TN_OPT_END};

static tn_status build_leaky_relu(tn_build *b, const void *given) {
  const tn_leaky_relu_attributes *o = given;
  tn_build_yield(b, 0, tn_leaky_relu(b, tn_build_in(b, 0), o->slope));
  return TN_OK;
}
ACTIVATION(leaky_relu,
           TN_ITEM(tn_layer_kind, TN_LAYER, "leaky_relu", "x for positive x, slope times x for negative x",
                   tn_leaky_relu_attributes, leaky_rows),
           "leaky_relu(0.2)");

static const tn_option axis_rows[] = {
    TN_OPT(tn_axis_attributes, axis, TN_OPT_INT, "-1", NULL, "the dimension whose results sum to one"),
    TN_OPT_END};

static tn_status build_softmax(tn_build *b, const void *given) {
  tn_build_yield(b, 0, tn_softmax(b, tn_build_in(b, 0), ((const tn_axis_attributes *)given)->axis));
  return TN_OK;
}
ACTIVATION(softmax,
           TN_ITEM(tn_layer_kind, TN_LAYER, "softmax", "exp(x) divided by its sum along an axis",
                   tn_axis_attributes, axis_rows),
           "softmax");

static tn_status build_log_softmax(tn_build *b, const void *given) {
  tn_build_yield(b, 0, tn_log_softmax(b, tn_build_in(b, 0), ((const tn_axis_attributes *)given)->axis));
  return TN_OK;
}
ACTIVATION(log_softmax,
           TN_ITEM(tn_layer_kind, TN_LAYER, "log_softmax", "logarithm of softmax", tn_axis_attributes,
                   axis_rows),
           "log_softmax");
