/* backends/onednn/kernels/conv_small/lanes_loops.c: small convolutions with a filter in each lane. */
#include "backends/onednn/kernels/conv_small/loops.h"
#include "backends/onednn/simd/partial.h"
#include "backends/onednn/integer_math.h"

/* Tiles: two rows of neighbouring pixels; rows of neighbouring taps. Sums fill the registers but for a vector
 * of filters. */
#if defined(__AVX512F__)
enum { PIXELS = 12, ROWS = 5, TAPS = 5 };
#else
enum { PIXELS = 6, ROWS = 2, TAPS = 5 };
#endif

static int64_t evenly(int64_t n, int64_t most) {
  int64_t turns = (n + most - 1) / most;
  return turns > 0 ? (n + turns - 1) / turns : 1;
}

/* ---- pictures ------------------------------------------------------------------------------------ */

V_INLINE void tile(const tn_conv_lanes *c, int64_t filter, int64_t y, int64_t x, const int m, const int n) {
  vf sum[2][PIXELS];
  const float *w = c->weight + filter, *from = c->planes + y * c->width + x;
  int64_t wide = c->wide, width = c->width;
  vf start = c->bias != NULL ? v_get(c->bias + filter) : (vf){0};
#pragma GCC unroll 2
  for (int i = 0; i < m; i++)
#pragma GCC unroll 12
    for (int j = 0; j < n; j++) sum[i][j] = start;
  for (int64_t p = 0; p < c->depth; p++, w += wide) {
    const float *at = from + c->offset[p];
    vf filters = v_get(w);
#pragma GCC unroll 2
    for (int i = 0; i < m; i++)
#pragma GCC unroll 12
      for (int j = 0; j < n; j++) sum[i][j] += v_all(at[i * width + j]) * filters;
  }
  vf limit = v_all(c->limit);
#pragma GCC unroll 2
  for (int i = 0; i < m; i++)
#pragma GCC unroll 12
    for (int j = 0; j < n; j++)
      v_put(c->result + ((y + i) * c->ow + x + j) * wide + filter,
            c->rectified ? v_larger(sum[i][j], limit) : sum[i][j]);
}

#define TILE(n)                                                                                              \
  static void tile_1_##n(const tn_conv_lanes *c, int64_t f, int64_t y, int64_t x) {                          \
    tile(c, f, y, x, 1, n);                                                                                  \
  }                                                                                                          \
  static void tile_2_##n(const tn_conv_lanes *c, int64_t f, int64_t y, int64_t x) { tile(c, f, y, x, 2, n); }
#define TILES(m) tile_##m##_1, tile_##m##_2, tile_##m##_3, tile_##m##_4, tile_##m##_5, tile_##m##_6
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
#if defined(__AVX512F__)
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
#define MORE(m) , tile_##m##_7, tile_##m##_8, tile_##m##_9, tile_##m##_10, tile_##m##_11, tile_##m##_12
#else
#define MORE(m)
#endif
static void (*const tiles[2][PIXELS])(const tn_conv_lanes *c, int64_t f, int64_t y,
                                      int64_t x) = {{TILES(1) MORE(1)}, {TILES(2) MORE(2)}};

static void picture(const tn_conv_lanes *c) {
  int64_t n = evenly(c->ow, PIXELS);
  for (int64_t y = 0; y < c->oh; y += 2)
    for (int64_t x = 0; x < c->ow; x += n)
      for (int64_t f = 0; f < c->wide; f += V_LANES)
        tiles[least(2, c->oh - y) - 1][least(n, c->ow - x) - 1](c, f, y, x);
}

/* ---- gradients of weights ------------------------------------------------------------------------ */

V_INLINE void taps(const tn_conv_lanes *c, int64_t filter, int64_t tap, const int m, const int n) {
  vf sum[ROWS][TAPS];
  int64_t offset[ROWS], wide = c->wide, skipped = c->width - c->ow;
  const float *dy = c->dy + filter;
#pragma GCC unroll 5
  for (int i = 0; i < m; i++) {
    offset[i] = c->offset[tap + i * c->run];
#pragma GCC unroll 5
    for (int j = 0; j < n; j++) sum[i][j] = (vf){0};
  }
  for (int64_t k = 0; k < c->pictures; k++) {
    const float *x = c->planes + k * c->planes_step;
    for (int64_t row = 0; row < c->oh; row++, x += skipped)
      for (int64_t column = 0; column < c->ow; column++, x++, dy += wide) {
        vf g = v_get(dy);
#pragma GCC unroll 5
        for (int i = 0; i < m; i++)
#pragma GCC unroll 5
          for (int j = 0; j < n; j++) sum[i][j] += v_all(x[offset[i] + j]) * g;
      }
  }
#pragma GCC unroll 5
  for (int i = 0; i < m; i++)
#pragma GCC unroll 5
    for (int j = 0; j < n; j++) {
      float *to = c->gradient + (tap + i * c->run + j) * wide + filter;
      v_put(to, c->add ? sum[i][j] + v_get(to) : sum[i][j]);
    }
}

#define TAPS_OF(m, n)                                                                                        \
  static void taps_##m##_##n(const tn_conv_lanes *c, int64_t f, int64_t t) { taps(c, f, t, m, n); }
#define EACH(m) TAPS_OF(m, 1) TAPS_OF(m, 2) TAPS_OF(m, 3) TAPS_OF(m, 4) TAPS_OF(m, 5)
#define LIST_OF(m)                                                                                           \
  { taps_##m##_1, taps_##m##_2, taps_##m##_3, taps_##m##_4, taps_##m##_5 }
EACH(1)
EACH(2)
#if defined(__AVX512F__)
EACH(3)
EACH(4)
EACH(5)
#define LISTS                                                                                                \
  { LIST_OF(1), LIST_OF(2), LIST_OF(3), LIST_OF(4), LIST_OF(5) }
#else
#define LISTS                                                                                                \
  { LIST_OF(1), LIST_OF(2) }
#endif
static void (*const taps_of[ROWS][TAPS])(const tn_conv_lanes *c, int64_t f, int64_t t) = LISTS;

static void gradient(const tn_conv_lanes *c) {
  int64_t runs = c->depth / c->run, m = evenly(runs, ROWS), n = evenly(c->run, TAPS);
  for (int64_t r = 0; r < runs; r += m)
    for (int64_t t = 0; t < c->run; t += n)
      for (int64_t f = 0; f < c->wide; f += V_LANES)
        taps_of[least(m, runs - r) - 1][least(n, c->run - t) - 1](c, f, r * c->run + t);
}

extern const tn_conv_lanes_loops TN_LOOP(tn_loops_conv_lanes);
const tn_conv_lanes_loops TN_LOOP(tn_loops_conv_lanes) = {V_LANES, picture, gradient};
