/* backends/onednn/kernels/conv_small/conv_small.h: small convolutions, between query and prepare
 * (conv_small.c) and launch (run.c). */
#pragma once

#include "backends/onednn/kernels/conv_small/loops.h"
#include "backends/onednn/kernels/gemm/loops.h"
#include "backends/onednn/kernels/transpose.h"
#include "tenon/plugin/kernel.h"

enum {
  TN_SMALL_FORWARD = 0,
  TN_SMALL_RELU = 1,
  TN_SMALL_GRAD_INPUT = 2,
  TN_SMALL_GRAD_WEIGHT = 3,
  TN_SMALL_GRAD_BIAS = 4
};

/* The padded operand is [pictures, channels, h, w]; the result, or the other operand of a gradient, is
 * [pictures, filters, oh, ow]. */
typedef struct tn_conv_small_shape {
  int32_t op; /* TN_SMALL_... */
  int64_t pictures, channels, filters, h, w, oh, ow;
  int64_t kh, kw, top, left, height, width; /* of planes with padding */
  int64_t dilation[2];
  int64_t depth;
  int64_t wide;          /* filters, rounded up to whole vectors; 0: vectors run along rows */
  int64_t chunks, block; /* block: pictures of a gradient at a time */
} tn_conv_small_shape;

typedef struct tn_conv_small_kernel {
  tn_conv_small_shape s;
  const tn_conv_small_loops *rows;
  const tn_conv_lanes_loops *lanes;
  const tn_transpose_loops *transpose;
  const tn_gemm_loops *sums;
  tn_conv_segment *segments;
  int64_t n_segments;
  int32_t *offsets;
} tn_conv_small_kernel;

static inline bool tn_conv_small_is_gradient(const tn_conv_small_shape *s) {
  return s->op >= TN_SMALL_GRAD_WEIGHT;
}
static inline int64_t tn_conv_small_planes(const tn_conv_small_shape *s) {
  return s->channels * s->height * s->width;
}

/* Floats of scratch: of all chunks together, and of each. */
int64_t tn_conv_small_shared_floats(const tn_conv_small_shape *s);
int64_t tn_conv_small_chunk_floats(const tn_conv_small_shape *s);

tn_status tn_conv_small_launch(tn_launch *l);
tn_status tn_conv_small_launch_gradient(tn_launch *l);
