/* backends/onednn/kernels/conv_small/tiles_loops.c: small convolutions with vectors along the rows of the
 * result, in tiles that stay in registers. */
#include "backends/onednn/kernels/conv_small/loops.h"
#include "backends/onednn/simd/vector_load.h"
#include "backends/shared/integer_math.h"

/* Tiles: filters and segments of a picture, or filters and adjacent taps of a gradient. */
#if defined(__AVX512F__)
enum { FILTERS = 8, SEGMENTS = 3, GRADIENTS = 4, TAPS = 5 };
#else
enum { FILTERS = 4, SEGMENTS = 2, GRADIENTS = 2, TAPS = 5 };
#endif

/* The sum of all lanes: on AVX-512 as a tree, elsewhere in their order. */
V_INLINE float conv_rows_sum_lanes(vf x) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_ps((__m512)x);
#else
  float sum = 0;
  for (int l = 0; l < V_LANES; l++) sum += x[l];
  return sum;
#endif
}

/* ---- pictures ------------------------------------------------------------------------------------ */

V_INLINE void conv_rows_tile(const tn_conv_picture *c, int64_t filter, int64_t segment, const int m,
                             const int n) {
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
    vf start = c->bias != NULL ? v_splat(c->bias[filter + i]) : (vf){0};
#pragma GCC unroll 3
    for (int j = 0; j < n; j++) sum[i][j] = start;
  }
  for (int64_t channel = 0; channel < c->depth; channel += c->taps)
    for (int64_t p = channel + first; p < channel + end; p++) {
      int64_t at = c->offset[p];
#pragma GCC unroll 3
      for (int j = 0; j < n; j++) line[j] = v_load(from[j] + at);
#pragma GCC unroll 8
      for (int i = 0; i < m; i++) {
        vf x = v_splat(w[i * w_i + p]);
#pragma GCC unroll 3
        for (int j = 0; j < n; j++) sum[i][j] += x * line[j];
      }
    }
  vf zero = v_splat(0);
#pragma GCC unroll 3
  for (int j = 0; j < n; j++) {
    const tn_conv_segment *s = &c->segments[segment + j];
    float *to = c->result + filter * c->plane + s->y;
#pragma GCC unroll 8
    for (int i = 0; i < m; i++)
      v_store_part(to + i * c->plane, c->rectified ? v_max(sum[i][j], zero) : sum[i][j], s->lanes);
  }
}

#define CONV_ROWS_TILE(m, n)                                                                                 \
  static void conv_rows_tile_##m##_##n(const tn_conv_picture *c, int64_t f, int64_t s) {                     \
    conv_rows_tile(c, f, s, m, n);                                                                           \
  }
CONV_ROWS_TILE(1, 1)
CONV_ROWS_TILE(2, 1)
CONV_ROWS_TILE(3, 1)
CONV_ROWS_TILE(4, 1)
CONV_ROWS_TILE(1, 2)
CONV_ROWS_TILE(2, 2)
CONV_ROWS_TILE(3, 2)
CONV_ROWS_TILE(4, 2)
#if defined(__AVX512F__)
CONV_ROWS_TILE(5, 1)
CONV_ROWS_TILE(6, 1)
CONV_ROWS_TILE(7, 1)
CONV_ROWS_TILE(8, 1)
CONV_ROWS_TILE(5, 2)
CONV_ROWS_TILE(6, 2)
CONV_ROWS_TILE(7, 2)
CONV_ROWS_TILE(8, 2)
CONV_ROWS_TILE(1, 3)
CONV_ROWS_TILE(2, 3)
CONV_ROWS_TILE(3, 3)
CONV_ROWS_TILE(4, 3)
CONV_ROWS_TILE(5, 3)
CONV_ROWS_TILE(6, 3)
CONV_ROWS_TILE(7, 3)
CONV_ROWS_TILE(8, 3)
#define CONV_ROWS_LIST(n)                                                                                    \
  {                                                                                                          \
    conv_rows_tile_1_##n, conv_rows_tile_2_##n, conv_rows_tile_3_##n, conv_rows_tile_4_##n,                  \
        conv_rows_tile_5_##n, conv_rows_tile_6_##n, conv_rows_tile_7_##n, conv_rows_tile_8_##n               \
  }
#define CONV_ROWS_LISTS                                                                                      \
  { CONV_ROWS_LIST(1), CONV_ROWS_LIST(2), CONV_ROWS_LIST(3) }
#else
#define CONV_ROWS_LIST(n)                                                                                    \
  { conv_rows_tile_1_##n, conv_rows_tile_2_##n, conv_rows_tile_3_##n, conv_rows_tile_4_##n }
#define CONV_ROWS_LISTS                                                                                      \
  { CONV_ROWS_LIST(1), CONV_ROWS_LIST(2) }
#endif
static void (*const conv_rows_tiles[SEGMENTS][FILTERS])(const tn_conv_picture *c, int64_t f,
                                                        int64_t s) = CONV_ROWS_LISTS;

static void conv_rows_picture(const tn_conv_picture *c) {
  int64_t filters = balanced_step(c->filters, FILTERS), segments = balanced_step(c->n_segments, SEGMENTS);
  for (int64_t s = 0; s < c->n_segments; s += segments)
    for (int64_t f = 0; f < c->filters; f += filters)
      conv_rows_tiles[least(segments, c->n_segments - s) - 1][least(filters, c->filters - f) - 1](c, f, s);
}

/* ---- gradients of weights ------------------------------------------------------------------------ */

V_INLINE void conv_rows_taps(const tn_conv_gradient *c, int64_t filter, int64_t tap, const int m,
                             const int n) {
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
      for (int j = 0; j < n; j++) line[j] = v_load_part(x + s->x + offset[j], s->lanes);
#pragma GCC unroll 4
      for (int i = 0; i < m; i++) {
        vf g = v_load_part(dy + s->y + i * plane, s->lanes);
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
      *to = conv_rows_sum_lanes(sum[i][j]) + (c->add ? *to : 0);
    }
}

#define CONV_ROWS_TAPS_OF(m, n)                                                                              \
  static void conv_rows_taps_##m##_##n(const tn_conv_gradient *c, int64_t f, int64_t t) {                    \
    conv_rows_taps(c, f, t, m, n);                                                                           \
  }
CONV_ROWS_TAPS_OF(1, 1)
CONV_ROWS_TAPS_OF(1, 2)
CONV_ROWS_TAPS_OF(1, 3)
CONV_ROWS_TAPS_OF(1, 4)
CONV_ROWS_TAPS_OF(1, 5)
CONV_ROWS_TAPS_OF(2, 1)
CONV_ROWS_TAPS_OF(2, 2)
CONV_ROWS_TAPS_OF(2, 3)
CONV_ROWS_TAPS_OF(2, 4)
CONV_ROWS_TAPS_OF(2, 5)
#if defined(__AVX512F__)
CONV_ROWS_TAPS_OF(3, 1)
CONV_ROWS_TAPS_OF(3, 2)
CONV_ROWS_TAPS_OF(3, 3)
CONV_ROWS_TAPS_OF(3, 4)
CONV_ROWS_TAPS_OF(3, 5)
CONV_ROWS_TAPS_OF(4, 1)
CONV_ROWS_TAPS_OF(4, 2)
CONV_ROWS_TAPS_OF(4, 3)
CONV_ROWS_TAPS_OF(4, 4)
CONV_ROWS_TAPS_OF(4, 5)
#endif
#define CONV_ROWS_TAPS_LIST(m)                                                                               \
  {                                                                                                          \
    conv_rows_taps_##m##_1, conv_rows_taps_##m##_2, conv_rows_taps_##m##_3, conv_rows_taps_##m##_4,          \
        conv_rows_taps_##m##_5                                                                               \
  }
#if defined(__AVX512F__)
#define CONV_ROWS_TAPS_LISTS                                                                                 \
  { CONV_ROWS_TAPS_LIST(1), CONV_ROWS_TAPS_LIST(2), CONV_ROWS_TAPS_LIST(3), CONV_ROWS_TAPS_LIST(4) }
#else
#define CONV_ROWS_TAPS_LISTS                                                                                 \
  { CONV_ROWS_TAPS_LIST(1), CONV_ROWS_TAPS_LIST(2) }
#endif
static void (*const conv_rows_taps_by[GRADIENTS][TAPS])(const tn_conv_gradient *c, int64_t f,
                                                        int64_t t) = CONV_ROWS_TAPS_LISTS;

static void conv_rows_gradient(const tn_conv_gradient *c) {
  int64_t filters = balanced_step(c->filters, GRADIENTS), n = balanced_step(c->run, TAPS);
  for (int64_t row = 0; row < c->depth; row += c->run)
    for (int64_t t = row; t < row + c->run; t += n)
      for (int64_t f = 0; f < c->filters; f += filters)
        conv_rows_taps_by[least(filters, c->filters - f) - 1][least(n, row + c->run - t) - 1](c, f, t);
}

static float conv_rows_sum(const float *x, int64_t n) {
  vf sum = {0};
  for (int64_t i = 0; i < n; i += V_LANES) sum += v_load_upto(x + i, n - i);
  return conv_rows_sum_lanes(sum);
}

const tn_conv_small_loops TN_LOOP(tn_loops_conv_small) = {V_LANES, conv_rows_picture, conv_rows_gradient,
                                                          conv_rows_sum};
