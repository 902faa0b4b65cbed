/* backends/cpu/kernels/conv/conv_shape.h: the shape of a convolution, for conv2d and its two gradients. */
#pragma once

#include "backends/cpu/kernels/gemm/gemm.h"
#include "tenon/attributes.h"

/* x is (batch, groups * c, h, w), the weight (groups * o, c, kh, kw), y (batch, groups * o, oh, ow). */
typedef struct tn_conv_shape {
  int32_t dtype, kind; /* kind of product: tn_gemm_kind */
  int64_t batch, groups, c, o, h, w, kh, kw, oh, ow;
  int64_t stride[2], padding[2], dilation[2];
} tn_conv_shape;

/* The shape for these types of x, weight and y. In the gradients, one of x and weight is the result and y is
 * an operand. */
tn_conv_shape tn_conv_shape_of(const tn_conv2d_attributes *attributes, const tn_type *x,
                               const tn_type *weight, const tn_type *y);

/* The pixels of y as positions in x, before the shift by a tap, and as positions in y. */
tn_gemm_grid tn_conv_grid_in_x(const tn_conv_shape *s);
tn_gemm_grid tn_conv_grid_in_y(const tn_conv_shape *s);

/* The kh * kw taps, as shifts in x. */
void tn_conv_taps(const tn_conv_shape *s, tn_gemm_tap *taps);

/* Where the pixels of both grids are contiguous and unshifted (a 1x1 convolution), reshapes each plane to one
 * row, so that packing copies it in one loop. */
void tn_conv_flatten(tn_gemm_grid *source, tn_gemm_grid *result, const tn_gemm_tap *taps, int64_t n_taps);
