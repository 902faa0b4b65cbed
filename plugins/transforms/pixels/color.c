/* plugins/transforms/pixels/color.c: ops that mix the channels of a pixel, in f32. Every pixel is computed by
 * itself without fused products, so the bits do not depend on the vectors that the compiler chooses. torch
 * fuses some products, which moves a byte by at most one. */
#include "plugins/transforms/pixels/canvas.h"

/* Without this GCC computes the sides of a conditional expression in branches, since they might raise a
 * floating-point exception, and does not vectorize the loop. The numbers are the same. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math")
#endif

/* torchvision's weights; their sum is 0.9999. */
ALWAYS_INLINE float color_gray(float r, float g, float b) { return r * 0.2989f + g * 0.587f + b * 0.114f; }

VECTORIZED static void color_gray_bytes(const uint8_t *in, int64_t area, uint8_t *out) {
  for (int64_t i = 0; i < area; i++) out[i] = (uint8_t)(int)color_gray(in[i], in[area + i], in[2 * area + i]);
}

VECTORIZED static void color_gray_floats(const float *in, int64_t area, float *out) {
  for (int64_t i = 0; i < area; i++) out[i] = color_gray(in[i], in[area + i], in[2 * area + i]);
}

VECTORIZED static int64_t color_sum_bytes(const uint8_t *in, int64_t area) {
  int64_t sum = 0;
  for (int64_t i = 0; i < area; i++) sum += (int)color_gray(in[i], in[area + i], in[2 * area + i]);
  return sum;
}

/* The versions of a function that is not static would be visible outside of the plugin. */
void color_gray_u8(const uint8_t *in, int64_t area, uint8_t *out) { color_gray_bytes(in, area, out); }
void color_gray_f32(const float *in, int64_t area, float *out) { color_gray_floats(in, area, out); }
int64_t color_sum_gray(const uint8_t *in, int64_t area) { return color_sum_bytes(in, area); }

ALWAYS_INLINE uint8_t color_byte(float x) {
  x = x > 0.0f ? x : 0.0f;
  return (uint8_t)(int)(x < 255.0f ? x : 255.0f);
}

VECTORIZED static void color_blend_gray(uint8_t *restrict r, uint8_t *restrict g, uint8_t *restrict b,
                                        int64_t area, float factor) {
  for (int64_t i = 0; i < area; i++) {
    float gray = (float)(int)color_gray(r[i], g[i], b[i]) * (1.0f - factor);
    r[i] = color_byte((float)r[i] * factor + gray);
    g[i] = color_byte((float)g[i] * factor + gray);
    b[i] = color_byte((float)b[i] * factor + gray);
  }
}

void canvas_saturation(canvas *c, float factor) {
  int64_t area = c->height * c->width;
  for (int64_t f = 0; c->channels == 3 && f < c->frames; f++) {
    uint8_t *frame = c->pixels + f * 3 * area;
    color_blend_gray(frame, frame + area, frame + 2 * area, area, factor);
  }
}

ALWAYS_INLINE float color_least(float a, float b) { return a < b ? a : b; }
ALWAYS_INLINE float color_most(float a, float b) { return a > b ? a : b; }

/* x from 0 to 2 n, less n if it is at least n. */
ALWAYS_INLINE float color_wrap(float x, float n) { return x >= n ? x - n : x; }

/* The hue of a pixel in 0 .. 1, as Pillow computes it. `range` is 1 where all channels are equal. */
ALWAYS_INLINE float color_hue(float r, float g, float b, float most, float range) {
  float rc = (most - r) / range, gc = (most - g) / range, bc = (most - b) / range;
  float h = most == r ? bc - gc : most == g ? 2.0f + rc - bc : 4.0f + gc - rc;
  return color_wrap(h * (1.0f / 6.0f) + 1.0f, 1.0f);
}

/* A channel of the pixel with hue h6 / 6: `most` in a third of the circle, most - range in another, and a
 * ramp between them. `first` turns the circle for the channel. */
ALWAYS_INLINE float color_channel(float h6, float first, float most, float range) {
  float k = color_wrap(first + h6, 6.0f), away = color_least(k, 4.0f - k);
  return most - color_least(color_most(away * range, 0.0f), range);
}

/* 0 .. 1, up to rounding below 0, to a byte, as torchvision's to_dtype. */
ALWAYS_INLINE uint8_t color_scaled(float x) { return (uint8_t)(int)(x * 255.999f); }

VECTORIZED static void color_turn(uint8_t *restrict red, uint8_t *restrict green, uint8_t *restrict blue,
                                  int64_t area, float turn) {
  for (int64_t i = 0; i < area; i++) {
    float r = red[i] * (1.0f / 255.0f), g = green[i] * (1.0f / 255.0f), b = blue[i] * (1.0f / 255.0f);
    float most = color_most(color_most(r, g), b), least = color_least(color_least(r, g), b);
    float range = most - least, flat = most == least ? 1.0f : 0.0f;
    float h = color_wrap(color_hue(r, g, b, most, range + flat) + turn, 1.0f), h6 = h * 6.0f;
    red[i] = color_scaled(color_channel(h6, 5.0f, most, range));
    green[i] = color_scaled(color_channel(h6, 3.0f, most, range));
    blue[i] = color_scaled(color_channel(h6, 1.0f, most, range));
  }
}

void canvas_hue(canvas *c, float turn) {
  int64_t area = c->height * c->width;
  for (int64_t f = 0; c->channels == 3 && f < c->frames; f++) {
    uint8_t *frame = c->pixels + f * 3 * area;
    color_turn(frame, frame + area, frame + 2 * area, area, turn < 0 ? turn + 1 : turn);
  }
}
