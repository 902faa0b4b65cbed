/* plugins/sources/digits/draw.c: draws a digit from strokes. The points of a shape are shifted at random, its
 * arcs divided into segments, and the segments bent and mapped to the picture. The brightness of a pixel is a
 * function of its distance from the nearest segment, plus noise. */
#include "plugins/sources/digits/draw.h"

#include <math.h>

enum {
  ARC_SEGMENTS = 7,
  /* A shape has fewer steps than DIGIT_STEPS, and three of them make an arc. */
  MOST_POINTS = DIGIT_STEPS / 3 * ARC_SEGMENTS + DIGIT_STEPS
};

/* Pixels per 100 units of a shape: a digit of average scale is 17.6 pixels high. */
static const float UNIT = 21.0f;
static const float DEGREE = 0.01745329252f;
static const float TURN = 6.28318530718f;

typedef struct point {
  float x, y;
} point;

typedef struct path {
  point at[MOST_POINTS];
  uint8_t pen_down[MOST_POINTS]; /* a line connects the previous point with this one */
  int n;
} path;

/* The random parameters of a picture, except for the points. */
typedef struct draw_style {
  float xx, xy, yx, yy, shift_x, shift_y;        /* affine map from the box to pixels */
  float bend[2], wave_x[2], wave_y[2], phase[2]; /* elastic bend of x and of y */
  float radius;                                  /* half the width of the pen, in pixels */
  float ink, noise;                              /* brightness of the stroke; standard deviation */
} draw_style;

static float between(tn_rng *rng, float low, float high) { return (float)tn_rng_between(rng, low, high); }

static draw_style draw_choose_style(tn_rng *rng) {
  draw_style h;
  float angle = between(rng, -20, 20) * DEGREE, shear = between(rng, -0.25f, 0.25f);
  float scale = between(rng, 0.8f, 1.2f) * UNIT / 100, aspect = between(rng, 0.85f, 1.1f);
  float c = cosf(angle) * scale, s = sinf(angle) * scale;
  /* rotate * scale * shear * stretch of x */
  h.xx = c * aspect;
  h.xy = c * shear - s;
  h.yx = s * aspect;
  h.yy = s * shear + c;
  h.shift_x = DIGIT_SIDE / 2.0f + between(rng, -3, 3);
  h.shift_y = DIGIT_SIDE / 2.0f + between(rng, -3, 3);
  for (int i = 0; i < 2; i++) {
    h.bend[i] = between(rng, 0, 5);
    h.wave_x[i] = between(rng, -0.012f, 0.012f) * TURN;
    h.wave_y[i] = between(rng, -0.012f, 0.012f) * TURN;
    h.phase[i] = between(rng, 0, TURN);
  }
  h.radius = between(rng, 0.7f, 1.7f);
  h.ink = between(rng, 0.6f, 1.0f);
  h.noise = between(rng, 0, 0.12f);
  return h;
}

static void add_point(path *p, point at, int pen_down) {
  p->at[p->n] = at;
  p->pen_down[p->n++] = (uint8_t)pen_down;
}

static point on_arc(point a, point b, point c, point d, float t) {
  float u = 1 - t;
  float wa = u * u * u, wb = 3 * u * u * t, wc = 3 * u * t * t, wd = t * t * t;
  return (point){wa * a.x + wb * b.x + wc * c.x + wd * d.x, wa * a.y + wb * b.y + wc * c.y + wd * d.y};
}

/* Shifts the points of a shape at random and divides its arcs into segments. */
static void draw_trace(tn_rng *rng, const digit_step *shape, path *p) {
  point steps[DIGIT_STEPS];
  p->n = 0;
  for (int i = 0; shape[i].verb != 0; i++) {
    steps[i].x = (float)shape[i].x + between(rng, -4, 4);
    steps[i].y = (float)shape[i].y + between(rng, -4, 4);
  }
  for (int i = 0; shape[i].verb != 0; i++) {
    if (shape[i].verb != 'C') {
      add_point(p, steps[i], shape[i].verb == 'L');
      continue;
    }
    for (int k = 1; k <= ARC_SEGMENTS; k++)
      add_point(p, on_arc(steps[i - 1], steps[i], steps[i + 1], steps[i + 2], (float)k / ARC_SEGMENTS), 1);
    i += 2;
  }
}

static point draw_map(const draw_style *h, point p) {
  float x = p.x - 50, y = p.y - 50;
  float bent_x = x + h->bend[0] * sinf(h->wave_x[0] * x + h->wave_y[0] * y + h->phase[0]);
  float bent_y = y + h->bend[1] * sinf(h->wave_x[1] * x + h->wave_y[1] * y + h->phase[1]);
  return (point){h->xx * bent_x + h->xy * bent_y + h->shift_x, h->yx * bent_x + h->yy * bent_y + h->shift_y};
}

static float draw_smaller(float a, float b) { return a < b ? a : b; }
static float draw_larger(float a, float b) { return a > b ? a : b; }

/* The pixels with their centre between low and high. */
static void pixel_range(float low, float high, int *from, int *to) {
  *from = (int)ceilf(draw_larger(low - 0.5f, 0));
  *to = (int)floorf(draw_smaller(high - 0.5f, DIGIT_SIDE - 1));
}

/* Updates the squared distances of the pixels within `reach` of a segment. */
static void draw_segment(float *distance, point a, point b, float reach) {
  int x0, x1, y0, y1;
  pixel_range(draw_smaller(a.x, b.x) - reach, draw_larger(a.x, b.x) + reach, &x0, &x1);
  pixel_range(draw_smaller(a.y, b.y) - reach, draw_larger(a.y, b.y) + reach, &y0, &y1);
  float dx = b.x - a.x, dy = b.y - a.y;
  float inverse = 1 / draw_larger(dx * dx + dy * dy, 1e-6f);
  for (int y = y0; y <= y1; y++) {
    for (int x = x0; x <= x1; x++) {
      float px = (float)x + 0.5f - a.x, py = (float)y + 0.5f - a.y;
      float along = draw_smaller(draw_larger((px * dx + py * dy) * inverse, 0), 1);
      float ox = px - along * dx, oy = py - along * dy;
      distance[y * DIGIT_SIDE + x] = draw_smaller(distance[y * DIGIT_SIDE + x], ox * ox + oy * oy);
    }
  }
}

/* The sum of a word's four bytes is close to normal, with mean 510 and this deviation. */
static float noise_of(uint32_t word) {
  uint32_t sum = (word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24);
  return ((float)sum - 510) / 147.8f;
}

static void shade(tn_rng *rng, const draw_style *h, const float *distance, uint8_t *pixels) {
  for (int i = 0; i < DIGIT_PIXELS; i++) {
    float cover = draw_smaller(draw_larger(h->radius + 0.5f - sqrtf(distance[i]), 0), 1);
    float light = cover * h->ink + h->noise * noise_of(tn_rng_u32(rng));
    pixels[i] = (uint8_t)(draw_smaller(draw_larger(light, 0), 1) * 255 + 0.5f);
  }
}

void digit_draw(tn_rng *rng, int digit, uint8_t pixels[DIGIT_PIXELS]) {
  float distance[DIGIT_PIXELS];
  path p;
  draw_style h = draw_choose_style(rng);
  draw_trace(rng, digit_shapes[digit][tn_rng_below(rng, DIGIT_SHAPES)], &p);
  for (int i = 0; i < p.n; i++) p.at[i] = draw_map(&h, p.at[i]);
  for (int i = 0; i < DIGIT_PIXELS; i++) distance[i] = 1e6f;
  for (int i = 1; i < p.n; i++)
    if (p.pen_down[i]) draw_segment(distance, p.at[i - 1], p.at[i], h.radius + 0.5f);
  shade(rng, &h, distance, pixels);
}
