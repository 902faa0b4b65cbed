/* plugins/transforms/geometry/warp.c: a picture through a projective map with displacements, bilinear, with
 * the values of torch's grid_sample and torchvision's fill: pixels outside have the value of `fill`. */
#include "plugins/transforms/geometry/geometry.h"

#include <math.h>

static float warp_pixel(const void *plane, int is_u8, picture p, int64_t x, int64_t y, float fill) {
  if ((uint64_t)x >= (uint64_t)p.width || (uint64_t)y >= (uint64_t)p.height) return fill;
  int64_t at = y * p.width + x;
  return is_u8 ? (float)((const uint8_t *)plane)[at] : ((const float *)plane)[at];
}

static float warp_mix(const void *plane, int is_u8, picture p, double x, double y, float fill) {
  if (!(x > -1 && y > -1 && x < (double)p.width && y < (double)p.height)) return fill;
  int64_t left = (int64_t)floor(x), top = (int64_t)floor(y);
  float fx = (float)(x - (double)left), fy = (float)(y - (double)top);
  float above = warp_pixel(plane, is_u8, p, left, top, fill) * (1.0f - fx) +
                warp_pixel(plane, is_u8, p, left + 1, top, fill) * fx;
  float below = warp_pixel(plane, is_u8, p, left, top + 1, fill) * (1.0f - fx) +
                warp_pixel(plane, is_u8, p, left + 1, top + 1, fill) * fx;
  return above * (1.0f - fy) + below * fy;
}

void warp_bilinear(const geometry *g, picture in, picture out, int is_u8, const void *from, void *to) {
  int64_t area = out.height * out.width, operand = in.height * in.width;
  for (int64_t i = 0; i < area; i++) {
    double at[2];
    projective_point(&g->places, (double)(i % out.width) + 0.5, (double)(i / out.width) + 0.5, at);
    double x = at[0] - 0.5 + (g->across != NULL ? (double)g->across[i] : 0);
    double y = at[1] - 0.5 + (g->down != NULL ? (double)g->down[i] : 0);
    for (int64_t plane = 0; plane < out.planes; plane++) {
      float fill = channel_number(&g->how->fill, plane);
      const char *base = (const char *)from + (size_t)(plane * operand) * (is_u8 ? 1 : sizeof(float));
      float value = warp_mix(base, is_u8, in, x, y, fill);
      if (is_u8)
        ((uint8_t *)to)[plane * area + i] = (uint8_t)lrintf(value);
      else
        ((float *)to)[plane * area + i] = value;
    }
  }
}
