/* backends/cpu/kernels/conv_shape.h: the shape of a convolution, as conv2d and its two gradients share it. */
#ifndef TN_BACKENDS_CPU_KERNELS_CONV_SHAPE_H
#define TN_BACKENDS_CPU_KERNELS_CONV_SHAPE_H

#include "backends/cpu/kernels/gemm/gemm.h"
#include "tenon/attributes.h"

/* x is (batch, groups * c, h, w), the weight (groups * o, c, kh, kw), y (batch, groups * o, oh, ow). */
typedef struct tn_conv_shape {
  int32_t dtype, kind; /* kind: of product, gemm.h */
  int64_t batch, groups, c, o, h, w, kh, kw, oh, ow;
  int64_t stride[2], padding[2], dilation[2];
} tn_conv_shape;

/* Of a node with these types for x, weight and y, whichever are operands and whichever is the result. */
tn_conv_shape tn_conv_shape_of(const tn_conv2d_attributes *attributes, const tn_type *x,
                               const tn_type *weight, const tn_type *y);

/* The pixels of y, as places in x before the shift of a tap, and as places in y. */
tn_gemm_grid tn_conv_grid_in_x(const tn_conv_shape *s);
tn_gemm_grid tn_conv_grid_in_y(const tn_conv_shape *s);

/* The kh * kw taps, as shifts in x. */
void tn_conv_taps(const tn_conv_shape *s, tn_gemm_tap *taps);

/* Where pixels of both grids follow each other without a gap and without a shift (a 1x1 convolution),
 * makes a plane one long row, so that it is copied in one go. */
void tn_conv_flatten(tn_gemm_grid *source, tn_gemm_grid *result, const tn_gemm_tap *taps, int64_t n_taps);

#endif
