/* core/ops/conv.h: private to core/ops: what the families of convolutions share. */
#pragma once

#include "core/ops/common.h"

/* Lists over the spatial dimensions; `axes` names them, `ones` and `zeros` are defaults. */
#define TN_CONV_OPTIONS(axes, ones, zeros)                                                                   \
  TN_OPT(tn_conv2d_attributes, stride, TN_OPT_INTS, ones, NULL, "step of the window: " axes),                \
      TN_OPT(tn_conv2d_attributes, padding, TN_OPT_INTS, zeros, NULL,                                        \
             "zeros on both sides: " axes "; twice as many entries: those in front, then those behind"),     \
      TN_OPT(tn_conv2d_attributes, dilation, TN_OPT_INTS, ones, NULL,                                        \
             "distance of neighbouring taps: " axes),                                                        \
      TN_OPT(tn_conv2d_attributes, groups, TN_OPT_INT, "1", ">= 1", "independent groups of channels"),       \
      TN_OPS_MATH(tn_conv2d_attributes)
#define TN_CONV_DIMS TN_OPT(tn_conv2d_attributes, dims, TN_OPT_INTS, NULL, NULL, "dimensions of the result")

/* X(axes, ones, zeros) for 1, 2 and 3 dimensions: their names, and the defaults of the lists. */
#define TN_CONV_OF_1(X) X("width", "[1]", "[0]")
#define TN_CONV_OF_2(X) X("height, width", "[1, 1]", "[0, 0]")
#define TN_CONV_OF_3(X) X("depth, height, width", "[1, 1, 1]", "[0, 0, 0]")

/* The zeros behind dimension i. */
static inline int64_t tn_conv_behind(const tn_conv2d_attributes *a, int32_t i) {
  return a->padding.v[a->padding.n > a->stride.n ? a->stride.n + i : i];
}

/* The type of the result of sliding w over x, where the op has attributes of a convolution of this rank. */
tn_status tn_conv_slide(tn_infer *n, const tn_conv2d_attributes *a, int32_t rank, const tn_type *x,
                        const tn_type *w, tn_type *y);
/* A bias has one number for each output channel. */
tn_status tn_conv_check_bias(tn_infer *n, const tn_type *bias, int64_t channels);
/* The window, with an entry for each spatial dimension. */
tn_status tn_conv_check_window(tn_infer *n, const tn_conv2d_attributes *a, int32_t rank);
/* 2 * products of a result y of a convolution with w. */
double tn_conv_flops(const tn_type *y, const tn_type *w);

/* The op of this rank whose name ends in `suffix`, with the window of `a`; z: the bias, or 0. A gradient has
 * `dims`; NULL for the others. */
tn_val tn_conv_emit(tn_build *b, const char *suffix, tn_val x, tn_val w, tn_val z,
                    const tn_conv2d_attributes *a, const tn_type *dims);

/* Decompositions, in conv_ranks.c. */
tn_status tn_conv1d_decompose(tn_build *b, const void *attributes);
tn_status tn_conv3d_decompose(tn_build *b, const void *attributes);
tn_status tn_conv3d_grad_input_decompose(tn_build *b, const void *attributes);
tn_status tn_conv3d_grad_weight_decompose(tn_build *b, const void *attributes);
