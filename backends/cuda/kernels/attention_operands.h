/* backends/cuda/kernels/attention_operands.h: the sizes of attention, its gradient or cached_attention in a
 * match, and where the rows of heads lie in its operands and results. The match may have slices in front of
 * the op, as where queries, keys and values are columns of one product, and a concatenation of the gradients
 * behind it; then heads lie in the tensor in front of the slices, or in the concatenation, and no copy is
 * needed. */
#pragma once

#include <stdbool.h>

#include "tenon/plugin/kernel.h"

/* Row r of head h of item b of the batch lies `first` + b batch + h head + r row elements behind the address
 * of the operand or result, and is contiguous. */
typedef struct tn_cuda_heads {
  int32_t number; /* of the operand or result; -1: the op has none such */
  int64_t first, batch, head, row;
} tn_cuda_heads;

typedef struct tn_cuda_attention_use {
  bool gradient, causal;
  int32_t dtype; /* of heads; the logarithms of sums are f64 for f64, otherwise f32 */
  double scale;
  int64_t batch, heads, queries, keys, width, value_width;
  tn_cuda_heads q, k, v, dy; /* operands; dy of the gradient */
  tn_cuda_heads y;           /* the result, or an operand of the gradient */
  tn_cuda_heads dq, dk, dv;  /* results of the gradient */
  int32_t lse;               /* number of the result, or of the gradient's operand */
  /* Of cached_attention, whose `keys` are the rows of a cache: the operands, and the numbers of the results.
   */
  bool cached;
  tn_cuda_heads cache[2]; /* of keys and of values */
  int32_t position, all[2];
} tn_cuda_attention_use;

/* TN_EUNSUPPORTED with a reason where slices are not contiguous rows. */
tn_status tn_cuda_attention_use_of(tn_env *env, const tn_match *match, tn_cuda_attention_use *attention);
