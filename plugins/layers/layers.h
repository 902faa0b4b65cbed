/* plugins/layers/layers.h: what the layers of this plugin share. */
#ifndef TN_PLUGINS_LAYERS_H
#define TN_PLUGINS_LAYERS_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tenon/attributes.h"
#include "tenon/plugin/layer.h"

/* PyTorch's default for linear and convolution, weights and biases alike: uniform within
 * 1 / sqrt(fan_in), which is what kaiming_uniform(a = sqrt(5)) comes to. `given` wins unless it is
 * the word "default". Writes into `text` and returns it, or `given`. */
static inline const char *default_init(char *text, size_t size, const char *given, int64_t fan_in) {
  if (strcmp(given, "default") != 0) return given;
  double bound = fan_in > 0 ? 1.0 / sqrt((double)fan_in) : 0.0;
  snprintf(text, size, "uniform(%.17g, %.17g)", -bound, bound);
  return text;
}

/* {v, v} from a list of one or two; spatial options are written 3 or [3, 5]. */
static inline int pair_of(const tn_ints *given, int64_t pair[2]) {
  if (given->n < 1 || given->n > 2) return 0;
  pair[0] = given->v[0];
  pair[1] = given->v[given->n - 1];
  return 1;
}

/* y = op(x) for an op without attributes; the first input is all it takes. */
static inline tn_status build_unary(tn_build *b, const char *op) {
  tn_build_yield(b, 0, tn_op1(b, op, tn_build_in(b, 0)));
  return TN_OK;
}

#endif
