/* backends/onednn/kernels/conv_small/conv_small.h: what a small convolution is, between the file that offers
 * it and the one that runs it. */
#ifndef TN_BACKENDS_ONEDNN_KERNELS_CONV_SMALL_CONV_SMALL_H
#define TN_BACKENDS_ONEDNN_KERNELS_CONV_SMALL_CONV_SMALL_H

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

/* The operand that is padded, [pictures, channels, h, w], and the result or the other operand beside it,
 * [pictures, filters, oh, ow]. */
typedef struct tn_small {
  int32_t what;
  int64_t pictures, channels, filters, h, w, oh, ow;
  int64_t kh, kw, top, left, height, width; /* of planes with their padding */
  int64_t dilation[2];
  int64_t depth;
  int64_t wide;          /* filters in whole vectors; 0: vectors run along rows */
  int64_t chunks, block; /* pictures of a gradient at once */
} tn_small;

typedef struct tn_small_plan {
  tn_small s;
  const tn_conv_small_loops *rows;
  const tn_conv_lanes_loops *lanes;
  const tn_turn_loops *turn;
  const tn_gemm_loops *sums;
  tn_conv_segment *segments;
  int64_t n_segments;
  int32_t *offsets;
} tn_small_plan;

static inline bool tn_small_is_gradient(const tn_small *s) { return s->what >= TN_SMALL_GRAD_WEIGHT; }
static inline int64_t tn_small_planes(const tn_small *s) { return s->channels * s->height * s->width; }

/* Floats of scratch: of all chunks together, and of each. */
int64_t tn_small_shared_floats(const tn_small *s);
int64_t tn_small_chunk_floats(const tn_small *s);

tn_status tn_small_launch(tn_launch *l);
tn_status tn_small_launch_gradient(tn_launch *l);

#endif
