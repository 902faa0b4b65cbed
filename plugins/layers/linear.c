/* plugins/layers/linear.c: y = x W^T + b over the last dimension; W is (units, in), as in PyTorch. */
#include <math.h>
#include <stdio.h>

#include "plugins/layers/layers.h"

typedef struct linear_options {
  int64_t units;
  int32_t bias;
  const char *init, *bias_init;
} linear_options;

static const tn_option options[] = {
    TN_OPT(linear_options, units, TN_OPT_INT, NULL, ">= 1", "size of the last dimension of the result"),
    TN_OPT(linear_options, bias, TN_OPT_FLAG, "yes", NULL, "add a bias"),
    TN_OPT(linear_options, init, TN_OPT_INIT, "default", NULL, "initializer of the weight"),
    TN_OPT(linear_options, bias_init, TN_OPT_INIT, "default", NULL, "initializer of the bias"), TN_OPT_END};

static tn_status linear_build(tn_build *b, const void *given) {
  const linear_options *o = given;
  const tn_type x_type = *tn_val_type(b, tn_build_in(b, 0));
  if (x_type.rank < 2)
    return tn_fail(b, TN_EINVAL, NULL, "the input has rank %d, expected at least 2", x_type.rank);
  int64_t fan_in = x_type.dims[x_type.rank - 1];
  const tn_type w_type = {TN_F32, 2, {o->units, fan_in}}, bias_type = {TN_F32, 1, {o->units}};
  char uniform[64];
  tn_val weight =
      tn_build_param(b, "weight", &w_type, layer_default_init(uniform, sizeof uniform, o->init, fan_in));
  tn_val bias = o->bias ? tn_build_param(b, "bias", &bias_type,
                                         layer_default_init(uniform, sizeof uniform, o->bias_init, fan_in))
                        : 0;
  tn_build_yield(b, 0, tn_matmul(b, tn_build_in(b, 0), weight, bias, 0, 1, TN_MATH_FULL));
  return TN_OK;
}

const tn_layer_kind layer_linear = {.item =
                                        TN_ITEM(tn_layer_kind, TN_LAYER, "linear",
                                                "x W^T + b over the last dimension", linear_options, options),
                                    .min_in = 1,
                                    .max_in = 1,
                                    .types = "(N, ..., inputs) to (N, ..., units)",
                                    .example = "inputs = x: f32[64]\nlayers = fc1: linear(10)",
                                    .build = linear_build};
