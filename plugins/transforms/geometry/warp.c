/* plugins/transforms/geometry/warp.c: a picture through a projective map with displacements, bilinear, with
 * the values of torch's grid_sample and torchvision's fill: pixels outside have the value of `fill`. */
#include "plugins/transforms/geometry/geometry.h"

ALWAYS_INLINE float warp_pixel(const void *plane, int is_u8, picture p, int64_t x, int64_t y, float fill) {
  if ((uint64_t)x >= (uint64_t)p.width || (uint64_t)y >= (uint64_t)p.height) return fill;
  int64_t at = y * p.width + x;
  return is_u8 ? (float)((const uint8_t *)plane)[at] : ((const float *)plane)[at];
}

/* The four pixels around a place, and their weights; `inside`: all of them are in the picture. */
typedef struct warp_place {
  int64_t left, top;
  float right_part, lower_part;
  int inside, outside;
} warp_place;

ALWAYS_INLINE warp_place warp_find(const geometry *g, picture in, picture out, int64_t x, int64_t y) {
  double at[2];
  int64_t i = y * out.width + x;
  projective_point(&g->places, (double)x + 0.5, (double)y + 0.5, at);
  double column = at[0] - 0.5 + (g->across != NULL ? (double)g->across[i] : 0);
  double line = at[1] - 0.5 + (g->down != NULL ? (double)g->down[i] : 0);
  if (!(column > -1 && line > -1 && column < (double)in.width && line < (double)in.height))
    return (warp_place){.outside = 1};
  warp_place w = {.left = (int64_t)(column + 1) - 1, .top = (int64_t)(line + 1) - 1};
  w.right_part = (float)(column - (double)w.left);
  w.lower_part = (float)(line - (double)w.top);
  w.inside = w.left >= 0 && w.top >= 0 && w.left + 1 < in.width && w.top + 1 < in.height;
  return w;
}

ALWAYS_INLINE float warp_blend(const warp_place *w, float a, float b, float c, float d) {
  float above = a * (1.0f - w->right_part) + b * w->right_part;
  float below = c * (1.0f - w->right_part) + d * w->right_part;
  return above * (1.0f - w->lower_part) + below * w->lower_part;
}

ALWAYS_INLINE float warp_mix(const warp_place *w, const void *plane, int is_u8, picture p, float fill) {
  int64_t x = w->left, y = w->top;
  if (w->outside) return fill;
  if (w->inside && is_u8) {
    const uint8_t *at = (const uint8_t *)plane + y * p.width + x;
    return warp_blend(w, at[0], at[1], at[p.width], at[p.width + 1]);
  }
  return warp_blend(w, warp_pixel(plane, is_u8, p, x, y, fill), warp_pixel(plane, is_u8, p, x + 1, y, fill),
                    warp_pixel(plane, is_u8, p, x, y + 1, fill),
                    warp_pixel(plane, is_u8, p, x + 1, y + 1, fill));
}

/* One pixel of all planes. */
ALWAYS_INLINE void warp_pixels(const geometry *g, const warp_place *w, picture in, picture out, int is_u8,
                               const void *from, int64_t i, void *to) {
  int64_t area = out.height * out.width, operand = in.height * in.width;
  for (int64_t plane = 0; plane < out.planes; plane++) {
    const char *base = (const char *)from + (size_t)(plane * operand) * (is_u8 ? 1 : sizeof(float));
    float value = warp_mix(w, base, is_u8, in, channel_number(&g->how->fill, plane));
    if (is_u8)
      ((uint8_t *)to)[plane * area + i] = (uint8_t)(value + 0.5f);
    else
      ((float *)to)[plane * area + i] = value;
  }
}

void warp_bilinear(const geometry *g, picture in, picture out, int is_u8, const void *from, void *to) {
  for (int64_t y = 0; y < out.height; y++)
    for (int64_t x = 0; x < out.width; x++) {
      warp_place w = warp_find(g, in, out, x, y);
      if (is_u8)
        warp_pixels(g, &w, in, out, 1, from, y * out.width + x, to);
      else
        warp_pixels(g, &w, in, out, 0, from, y * out.width + x, to);
    }
}
