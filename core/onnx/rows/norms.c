/* core/onnx/rows/norms.c: normalization. */
#include <string.h>

#include "core/onnx/import.h"

static const char *epsilon_of(const onnx_use *n, const char *lead) {
  double epsilon = onnx_number(n, "epsilon", 1e-5);
  return (float)epsilon == 1e-5F ? "" : onnx_print(n, "%sepsilon=%s", lead, onnx_float_text(n, epsilon));
}

/* With statistics that the model computes, or that two layers share. */
static tn_status batch_norm_computed(const onnx_use *n) {
  const char *text[5];
  if (onnx_whole(n, "training_mode", 0)) return ONNX_REFUSE(n, "statistics of the batch");
  for (int32_t i = 0; i < 5; i++) {
    text[i] = onnx_text_of(n, i, false);
    if (text[i] == NULL) return onnx_failed(n);
  }
  return onnx_compute(n, "batch_norm_apply(%s, %s, %s, %s, %s%s)", text[0], text[3], text[4], text[1],
                      text[2], epsilon_of(n, ", "));
}

static tn_status row_batch_norm(const onnx_use *n) {
  const onnx_layer_weight weights[] = {{"weight", n->node->in[1], false},
                                       {"bias", n->node->in[2], false},
                                       {"running_mean", n->node->in[3], false},
                                       {"running_var", n->node->in[4], false}};
  for (int32_t i = 1; i < 5; i++)
    if (!onnx_is_weight(n, i, 1)) return batch_norm_computed(n);
  double momentum = 1 - onnx_decimal(n, onnx_number(n, "momentum", 0.9));
  const char *rate =
      (float)momentum == 0.1F ? "" : onnx_print(n, "momentum=%s", onnx_float_text(n, momentum));
  const char *epsilon = epsilon_of(n, rate[0] != '\0' ? ", " : "");
  bool plain = rate[0] == '\0' && epsilon[0] == '\0';
  return onnx_layer(n, 0, n, weights, 4,
                    plain ? "batch_norm" : onnx_print(n, "batch_norm(%s%s)", rate, epsilon));
}

/* Whether the mean or the deviation is a result, too. */
static bool norm_has_more(const onnx_use *n) { return onnx_wants(n, 1) || onnx_wants(n, 2); }

static tn_status layer_norm_steps(const onnx_use *n, int32_t axis) {
  const tn_type x = onnx_operand(n, 0)->type;
  int64_t axes[TN_MAX_RANK];
  for (int32_t i = axis; i < x.rank; i++) axes[i - axis] = i;
  const char *text = onnx_text_of(n, 0, false), *scale = onnx_text_of(n, 1, false),
             *shift = onnx_has(n, 2) ? onnx_text_of(n, 2, false) : "",
             *over = onnx_list_text(n, axes, x.rank - axis, false);
  if (text == NULL || scale == NULL || shift == NULL) return onnx_failed(n);
  const char *mean = onnx_let(n, "reduce_mean(%s, axes=%s, keep=yes)", text, over);
  const char *moved = mean != NULL ? onnx_let(n, "%s - %s", text, mean) : NULL;
  const char *by = moved != NULL ? onnx_let(n, "rsqrt(reduce_mean(square(%s), axes=%s, keep=yes) + %s)",
                                            moved, over, onnx_float_text(n, onnx_number(n, "epsilon", 1e-5)))
                                 : NULL;
  if (by == NULL) return onnx_failed(n);
  if (onnx_wants(n, 1)) TN_TRY(onnx_bind(n, 1, mean));
  if (onnx_wants(n, 2)) TN_TRY(onnx_bind(n, 2, by));
  return onnx_compute(n, "%s * %s * %s%s%s", moved, by, scale, shift[0] != '\0' ? " + " : "", shift);
}

/* An op whose scale and shift the model computes; of a norm with groups or trailing dimensions. */
static tn_status norm_computed(const onnx_use *n, const char *op, int32_t count, bool trailing) {
  const char *x = onnx_text_of(n, 0, false), *scale = onnx_text_of(n, 1, false),
             *shift = onnx_has(n, 2) ? onnx_text_of(n, 2, false) : "";
  if (x == NULL || scale == NULL || shift == NULL) return onnx_failed(n);
  bool several = strcmp(op, "layer_norm") == 0;
  return onnx_compute(n, "op.%s(%s, %s%s%s, epsilon=%s, %s=%d)%s", op, x, scale, shift[0] != '\0' ? ", " : "",
                      shift, onnx_float_text(n, onnx_number(n, "epsilon", 1e-5)),
                      trailing ? "trailing" : "groups", count, several ? "[0]" : "");
}

static tn_status row_rms_norm(const onnx_use *n) {
  const tn_type *x = &onnx_operand(n, 0)->type;
  int32_t axis = onnx_axis(onnx_whole(n, "axis", -1), x->rank), trailing = x->rank - axis;
  if (axis < 0) return ONNX_REFUSE(n, "an axis that the operand lacks");
  if (!onnx_is_weight(n, 1, trailing)) return norm_computed(n, "rms_norm", trailing, true);
  const char *many = trailing > 1 ? onnx_print(n, ", trailing=%d", trailing) : "";
  return onnx_layer(
      n, 0, n, &(onnx_layer_weight){.name = "weight", .from = n->node->in[1]}, 1,
      onnx_print(n, "rms_norm(epsilon=%s%s)", onnx_float_text(n, onnx_number(n, "epsilon", 1e-5)), many));
}

static tn_status row_mean_variance(const onnx_use *n) {
  static const int64_t usual[] = {0, 2, 3};
  const int64_t *axes;
  int32_t count;
  TN_TRY(onnx_wholes(n, "axes", -1, &axes, &count));
  const char *over = onnx_list_text(n, count > 0 ? axes : usual, count > 0 ? count : 3, false),
             *x = onnx_text_of(n, 0, false);
  const char *moved = x != NULL ? onnx_let(n, "%s - reduce_mean(%s, axes=%s, keep=yes)", x, x, over) : NULL;
  if (moved == NULL) return onnx_failed(n);
  return onnx_compute(n, "%s / (sqrt(reduce_mean(square(%s), axes=%s, keep=yes)) + 1e-9)", moved, moved,
                      over);
}

static tn_status row_lp_norm(const onnx_use *n) {
  return onnx_emit(n, NULL, 0, "normalize(p=%lld, axis=%lld)", (long long)onnx_whole(n, "p", 2),
                   (long long)onnx_whole(n, "axis", -1));
}

/* Scale and shift are parameters of the layer; those that the model computes are ops behind it. */
static tn_status row_layer_norm(const onnx_use *n) {
  const tn_type *x = &onnx_operand(n, 0)->type;
  int32_t axis = onnx_axis(onnx_whole(n, "axis", -1), x->rank), trailing = x->rank - axis;
  bool has_bias = onnx_has(n, 2);
  if (axis < 0) return ONNX_REFUSE(n, "an axis that the operand lacks");
  if (norm_has_more(n)) return layer_norm_steps(n, axis);
  if (!onnx_is_weight(n, 1, trailing) || (has_bias && !onnx_is_weight(n, 2, trailing)))
    return norm_computed(n, "layer_norm", trailing, true);
  const onnx_layer_weight weights[] = {{"weight", n->node->in[1], false},
                                       {"bias", has_bias ? n->node->in[2] : "", false}};
  const char *many = trailing > 1 ? onnx_print(n, "trailing=%d", trailing) : "";
  const char *epsilon = epsilon_of(n, many[0] != '\0' ? ", " : "");
  const char *bias = has_bias ? "" : many[0] != '\0' || epsilon[0] != '\0' ? ", bias=no" : "bias=no";
  bool plain = many[0] == '\0' && epsilon[0] == '\0' && bias[0] == '\0';
  return onnx_layer(n, 0, n, weights, has_bias ? 2 : 1,
                    plain ? "layer_norm" : onnx_print(n, "layer_norm(%s%s%s)", many, epsilon, bias));
}

static tn_status row_channels_norm(const onnx_use *n, const char *call, int64_t groups) {
  const onnx_layer_weight weights[] = {{"weight", n->node->in[1], false}, {"bias", n->node->in[2], false}};
  for (int32_t i = 1; i < 3; i++)
    if (!onnx_is_weight(n, i, 1)) return norm_computed(n, "group_norm", (int32_t)groups, false);
  return onnx_layer(n, 0, n, weights, 2, call);
}

/* Whether operand i is a constant of the graph, no parameter, and has this number everywhere. */
static bool norm_is_constant(const onnx_use *n, int32_t i, double number) {
  int64_t count = 0;
  const double *known = onnx_operand(n, i)->is_weight ? NULL : onnx_peek(n, i, &count);
  for (int64_t k = 0; known != NULL && k < count; k++)
    if (known[k] != number) return false;
  return known != NULL;
}

/* Exporters write group_norm with a scale of ones and a shift of zeros that are not trained. */
static tn_status row_instance_norm(const onnx_use *n) {
  if (norm_is_constant(n, 1, 1) && norm_is_constant(n, 2, 0)) {
    const char *epsilon = epsilon_of(n, "");
    const char *x = onnx_text_of(n, 0, false);
    return x != NULL
               ? onnx_emit(n, &x, 1, epsilon[0] != '\0' ? "instance_norm(%s)" : "instance_norm%s", epsilon)
               : onnx_failed(n);
  }
  return row_channels_norm(n, onnx_print(n, "instance_norm(affine=yes%s)", epsilon_of(n, ", ")),
                           onnx_operand(n, 0)->type.dims[1]);
}

static tn_status row_group_norm(const onnx_use *n) {
  int64_t groups = onnx_whole(n, "num_groups", 1);
  return row_channels_norm(n, onnx_print(n, "group_norm(%lld%s)", (long long)groups, epsilon_of(n, ", ")),
                           groups);
}

/* With an even size ONNX has one channel more behind the own one, local_response_norm before it. */
static tn_status row_response_norm(const onnx_use *n) {
  int64_t size = onnx_whole(n, "size", 1);
  const char *options = onnx_print(
      n, "%lld, alpha=%s, beta=%s, k=%s", (long long)size, onnx_float_text(n, onnx_number(n, "alpha", 1e-4)),
      onnx_float_text(n, onnx_number(n, "beta", 0.75)), onnx_float_text(n, onnx_number(n, "bias", 1)));
  if (options == NULL) return onnx_failed(n);
  if (size % 2 == 1) return onnx_emit(n, NULL, 0, "local_response_norm(%s)", options);
  const char *x = onnx_text_of(n, 0, false);
  if (x == NULL) return onnx_failed(n);
  return onnx_compute(n, "flip(local_response_norm(flip(%s, [1]), %s), [1])", x, options);
}

const onnx_row onnx_norm_rows[] = {
    {"BatchNormalization", row_batch_norm, NULL, 5},
    {"LayerNormalization", row_layer_norm, NULL, 2},
    {"InstanceNormalization", row_instance_norm, NULL, 3},
    {"GroupNormalization", row_group_norm, NULL, 3},
    {"RMSNormalization", row_rms_norm, NULL, 2},
    {"SimplifiedLayerNormalization", row_rms_norm, NULL, 2},
    {"MeanVarianceNormalization", row_mean_variance, NULL},
    {"LpNormalization", row_lp_norm, NULL},
    {"LRN", row_response_norm, NULL},
    {NULL, NULL, NULL},
};
