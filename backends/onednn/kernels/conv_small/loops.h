/* backends/onednn/kernels/conv_small/loops.h: convolutions of small pictures with few channels: vectors run
 * along the rows of the result, or over filters.
 *
 * Stride 1, one group. Pictures are copied into planes with padding, so that element (y, x) of the result
 * meets tap t of channel c at plane[y * width + x + offset of (c, t)]. */
#pragma once

#include <stdbool.h>

#include "backends/onednn/simd/loops.h"

enum { TN_CONV_LANES = 16 /* floats behind the last plane that are readable */ };

/* A vector of a row of the result, or less. */
typedef struct tn_conv_segment {
  int32_t x, y; /* its start in a plane of the operand, and of the result */
  int32_t lanes;
  int32_t first, end; /* the taps of a channel whose rows meet the picture */
} tn_conv_segment;

/* The result of one picture: sums over `depth` pairs of a weight and an offset. */
typedef struct tn_conv_picture {
  const float *planes;
  const float *weight; /* filters of `depth` elements */
  const int32_t *offset;
  int64_t filters, depth, taps; /* depth is channels times taps */
  const tn_conv_segment *segments;
  int64_t n_segments;
  float *result; /* filters planes of `plane` elements */
  int64_t plane;
  const float *bias; /* per filter, or NULL */
  bool rectified;    /* max(y, 0) */
} tn_conv_picture;

/* The gradient of weights: gradient[filter][p] is the sum over pictures of dy[filter] times x, shifted by
 * offset[p]. Offsets come in runs of `run` taps with the same row and channel. */
typedef struct tn_conv_gradient {
  const float *planes, *dy;
  int64_t pictures, planes_step, dy_step; /* distances of pictures */
  const int32_t *offset;
  int64_t filters, depth, run;
  const tn_conv_segment *segments;
  int64_t n_segments, plane;
  float *gradient;
  bool add; /* to earlier sums */
} tn_conv_gradient;

typedef struct tn_conv_small_loops {
  int32_t lanes;
  void (*picture)(const tn_conv_picture *c);
  void (*gradient)(const tn_conv_gradient *c);
  /* The sum of n elements. */
  float (*sum)(const float *x, int64_t n);
} tn_conv_small_loops;
TN_LOOPS_DECLARE(tn_conv_small_loops, tn_loops_conv_small);

/* ---- filters in the lanes ------------------------------------------------------------------------ */

/* For filters that fill vectors better than rows: the result is [pixel][filter], with filters rounded up to
 * whole vectors (`wide` of them); weights and their gradient are [depth][filter]. */
typedef struct tn_conv_lanes {
  const float *planes;
  const int32_t *offset; /* of each of `depth` */
  int64_t depth, run, wide;
  int64_t width, oh, ow;         /* of a row of the planes; rows and columns of the result */
  int64_t pictures, planes_step; /* of a gradient */
  const float *weight;           /* forward */
  const float *bias;             /* `wide` of them */
  bool rectified;                /* max(y, 0) */
  float *result;                 /* forward: written */
  const float *dy;
  float *gradient; /* written, or added to */
  bool add;
} tn_conv_lanes;

typedef struct tn_conv_lanes_loops {
  int32_t lanes;
  void (*picture)(const tn_conv_lanes *c);
  /* The offsets of a run are adjacent. */
  void (*gradient)(const tn_conv_lanes *c);
} tn_conv_lanes_loops;
TN_LOOPS_DECLARE(tn_conv_lanes_loops, tn_loops_conv_lanes);
