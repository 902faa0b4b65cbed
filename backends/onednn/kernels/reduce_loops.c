#include "backends/onednn/simd/lanes.h"
#include "backends/onednn/kernels/reduce.h"

#include <math.h>
#include <stdbool.h>

enum { TERMS = 64 /* of a sum in f32 */, UNROLLED = 4 };

LANE_INLINE bool is_extreme(int32_t op) { return op == TN_REDUCE_MAX || op == TN_REDUCE_MIN; }
LANE_INLINE int32_t sets_of(int32_t op) { return op == TN_REDUCE_MOMENTS || op == TN_REDUCE_GRADS ? 2 : 1; }

LANE_INLINE float start_of(int32_t op) {
  return op == TN_REDUCE_MAX ? -INFINITY : op == TN_REDUCE_MIN ? INFINITY : 0;
}

/* The larger or smaller of both; NaN if x is. */
LANE_INLINE lane_f32 better(int32_t op, lane_f32 so_far, lane_f32 x) {
  lane_i32 is = (op == TN_REDUCE_MAX ? x > so_far : x < so_far) | (x != x);
  return lane_pick(is, x, so_far);
}

LANE_INLINE void take(int32_t op, lane_f32 *a, lane_f32 *b, lane_f32 x, lane_f32 y, lane_f32 mean) {
  if (is_extreme(op)) {
    *a = better(op, *a, x);
    return;
  }
  *a += x;
  if (op == TN_REDUCE_MOMENTS) *b += x * x;
  if (op == TN_REDUCE_GRADS) *b += x * (y - mean);
}

LANE_INLINE lane_f32 join(int32_t op, lane_f32 a, lane_f32 b) {
  return is_extreme(op) ? better(op, a, b) : a + b;
}

LANE_INLINE double join_f64(int32_t op, double a, double b) {
  if (op == TN_REDUCE_MAX) return b > a || b != b ? b : a;
  if (op == TN_REDUCE_MIN) return b < a || b != b ? b : a;
  return a + b;
}

/* Lane by lane into n <= LANES sums. */
LANE_INLINE void add_lanes(int32_t op, double *sums, lane_f32 a, int64_t n) {
  lane_f64 old, wide = __builtin_convertvector(a, lane_f64);
  if (n == LANES && !is_extreme(op)) {
    memcpy(&old, sums, sizeof old);
    old += wide;
    memcpy(sums, &old, sizeof old);
    return;
  }
  for (int64_t i = 0; i < n; i++) sums[i] = join_f64(op, sums[i], wide[i]);
}

/* All lanes into one sum. */
LANE_INLINE void add_all(int32_t op, double *sum, lane_f32 a) {
  for (int32_t half = LANES / 2; half > 0; half /= 2) a = join(op, a, lane_turned(a, half));
  *sum = join_f64(op, *sum, (double)a[0]);
}

/* The sums of at most UNROLLED * TERMS vectors, `stride` elements apart. */
LANE_INLINE void tile(int32_t op, int32_t dtype, const void *x, const void *y, int64_t at, int64_t n,
                      int64_t stride, lane_f32 mean, lane_f32 *first, lane_f32 *second) {
  lane_f32 a[UNROLLED], b[UNROLLED], none = {0};
  int64_t i = 0;
  for (int32_t u = 0; u < UNROLLED; u++) {
    a[u] = lane_all(start_of(op));
    b[u] = none;
  }
  for (; i + UNROLLED <= n; i += UNROLLED)
    for (int32_t u = 0; u < UNROLLED; u++) {
      int64_t k = at + (i + u) * stride;
      take(op, &a[u], &b[u], lane_load(dtype, x, k), op == TN_REDUCE_GRADS ? lane_load(dtype, y, k) : none,
           mean);
    }
  for (; i < n; i++) {
    int64_t k = at + i * stride;
    take(op, &a[0], &b[0], lane_load(dtype, x, k), op == TN_REDUCE_GRADS ? lane_load(dtype, y, k) : none,
         mean);
  }
  *first = join(op, join(op, a[0], a[1]), join(op, a[2], a[3]));
  *second = (b[0] + b[1]) + (b[2] + b[3]);
}

LANE_INLINE int64_t tile_end(int64_t n, int64_t at) {
  return n - at < TERMS * UNROLLED ? n - at : TERMS * UNROLLED;
}

/* What is missing from a vector adds nothing: dy of 0, or the start of an extreme. */
LANE_INLINE void part(int32_t op, int32_t dtype, const void *x, const void *y, int64_t at, int64_t n,
                      lane_f32 mean, lane_f32 *first, lane_f32 *second) {
  lane_f32 none = {0};
  take(op, first, second, lane_load_part(dtype, x, at, n, start_of(op)),
       op == TN_REDUCE_GRADS ? lane_load_part(dtype, y, at, n, 0) : none, mean);
}

LANE_INLINE void run(int32_t op, int32_t dtype, const void *x, const void *y, int64_t n, const float *means,
                     double *sums) {
  lane_f32 first = lane_all(start_of(op)), second = {0},
           mean = lane_all(op == TN_REDUCE_GRADS ? means[0] : 0);
  int64_t vectors = n / LANES;
  for (int64_t at = 0, m; at < vectors; at += m) {
    m = tile_end(vectors, at);
    tile(op, dtype, x, y, at * LANES, m, LANES, mean, &first, &second);
    if (at + m == vectors) break;
    add_all(op, &sums[0], first);
    if (sets_of(op) == 2) add_all(op, &sums[1], second);
  }
  if (n > vectors * LANES) part(op, dtype, x, y, vectors * LANES, n - vectors * LANES, mean, &first, &second);
  add_all(op, &sums[0], first);
  if (sets_of(op) == 2) add_all(op, &sums[1], second);
}

LANE_INLINE void block(int32_t op, int32_t dtype, const void *x, const void *y, int64_t n, const float *means,
                       double *sums) {
  lane_f32 first, second, mean = op == TN_REDUCE_GRADS ? lane_load(TN_F32, means, 0) : lane_all(0);
  for (int64_t at = 0, m; at < n; at += m) {
    m = tile_end(n, at);
    tile(op, dtype, x, y, at * LANES, m, LANES, mean, &first, &second);
    add_lanes(op, sums, first, LANES);
    if (sets_of(op) == 2) add_lanes(op, sums + LANES, second, LANES);
  }
}

/* Rows in tiles, so that all columns of a tile's rows are looked at while the rows are in cache. */
LANE_INLINE void columns(int32_t op, int32_t dtype, const void *x, const void *y, int64_t n, int64_t stride,
                         int64_t m, const float *means, double *sums) {
  for (int64_t row = 0, rows; row < n; row += rows) {
    rows = tile_end(n, row);
    int64_t base = row * stride, column = 0;
    for (; column + LANES <= m; column += LANES) {
      lane_f32 first, second;
      lane_f32 mean = op == TN_REDUCE_GRADS ? lane_load(TN_F32, means, column) : lane_all(0);
      tile(op, dtype, x, y, base + column, rows, stride, mean, &first, &second);
      add_lanes(op, sums + column, first, LANES);
      if (sets_of(op) == 2) add_lanes(op, sums + m + column, second, LANES);
    }
    if (column == m) continue;
    lane_f32 mean =
        op == TN_REDUCE_GRADS ? lane_load_part(TN_F32, means, column, m - column, 0) : lane_all(0);
    for (int64_t i = 0; i < rows;) {
      lane_f32 first = lane_all(start_of(op)), second = {0};
      for (int64_t end = i + TERMS < rows ? i + TERMS : rows; i < end; i++)
        part(op, dtype, x, y, base + i * stride + column, m - column, mean, &first, &second);
      add_lanes(op, sums + column, first, m - column);
      if (sets_of(op) == 2) add_lanes(op, sums + m + column, second, m - column);
    }
  }
}

LANE_INLINE void put(int32_t dtype, const double *sums, void *to, int64_t n) {
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    lane_f64 wide;
    memcpy(&wide, sums + i, sizeof wide);
    lane_store(dtype, to, i, __builtin_convertvector(wide, lane_f32));
  }
  if (i == n) return;
  float rest[LANES] = {0};
  for (int64_t k = i; k < n; k++) rest[k - i] = (float)sums[k];
  lane_store_part(dtype, to, i, n - i, lane_load(TN_F32, rest, 0));
}

/* ---- one of each ---------------------------------------------------------------------------------- */

#define REDUCE(op, dtype)                                                                                    \
  static void TN_LOOP(run_##op##_##dtype)(const void *x, const void *y, int64_t n, const float *mean,        \
                                          double *sums) {                                                    \
    run(op, dtype, x, y, n, mean, sums);                                                                     \
  }                                                                                                          \
  static void TN_LOOP(block_##op##_##dtype)(const void *x, const void *y, int64_t n, const float *mean,      \
                                            double *sums) {                                                  \
    block(op, dtype, x, y, n, mean, sums);                                                                   \
  }                                                                                                          \
  static void TN_LOOP(columns_##op##_##dtype)(const void *x, const void *y, int64_t n, int64_t stride,       \
                                              int64_t m, const float *mean, double *sums) {                  \
    columns(op, dtype, x, y, n, stride, m, mean, sums);                                                      \
  }
#define REDUCE_EACH(dtype)                                                                                   \
  REDUCE(TN_REDUCE_SUM, dtype)                                                                               \
  REDUCE(TN_REDUCE_MAX, dtype)                                                                               \
  REDUCE(TN_REDUCE_MIN, dtype)                                                                               \
  REDUCE(TN_REDUCE_MOMENTS, dtype)                                                                           \
  REDUCE(TN_REDUCE_GRADS, dtype)                                                                             \
  static void TN_LOOP(put_##dtype)(const double *sums, void *to, int64_t n) { put(dtype, sums, to, n); }
REDUCE_EACH(TN_F32)
REDUCE_EACH(TN_BF16)
REDUCE_EACH(TN_F16)

#define FUNCTIONS(op, dtype)                                                                                 \
  [dtype] = {TN_LOOP(run_##op##_##dtype), TN_LOOP(block_##op##_##dtype), TN_LOOP(columns_##op##_##dtype)}
#define FUNCTIONS_OF(op) [op] = {FUNCTIONS(op, TN_F32), FUNCTIONS(op, TN_BF16), FUNCTIONS(op, TN_F16)}

const tn_reduce_loops TN_LOOP(tn_loops_reduce) = {
    .lanes = LANES,
    .of = {FUNCTIONS_OF(TN_REDUCE_SUM), FUNCTIONS_OF(TN_REDUCE_MAX), FUNCTIONS_OF(TN_REDUCE_MIN),
           FUNCTIONS_OF(TN_REDUCE_MOMENTS), FUNCTIONS_OF(TN_REDUCE_GRADS)},
    .put = {[TN_F32] = TN_LOOP(put_TN_F32), [TN_BF16] = TN_LOOP(put_TN_BF16), [TN_F16] = TN_LOOP(put_TN_F16)},
};
