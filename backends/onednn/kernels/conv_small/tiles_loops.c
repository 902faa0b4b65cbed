/* backends/onednn/kernels/conv_small/tiles_loops.c: small convolutions, in tiles that stay in registers. */
#include "backends/onednn/kernels/conv_small/loops.h"
#include "backends/onednn/simd/partial.h"
#include "backends/onednn/integer_math.h"

/* Tiles: filters and segments of a picture; filters and neighbouring taps of a gradient. */
#if defined(__AVX512F__)
enum { FILTERS = 8, SEGMENTS = 3, GRADIENTS = 4, TAPS = 5 };
#else
enum { FILTERS = 4, SEGMENTS = 2, GRADIENTS = 2, TAPS = 5 };
#endif

/* How many of `n` things at once, at most `most`, so that the last turn is not much smaller. */
static int64_t evenly(int64_t n, int64_t most) {
  int64_t turns = (n + most - 1) / most;
  return turns > 0 ? (n + turns - 1) / turns : 1;
}

/* ---- pictures ------------------------------------------------------------------------------------ */

V_INLINE void tile(const tn_conv_picture *c, int64_t filter, int64_t segment, const int m, const int n) {
  vf sum[FILTERS][SEGMENTS], line[SEGMENTS];
  const float *w = c->weight + filter * c->depth, *from[SEGMENTS];
  int64_t w_i = c->depth, first = c->taps, end = 0;
#pragma GCC unroll 3
  for (int j = 0; j < n; j++) {
    const tn_conv_segment *s = &c->segments[segment + j];
    from[j] = c->planes + s->x;
    first = least(first, s->first);
    end = s->end > end ? s->end : end;
  }
#pragma GCC unroll 8
  for (int i = 0; i < m; i++) {
    vf start = c->bias != NULL ? v_all(c->bias[filter + i]) : (vf){0};
#pragma GCC unroll 3
    for (int j = 0; j < n; j++) sum[i][j] = start;
  }
  for (int64_t channel = 0; channel < c->depth; channel += c->taps)
    for (int64_t p = channel + first; p < channel + end; p++) {
      int64_t at = c->offset[p];
#pragma GCC unroll 3
      for (int j = 0; j < n; j++) line[j] = v_get(from[j] + at);
#pragma GCC unroll 8
      for (int i = 0; i < m; i++) {
        vf x = v_all(w[i * w_i + p]);
#pragma GCC unroll 3
        for (int j = 0; j < n; j++) sum[i][j] += x * line[j];
      }
    }
  vf limit = v_all(c->limit);
#pragma GCC unroll 3
  for (int j = 0; j < n; j++) {
    const tn_conv_segment *s = &c->segments[segment + j];
    float *to = c->result + filter * c->plane + s->y;
#pragma GCC unroll 8
    for (int i = 0; i < m; i++)
      v_put_some(to + i * c->plane, c->rectified ? v_larger(sum[i][j], limit) : sum[i][j], s->lanes);
  }
}

#define TILE(m, n)                                                                                           \
  static void tile_##m##_##n(const tn_conv_picture *c, int64_t f, int64_t s) { tile(c, f, s, m, n); }
/* clang-format off */
TILE(1, 1) TILE(2, 1) TILE(3, 1) TILE(4, 1)
TILE(1, 2) TILE(2, 2) TILE(3, 2) TILE(4, 2)
#if defined(__AVX512F__)
TILE(5, 1) TILE(6, 1) TILE(7, 1) TILE(8, 1)
TILE(5, 2) TILE(6, 2) TILE(7, 2) TILE(8, 2)
TILE(1, 3) TILE(2, 3) TILE(3, 3) TILE(4, 3) TILE(5, 3) TILE(6, 3) TILE(7, 3) TILE(8, 3)
#define LIST(n)                                                                                              \
  { tile_1_##n, tile_2_##n, tile_3_##n, tile_4_##n, tile_5_##n, tile_6_##n, tile_7_##n, tile_8_##n }
#define LISTS                                                                                                \
  { LIST(1), LIST(2), LIST(3) }
#else
#define LIST(n)                                                                                              \
  { tile_1_##n, tile_2_##n, tile_3_##n, tile_4_##n }
#define LISTS                                                                                                \
  { LIST(1), LIST(2) }
#endif
static void (*const tiles[SEGMENTS][FILTERS])(const tn_conv_picture *c, int64_t f, int64_t s) = LISTS;
/* clang-format on */

static void picture(const tn_conv_picture *c) {
  int64_t filters = evenly(c->filters, FILTERS), segments = evenly(c->n_segments, SEGMENTS);
  for (int64_t s = 0; s < c->n_segments; s += segments)
    for (int64_t f = 0; f < c->filters; f += filters)
      tiles[least(segments, c->n_segments - s) - 1][least(filters, c->filters - f) - 1](c, f, s);
}

/* ---- gradients of weights ------------------------------------------------------------------------ */

V_INLINE void taps(const tn_conv_gradient *c, int64_t filter, int64_t tap, const int m, const int n) {
  vf sum[GRADIENTS][TAPS], line[TAPS];
  int64_t offset[TAPS], plane = c->plane;
#pragma GCC unroll 5
  for (int j = 0; j < n; j++) offset[j] = c->offset[tap + j];
#pragma GCC unroll 4
  for (int i = 0; i < m; i++)
#pragma GCC unroll 5
    for (int j = 0; j < n; j++) sum[i][j] = (vf){0};
  for (int64_t k = 0; k < c->pictures; k++) {
    const float *x = c->planes + k * c->planes_step, *dy = c->dy + k * c->dy_step + filter * plane;
    for (const tn_conv_segment *s = c->segments; s < c->segments + c->n_segments; s++) {
#pragma GCC unroll 5
      for (int j = 0; j < n; j++) line[j] = v_get_some(x + s->x + offset[j], s->lanes);
#pragma GCC unroll 4
      for (int i = 0; i < m; i++) {
        vf g = v_get_some(dy + s->y + i * plane, s->lanes);
#pragma GCC unroll 5
        for (int j = 0; j < n; j++) sum[i][j] += g * line[j];
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < m; i++)
#pragma GCC unroll 5
    for (int j = 0; j < n; j++) {
      float *to = &c->gradient[(filter + i) * c->depth + tap + j];
      *to = v_sum(sum[i][j]) + (c->add ? *to : 0);
    }
}

#define TAPS_OF(m, n)                                                                                        \
  static void taps_##m##_##n(const tn_conv_gradient *c, int64_t f, int64_t t) { taps(c, f, t, m, n); }
/* clang-format off */
TAPS_OF(1, 1) TAPS_OF(1, 2) TAPS_OF(1, 3) TAPS_OF(1, 4) TAPS_OF(1, 5)
TAPS_OF(2, 1) TAPS_OF(2, 2) TAPS_OF(2, 3) TAPS_OF(2, 4) TAPS_OF(2, 5)
#if defined(__AVX512F__)
TAPS_OF(3, 1) TAPS_OF(3, 2) TAPS_OF(3, 3) TAPS_OF(3, 4) TAPS_OF(3, 5)
TAPS_OF(4, 1) TAPS_OF(4, 2) TAPS_OF(4, 3) TAPS_OF(4, 4) TAPS_OF(4, 5)
#endif
#define TAPS_LIST(m)                                                                                         \
  { taps_##m##_1, taps_##m##_2, taps_##m##_3, taps_##m##_4, taps_##m##_5 }
#if defined(__AVX512F__)
#define TAPS_LISTS                                                                                           \
  { TAPS_LIST(1), TAPS_LIST(2), TAPS_LIST(3), TAPS_LIST(4) }
#else
#define TAPS_LISTS                                                                                           \
  { TAPS_LIST(1), TAPS_LIST(2) }
#endif
static void (*const taps_of[GRADIENTS][TAPS])(const tn_conv_gradient *c, int64_t f, int64_t t) = TAPS_LISTS;
/* clang-format on */

static void gradient(const tn_conv_gradient *c) {
  int64_t filters = evenly(c->filters, GRADIENTS), n = evenly(c->run, TAPS);
  for (int64_t row = 0; row < c->depth; row += c->run)
    for (int64_t t = row; t < row + c->run; t += n)
      for (int64_t f = 0; f < c->filters; f += filters)
        taps_of[least(filters, c->filters - f) - 1][least(n, row + c->run - t) - 1](c, f, t);
}

static float sum_all(const float *x, int64_t n) {
  vf sum = {0};
  for (int64_t i = 0; i < n; i += V_LANES) sum += v_get_most(x + i, n - i);
  return v_sum(sum);
}

extern const tn_conv_small_loops TN_LOOP(tn_loops_conv_small);
const tn_conv_small_loops TN_LOOP(tn_loops_conv_small) = {V_LANES, picture, gradient, sum_all};
