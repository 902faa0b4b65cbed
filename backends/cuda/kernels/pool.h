/* backends/cuda/kernels/pool.h: pooling, for kernels with and without a prologue. */
#pragma once

#include "backends/cuda/device/pool.cuh"
#include "tenon/plugin/kernel.h"

/* TN_EUNSUPPORTED: a plane of the images of a match of one node is too large. */
tn_status tn_cuda_pool_check(tn_query *q, const tn_match *match);
/* The arguments of a match of one node but for addresses; images lie as the variant says (image_layouts.h).
 */
void tn_cuda_pool_fill(const tn_match *match, int32_t variant, struct pool_args *args);
