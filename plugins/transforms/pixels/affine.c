/* plugins/transforms/pixels/affine.c: rotates, shears and shifts pictures. Places in the operand have 32 bits
 * behind the point and are computed for each row from its first pixel, so that they do not depend on the
 * order of sums. */
#include <math.h>
#include <string.h>

#include "plugins/transforms/pixels/canvas.h"

affine affine_rotation(double degrees) {
  double angle = degrees * (3.14159265358979323846 / 180), s = sin(angle), c = cos(angle);
  return (affine){{c, -s, 0, s, c, 0}};
}

affine affine_shear(double across, double down, picture p) {
  return (affine){{1, across, across * (double)p.height / 2, down, 1, down * (double)p.width / 2}};
}

affine affine_shift(double across, double down) { return (affine){{1, 0, -across, 0, 1, -down}}; }

affine affine_of(double degrees, double across, double down, double scale, double shear, double shear_down) {
  const double radian = 3.14159265358979323846 / 180;
  double turn = degrees * radian, x = shear * radian, y = shear_down * radian;
  double a = cos(turn - y) / cos(y), b = -cos(turn - y) * tan(x) / cos(y) - sin(turn);
  double c = sin(turn - y) / cos(y), d = -sin(turn - y) * tan(x) / cos(y) + cos(turn);
  const double m[4] = {d / scale, -b / scale, -c / scale, a / scale};
  return (affine){{m[0], m[1], -m[0] * across - m[1] * down, m[2], m[3], -m[2] * across - m[3] * down}};
}

/* A place in the operand, and the way to that of the next pixel, times 2^32. */
typedef struct affine_walk {
  int64_t x, y, across, down;
} affine_walk;

static int64_t affine_fixed(double x) { return (int64_t)llrint(x * 0x1p32); }

static affine_walk affine_row(const affine *by, picture p, int64_t row) {
  const double *m = by->m;
  double cx = (double)(p.width - 1) / 2, cy = (double)(p.height - 1) / 2, y = (double)row - cy;
  return (affine_walk){affine_fixed(m[1] * y + m[2] + cx - m[0] * cx),
                       affine_fixed(m[4] * y + m[5] + cy - m[3] * cx), affine_fixed(m[0]),
                       affine_fixed(m[3])};
}

void affine_find_row(const affine *by, picture p, int64_t row, int64_t *places) {
  const int64_t half = (int64_t)1 << 31;
  affine_walk at = affine_row(by, p, row);
  for (int64_t i = 0; i < p.width; i++, at.x += at.across, at.y += at.down) {
    int64_t x = (at.x + half) >> 32, y = (at.y + half) >> 32;
    int inside = (uint64_t)x < (uint64_t)p.width && (uint64_t)y < (uint64_t)p.height;
    places[i] = inside ? y * p.width + x : -1;
  }
}

static void affine_pick_u8(const int64_t *places, int64_t n, const uint8_t *in, uint8_t fill, uint8_t *out) {
  for (int64_t i = 0; i < n; i++) out[i] = places[i] >= 0 ? in[places[i]] : fill;
}

static void affine_pick_f32(const int64_t *places, int64_t n, const float *in, float fill, float *out) {
  for (int64_t i = 0; i < n; i++) out[i] = places[i] >= 0 ? in[places[i]] : fill;
}

static void affine_nearest(const affine *by, picture p, int is_u8, const void *in, const sampling *how,
                           int64_t *places, void *out) {
  for (int64_t y = 0; y < p.height; y++) {
    affine_find_row(by, p, y, places);
    for (int64_t plane = 0; plane < p.planes; plane++) {
      int64_t from = plane * p.height * p.width, to = from + y * p.width;
      float fill = channel_number(&how->fill, plane);
      if (is_u8)
        affine_pick_u8(places, p.width, (const uint8_t *)in + from, (uint8_t)fill, (uint8_t *)out + to);
      else
        affine_pick_f32(places, p.width, (const float *)in + from, fill, (float *)out + to);
    }
  }
}

/* A pixel of the operand, `fill` outside. */
ALWAYS_INLINE float affine_pixel(const void *plane, int is_u8, picture p, int64_t x, int64_t y, float fill) {
  if ((uint64_t)x >= (uint64_t)p.width || (uint64_t)y >= (uint64_t)p.height) return fill;
  int64_t at = y * p.width + x;
  return is_u8 ? (float)((const uint8_t *)plane)[at] : ((const float *)plane)[at];
}

/* The mean of the four pixels around a place, weighted by their nearness. */
ALWAYS_INLINE float affine_mix(const void *plane, int is_u8, picture p, const affine_walk *at, float fill) {
  int64_t x = at->x >> 32, y = at->y >> 32;
  float fx = (float)(uint32_t)at->x * 0x1p-32f, fy = (float)(uint32_t)at->y * 0x1p-32f;
  float above = affine_pixel(plane, is_u8, p, x, y, fill) * (1.0f - fx) +
                affine_pixel(plane, is_u8, p, x + 1, y, fill) * fx;
  float below = affine_pixel(plane, is_u8, p, x, y + 1, fill) * (1.0f - fx) +
                affine_pixel(plane, is_u8, p, x + 1, y + 1, fill) * fx;
  return above * (1.0f - fy) + below * fy;
}

static void affine_bilinear_u8(affine_walk at, picture p, const uint8_t *in, float fill, uint8_t *out) {
  for (int64_t i = 0; i < p.width; i++, at.x += at.across, at.y += at.down)
    out[i] = (uint8_t)(affine_mix(in, 1, p, &at, fill) + 0.5f);
}

static void affine_bilinear_f32(affine_walk at, picture p, const float *in, float fill, float *out) {
  for (int64_t i = 0; i < p.width; i++, at.x += at.across, at.y += at.down)
    out[i] = affine_mix(in, 0, p, &at, fill);
}

static void affine_bilinear(const affine *by, picture p, int is_u8, const void *in, const sampling *how,
                            void *out) {
  for (int64_t plane = 0; plane < p.planes; plane++)
    for (int64_t y = 0; y < p.height; y++) {
      affine_walk at = affine_row(by, p, y);
      int64_t from = plane * p.height * p.width, to = from + y * p.width;
      float fill = channel_number(&how->fill, plane);
      if (is_u8)
        affine_bilinear_u8(at, p, (const uint8_t *)in + from, fill, (uint8_t *)out + to);
      else
        affine_bilinear_f32(at, p, (const float *)in + from, fill, (float *)out + to);
    }
}

void affine_apply(const affine *by, picture p, int is_u8, const void *in, const sampling *how,
                  int64_t *places, void *out) {
  if (how->interpolation == SAMPLING_BILINEAR)
    affine_bilinear(by, p, is_u8, in, how, out);
  else
    affine_nearest(by, p, is_u8, in, how, places, out);
}

void canvas_affine(canvas *c, const affine *by, const sampling *how) {
  picture p = {c->frames * c->channels, c->height, c->width};
  memcpy(c->spare, c->pixels, (size_t)(p.planes * p.height * p.width));
  affine_apply(by, p, 1, c->spare, how, c->places, c->pixels);
}
