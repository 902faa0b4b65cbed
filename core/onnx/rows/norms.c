/* core/onnx/rows/norms.c: normalization. */
#include <string.h>

#include "core/onnx/import.h"

static const char *epsilon_of(const onnx_use *n, const char *lead) {
  double epsilon = onnx_number(n, "epsilon", 1e-5);
  return (float)epsilon == 1e-5F ? "" : onnx_print(n, "%sepsilon=%s", lead, onnx_float_text(n, epsilon));
}

static tn_status row_batch_norm(const onnx_use *n) {
  const onnx_layer_weight weights[] = {{"weight", n->node->in[1], false},
                                       {"bias", n->node->in[2], false},
                                       {"running_mean", n->node->in[3], false},
                                       {"running_var", n->node->in[4], false}};
  for (int32_t i = 1; i < 5; i++)
    if (!onnx_is_weight(n, i, 1))
      return ONNX_REFUSE(n, "statistics that the model computes, or that two layers share");
  double momentum = 1 - onnx_decimal(n, onnx_number(n, "momentum", 0.9));
  const char *rate =
      (float)momentum == 0.1F ? "" : onnx_print(n, "momentum=%s", onnx_float_text(n, momentum));
  const char *epsilon = epsilon_of(n, rate[0] != '\0' ? ", " : "");
  bool plain = rate[0] == '\0' && epsilon[0] == '\0';
  return onnx_layer(n, 0, n, weights, 4,
                    plain ? "batch_norm" : onnx_print(n, "batch_norm(%s%s)", rate, epsilon));
}

/* Scale and shift are parameters of the layer; those that the model computes are ops behind it. */
static tn_status row_layer_norm(const onnx_use *n) {
  const tn_type *x = &onnx_operand(n, 0)->type;
  int32_t axis = onnx_axis(onnx_whole(n, "axis", -1), x->rank), trailing = x->rank - axis;
  bool has_bias = onnx_has(n, 2);
  if (axis < 0) return ONNX_REFUSE(n, "an axis that the operand lacks");
  if (n->node->n_out > 1) return ONNX_REFUSE(n, "mean and deviation as results");
  if (!onnx_is_weight(n, 1, trailing) || (has_bias && !onnx_is_weight(n, 2, trailing)))
    return ONNX_REFUSE(n, "scale or shift that the model computes");
  const onnx_layer_weight weights[] = {{"weight", n->node->in[1], false},
                                       {"bias", has_bias ? n->node->in[2] : "", false}};
  const char *many = trailing > 1 ? onnx_print(n, "trailing=%d", trailing) : "";
  const char *epsilon = epsilon_of(n, many[0] != '\0' ? ", " : "");
  const char *bias = has_bias ? "" : many[0] != '\0' || epsilon[0] != '\0' ? ", bias=no" : "bias=no";
  bool plain = many[0] == '\0' && epsilon[0] == '\0' && bias[0] == '\0';
  return onnx_layer(n, 0, n, weights, has_bias ? 2 : 1,
                    plain ? "layer_norm" : onnx_print(n, "layer_norm(%s%s%s)", many, epsilon, bias));
}

static tn_status row_channels_norm(const onnx_use *n, const char *call) {
  const onnx_layer_weight weights[] = {{"weight", n->node->in[1], false}, {"bias", n->node->in[2], false}};
  for (int32_t i = 1; i < 3; i++)
    if (!onnx_is_weight(n, i, 1)) return ONNX_REFUSE(n, "scale or shift that the model computes");
  return onnx_layer(n, 0, n, weights, 2, call);
}

static tn_status row_instance_norm(const onnx_use *n) {
  return row_channels_norm(n, onnx_print(n, "instance_norm(affine=yes%s)", epsilon_of(n, ", ")));
}

static tn_status row_group_norm(const onnx_use *n) {
  return row_channels_norm(
      n, onnx_print(n, "group_norm(%lld%s)", (long long)onnx_whole(n, "num_groups", 1), epsilon_of(n, ", ")));
}

static tn_status row_response_norm(const onnx_use *n) {
  return onnx_emit(n, NULL, 0, "local_response_norm(%lld, alpha=%s, beta=%s, k=%s)",
                   (long long)onnx_whole(n, "size", 1), onnx_float_text(n, onnx_number(n, "alpha", 1e-4)),
                   onnx_float_text(n, onnx_number(n, "beta", 0.75)),
                   onnx_float_text(n, onnx_number(n, "bias", 1)));
}

const onnx_row onnx_norm_rows[] = {
    {"BatchNormalization", row_batch_norm, NULL, 5},
    {"LayerNormalization", row_layer_norm, NULL, 2},
    {"InstanceNormalization", row_instance_norm, NULL, 3},
    {"GroupNormalization", row_group_norm, NULL, 3},
    {"LRN", row_response_norm, NULL},
    {NULL, NULL, NULL},
};
