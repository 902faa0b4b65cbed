/* backends/cpu/kernels/conv/conv_shape.c: the shape, the grids and the taps of a convolution. */
#include <stdbool.h>

#include "backends/cpu/kernels/conv/conv_shape.h"

tn_conv_shape tn_conv_shape_of(const tn_conv2d_attributes *attributes, const tn_type *x,
                               const tn_type *weight, const tn_type *y) {
  tn_conv_shape s = {.dtype = x->dtype,
                     .kind = tn_gemm_kind(x->dtype, attributes->math),
                     .batch = x->dims[0],
                     .groups = attributes->groups,
                     .c = weight->dims[1],
                     .o = weight->dims[0] / attributes->groups,
                     .h = x->dims[2],
                     .w = x->dims[3],
                     .kh = weight->dims[2],
                     .kw = weight->dims[3],
                     .oh = y->dims[2],
                     .ow = y->dims[3]};
  for (int32_t i = 0; i < 2; i++) {
    s.stride[i] = attributes->stride.v[i];
    s.padding[i] = attributes->padding.v[i];
    s.dilation[i] = attributes->dilation.v[i];
  }
  return s;
}

tn_gemm_grid tn_conv_grid_in_x(const tn_conv_shape *s) {
  return (tn_gemm_grid){s->oh, s->ow, s->stride[0], s->stride[1], s->h, s->w, s->groups * s->c * s->h * s->w};
}

tn_gemm_grid tn_conv_grid_in_y(const tn_conv_shape *s) {
  return (tn_gemm_grid){s->oh, s->ow, 1, 1, s->oh, s->ow, s->groups * s->o * s->oh * s->ow};
}

void tn_conv_taps(const tn_conv_shape *s, tn_gemm_tap *taps) {
  for (int64_t r = 0; r < s->kh; r++)
    for (int64_t q = 0; q < s->kw; q++) {
      int64_t y = r * s->dilation[0] - s->padding[0], x = q * s->dilation[1] - s->padding[1];
      taps[r * s->kw + q] = (tn_gemm_tap){y, x, y * s->w + x};
    }
}

static bool conv_covers_plane(const tn_gemm_grid *g) {
  return g->step_y == 1 && g->step_x == 1 && g->height == g->plane_height && g->width == g->plane_width;
}

static void conv_flatten_plane(tn_gemm_grid *g) {
  g->width = g->plane_width = g->height * g->width;
  g->height = g->plane_height = 1;
}

void tn_conv_flatten(tn_gemm_grid *source, tn_gemm_grid *result, const tn_gemm_tap *taps, int64_t n_taps) {
  bool shifted = n_taps != 1 || taps[0].y != 0 || taps[0].x != 0;
  if (shifted || !conv_covers_plane(source) || !conv_covers_plane(result)) return;
  conv_flatten_plane(source);
  conv_flatten_plane(result);
}
