/* Test kernels of the families "t" and "fast": they answer queries and launch nothing. */
#pragma once

#include "tenon/plugin/kernel.h"

/* Row-major, no in-place pairs. */
extern const tn_kernel k_matmul, k_reduce_sum, k_reduce_max, k_conv2d, k_transpose, k_concat, k_copy,
    k_reorder, k_moments, k_embedding;
/* pointwise+, with in-place pairs of all operands and results of equal type. Declines `erf`, and more than 20
 * nodes. */
extern const tn_kernel k_pointwise;
/* matmul with fused pointwise ops. */
extern const tn_kernel k_matmul_relu, k_matmul_add_relu;

#define KERNELS_PLAIN                                                                                        \
  &k_matmul.item, &k_reduce_sum.item, &k_reduce_max.item, &k_conv2d.item, &k_transpose.item, &k_concat.item, \
      &k_copy.item, &k_reorder.item, &k_embedding.item, &k_pointwise.item

/* Offers one row-major variant without in-place pairs. */
tn_status offer_plain(tn_query *q);
tn_status launch_nothing(tn_launch *l);

#define KERNEL(id, name_, family_, pattern_, query_)                                                         \
  const tn_kernel id = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, name_, "made up"),                       \
                        .family = family_,                                                                   \
                        .pattern = pattern_,                                                                 \
                        .query = query_,                                                                     \
                        .launch = launch_nothing}
