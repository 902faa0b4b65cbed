/* core/ops/pool.h: private to core/ops: the functions of pool_ranks.c that pool.c uses. */
#pragma once

#include "core/ops/common.h"

/* The op with the window of `a`; index: 0 for ops without it. A gradient has `dims`; NULL for the others. */
tn_val tn_pool_emit(tn_build *b, const char *op, tn_val x, tn_val index, const tn_pool2d_attributes *a,
                    const tn_type *dims);

typedef struct tn_lp_pool_attributes {
  tn_pool2d_attributes pool;
  double p;
} tn_lp_pool_attributes;

typedef struct tn_unpool_attributes {
  tn_pool2d_attributes pool;
  tn_ints size; /* of the image of the result; empty: as small as the windows allow */
} tn_unpool_attributes;

/* The type of the result of unpooling x. */
tn_type tn_unpool_type(const tn_unpool_attributes *attributes, const tn_type *x);

/* Decompositions. */
tn_status tn_lp_pool_decompose(tn_build *b, const void *attributes);
tn_status tn_max_unpool1d_decompose(tn_build *b, const void *attributes);
tn_status tn_max_unpool2d_decompose(tn_build *b, const void *attributes);
tn_status tn_max_unpool3d_decompose(tn_build *b, const void *attributes);
tn_status tn_max_pool1d_decompose(tn_build *b, const void *attributes);
tn_status tn_avg_pool1d_decompose(tn_build *b, const void *attributes);
tn_status tn_max_pool3d_decompose(tn_build *b, const void *attributes);
tn_status tn_avg_pool3d_decompose(tn_build *b, const void *attributes);
