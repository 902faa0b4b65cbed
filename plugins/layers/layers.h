/* plugins/layers/layers.h: functions for the layers of this plugin. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/attributes.h"
#include "tenon/plugin/layer.h"

/* Returns the initializer `given`. For "default", writes PyTorch's default for weights and biases of linear
 * and convolution into `text` and returns it: uniform within 1 / sqrt(fan_in), which equals kaiming_uniform(a
 * = sqrt(5)). */
static inline const char *layer_default_init(char *text, size_t size, const char *given, int64_t fan_in) {
  if (strcmp(given, "default") != 0) return given;
  double bound = fan_in > 0 ? 1.0 / sqrt((double)fan_in) : 0.0;
  snprintf(text, size, "uniform(%.17g, %.17g)", -bound, bound);
  return text;
}

/* Reads a spatial option, 3 or [3, 5], as `rank` numbers. */
static inline tn_status layer_spatial(tn_build *b, const char *option, const tn_ints *given, int32_t rank,
                                      int64_t *numbers) {
  if (given->n != 1 && given->n != rank)
    return tn_fail(b, TN_EINVAL, option, "%lld numbers, expected 1 or %d", (long long)given->n, (int)rank);
  for (int32_t i = 0; i < rank; i++) numbers[i] = given->v[given->n == 1 ? 0 : i];
  return TN_OK;
}

/* y = op(x) for an op without attributes; x is the first input. */
static inline tn_status layer_build_unary(tn_build *b, const char *op) {
  tn_build_yield(b, 0, tn_op1(b, op, tn_build_in(b, 0)));
  return TN_OK;
}
