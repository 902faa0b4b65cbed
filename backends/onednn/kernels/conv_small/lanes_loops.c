/* backends/onednn/kernels/conv_small/lanes_loops.c: small convolutions with a filter in each lane. */
#include "backends/onednn/kernels/conv_small/loops.h"
#include "backends/onednn/simd/vector_load.h"
#include "backends/shared/integer_math.h"

/* Tiles: two rows of adjacent pixels, or rows of adjacent taps. Sums fill all registers but one, which holds
 * a vector of filters. */
#if defined(__AVX512F__)
enum { PIXELS = 12, ROWS = 5, TAPS = 5 };
#else
enum { PIXELS = 6, ROWS = 2, TAPS = 5 };
#endif

/* ---- pictures ------------------------------------------------------------------------------------ */

V_INLINE void conv_filters_tile(const tn_conv_lanes *c, int64_t filter, int64_t y, int64_t x, const int m,
                                const int n) {
  vf sum[2][PIXELS];
  const float *w = c->weight + filter, *from = c->planes + y * c->width + x;
  int64_t wide = c->wide, width = c->width;
  vf start = c->bias != NULL ? v_load(c->bias + filter) : (vf){0};
#pragma GCC unroll 2
  for (int i = 0; i < m; i++)
#pragma GCC unroll 12
    for (int j = 0; j < n; j++) sum[i][j] = start;
  for (int64_t p = 0; p < c->depth; p++, w += wide) {
    const float *at = from + c->offset[p];
    vf filters = v_load(w);
#pragma GCC unroll 2
    for (int i = 0; i < m; i++)
#pragma GCC unroll 12
      for (int j = 0; j < n; j++) sum[i][j] += v_splat(at[i * width + j]) * filters;
  }
  vf zero = v_splat(0);
#pragma GCC unroll 2
  for (int i = 0; i < m; i++)
#pragma GCC unroll 12
    for (int j = 0; j < n; j++)
      v_store(c->result + ((y + i) * c->ow + x + j) * wide + filter,
              c->rectified ? v_max(sum[i][j], zero) : sum[i][j]);
}

#define CONV_FILTERS_TILE(n)                                                                                 \
  static void conv_filters_tile_1_##n(const tn_conv_lanes *c, int64_t f, int64_t y, int64_t x) {             \
    conv_filters_tile(c, f, y, x, 1, n);                                                                     \
  }                                                                                                          \
  static void conv_filters_tile_2_##n(const tn_conv_lanes *c, int64_t f, int64_t y, int64_t x) {             \
    conv_filters_tile(c, f, y, x, 2, n);                                                                     \
  }
#define CONV_FILTERS_TILES(m)                                                                                \
  conv_filters_tile_##m##_1, conv_filters_tile_##m##_2, conv_filters_tile_##m##_3,                           \
      conv_filters_tile_##m##_4, conv_filters_tile_##m##_5, conv_filters_tile_##m##_6
CONV_FILTERS_TILE(1)
CONV_FILTERS_TILE(2)
CONV_FILTERS_TILE(3)
CONV_FILTERS_TILE(4)
CONV_FILTERS_TILE(5)
CONV_FILTERS_TILE(6)
#if defined(__AVX512F__)
CONV_FILTERS_TILE(7)
CONV_FILTERS_TILE(8)
CONV_FILTERS_TILE(9)
CONV_FILTERS_TILE(10)
CONV_FILTERS_TILE(11)
CONV_FILTERS_TILE(12)
#define CONV_FILTERS_MORE(m)                                                                                 \
  , conv_filters_tile_##m##_7, conv_filters_tile_##m##_8, conv_filters_tile_##m##_9,                         \
      conv_filters_tile_##m##_10, conv_filters_tile_##m##_11, conv_filters_tile_##m##_12
#else
#define CONV_FILTERS_MORE(m)
#endif
static void (*const conv_filters_tiles[2][PIXELS])(const tn_conv_lanes *c, int64_t f, int64_t y,
                                                   int64_t x) = {
    {CONV_FILTERS_TILES(1) CONV_FILTERS_MORE(1)}, {CONV_FILTERS_TILES(2) CONV_FILTERS_MORE(2)}};

static void conv_filters_picture(const tn_conv_lanes *c) {
  int64_t n = balanced_step(c->ow, PIXELS);
  for (int64_t y = 0; y < c->oh; y += 2)
    for (int64_t x = 0; x < c->ow; x += n)
      for (int64_t f = 0; f < c->wide; f += V_LANES)
        conv_filters_tiles[least(2, c->oh - y) - 1][least(n, c->ow - x) - 1](c, f, y, x);
}

/* ---- gradients of weights ------------------------------------------------------------------------ */

V_INLINE void conv_filters_taps(const tn_conv_lanes *c, int64_t filter, int64_t tap, const int m,
                                const int n) {
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
        vf g = v_load(dy);
#pragma GCC unroll 5
        for (int i = 0; i < m; i++)
#pragma GCC unroll 5
          for (int j = 0; j < n; j++) sum[i][j] += v_splat(x[offset[i] + j]) * g;
      }
  }
#pragma GCC unroll 5
  for (int i = 0; i < m; i++)
#pragma GCC unroll 5
    for (int j = 0; j < n; j++) {
      float *to = c->gradient + (tap + i * c->run + j) * wide + filter;
      v_store(to, c->add ? sum[i][j] + v_load(to) : sum[i][j]);
    }
}

#define CONV_FILTERS_TAPS_OF(m, n)                                                                           \
  static void conv_filters_taps_##m##_##n(const tn_conv_lanes *c, int64_t f, int64_t t) {                    \
    conv_filters_taps(c, f, t, m, n);                                                                        \
  }
#define CONV_FILTERS_EACH(m)                                                                                 \
  CONV_FILTERS_TAPS_OF(m, 1)                                                                                 \
  CONV_FILTERS_TAPS_OF(m, 2) CONV_FILTERS_TAPS_OF(m, 3) CONV_FILTERS_TAPS_OF(m, 4) CONV_FILTERS_TAPS_OF(m, 5)
#define CONV_FILTERS_LIST_OF(m)                                                                              \
  {                                                                                                          \
    conv_filters_taps_##m##_1, conv_filters_taps_##m##_2, conv_filters_taps_##m##_3,                         \
        conv_filters_taps_##m##_4, conv_filters_taps_##m##_5                                                 \
  }
CONV_FILTERS_EACH(1)
CONV_FILTERS_EACH(2)
#if defined(__AVX512F__)
CONV_FILTERS_EACH(3)
CONV_FILTERS_EACH(4)
CONV_FILTERS_EACH(5)
#define CONV_FILTERS_LISTS                                                                                   \
  {                                                                                                          \
    CONV_FILTERS_LIST_OF(1), CONV_FILTERS_LIST_OF(2), CONV_FILTERS_LIST_OF(3), CONV_FILTERS_LIST_OF(4),      \
        CONV_FILTERS_LIST_OF(5)                                                                              \
  }
#else
#define CONV_FILTERS_LISTS                                                                                   \
  { CONV_FILTERS_LIST_OF(1), CONV_FILTERS_LIST_OF(2) }
#endif
static void (*const conv_filters_taps_by[ROWS][TAPS])(const tn_conv_lanes *c, int64_t f,
                                                      int64_t t) = CONV_FILTERS_LISTS;

static void conv_filters_gradient(const tn_conv_lanes *c) {
  int64_t runs = c->depth / c->run, m = balanced_step(runs, ROWS), n = balanced_step(c->run, TAPS);
  for (int64_t r = 0; r < runs; r += m)
    for (int64_t t = 0; t < c->run; t += n)
      for (int64_t f = 0; f < c->wide; f += V_LANES)
        conv_filters_taps_by[least(m, runs - r) - 1][least(n, c->run - t) - 1](c, f, r * c->run + t);
}

const tn_conv_lanes_loops TN_LOOP(tn_loops_conv_lanes) = {V_LANES, conv_filters_picture,
                                                          conv_filters_gradient};
