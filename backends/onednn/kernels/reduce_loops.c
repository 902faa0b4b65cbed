/* backends/onednn/kernels/reduce_loops.c: see reduce.h. */
#define V_LEAST_LANES 8
#include "backends/onednn/kernels/reduce.h"
#include "backends/onednn/simd/vector_load.h"

#include <math.h>
#include <stdbool.h>

enum { TERMS = 64 /* of a sum in f32 */, UNROLLED = 4 };

V_INLINE bool reduce_is_extreme(int32_t op) { return op == TN_REDUCE_MAX || op == TN_REDUCE_MIN; }
V_INLINE int32_t reduce_sets(int32_t op) { return op == TN_REDUCE_MOMENTS || op == TN_REDUCE_GRADS ? 2 : 1; }

V_INLINE float reduce_start(int32_t op) {
  return op == TN_REDUCE_MAX ? -INFINITY : op == TN_REDUCE_MIN ? INFINITY : 0;
}

/* The accumulators of a reduction; `second` is of the second result, if there is one. */
typedef struct reduce_sums {
  vf first, second;
} reduce_sums;

V_INLINE reduce_sums reduce_start_sums(int32_t op) {
  return (reduce_sums){v_splat(reduce_start(op)), (vf){0}};
}

V_INLINE vf reduce_extreme(int32_t op, vf so_far, vf x) {
  return op == TN_REDUCE_MAX ? v_max(x, so_far) : v_min(x, so_far);
}

V_INLINE void reduce_take(int32_t op, reduce_sums *s, vf x, vf y, vf mean) {
  if (reduce_is_extreme(op)) {
    s->first = reduce_extreme(op, s->first, x);
    return;
  }
  s->first += x;
  if (op == TN_REDUCE_MOMENTS) s->second += x * x;
  if (op == TN_REDUCE_GRADS) s->second += x * (y - mean);
}

V_INLINE vf reduce_join(int32_t op, vf a, vf b) {
  return reduce_is_extreme(op) ? reduce_extreme(op, a, b) : a + b;
}

V_INLINE double reduce_join_f64(int32_t op, double a, double b) {
  if (op == TN_REDUCE_MAX) return b > a || b != b ? b : a;
  if (op == TN_REDUCE_MIN) return b < a || b != b ? b : a;
  return a + b;
}

/* Joins each of the first n lanes with a sum of its own. */
V_INLINE void reduce_add_lanes(int32_t op, double *sums, vf a, int64_t n) {
  vd wide = __builtin_convertvector(a, vd);
  if (n == V_LANES && !reduce_is_extreme(op)) {
    v_accumulate(sums, a);
    return;
  }
  for (int64_t i = 0; i < n; i++) sums[i] = reduce_join_f64(op, sums[i], wide[i]);
}

/* Joins all lanes with one sum. */
V_INLINE void reduce_add_all(int32_t op, double *sum, vf a) {
  for (int32_t s = V_LANES / 2; s > 0; s /= 2) a = reduce_join(op, a, v_exchange(a, s));
  *sum = reduce_join_f64(op, *sum, (double)a[0]);
}

/* The sums of at most UNROLLED * TERMS vectors, `stride` elements apart. */
V_INLINE reduce_sums reduce_tile(int32_t op, int32_t dtype, const void *x, const void *y, int64_t at,
                                 int64_t n, int64_t stride, vf mean) {
  reduce_sums s[UNROLLED];
  vf none = {0};
  int64_t i = 0;
  for (int32_t u = 0; u < UNROLLED; u++) s[u] = reduce_start_sums(op);
  for (; i + UNROLLED <= n; i += UNROLLED)
    for (int32_t u = 0; u < UNROLLED; u++) {
      int64_t k = at + (i + u) * stride;
      reduce_take(op, &s[u], v_load_as(dtype, x, k), op == TN_REDUCE_GRADS ? v_load_as(dtype, y, k) : none,
                  mean);
    }
  for (; i < n; i++) {
    int64_t k = at + i * stride;
    reduce_take(op, &s[0], v_load_as(dtype, x, k), op == TN_REDUCE_GRADS ? v_load_as(dtype, y, k) : none,
                mean);
  }
  return (reduce_sums){
      reduce_join(op, reduce_join(op, s[0].first, s[1].first), reduce_join(op, s[2].first, s[3].first)),
      (s[0].second + s[1].second) + (s[2].second + s[3].second)};
}

V_INLINE int64_t reduce_tile_length(int64_t n, int64_t at) {
  return n - at < TERMS * UNROLLED ? n - at : TERMS * UNROLLED;
}

/* The first n lanes of a vector. The other lanes get operands that change nothing: a dy of 0, or the start of
 * an extreme. */
V_INLINE void reduce_part(int32_t op, int32_t dtype, const void *x, const void *y, int64_t at, int64_t n,
                          vf mean, reduce_sums *s) {
  vf none = {0};
  reduce_take(op, s, v_load_part_as(dtype, x, at, n, reduce_start(op)),
              op == TN_REDUCE_GRADS ? v_load_part_as(dtype, y, at, n, 0) : none, mean);
}

V_INLINE void reduce_run(int32_t op, int32_t dtype, const void *x, const void *y, int64_t n,
                         const float *means, double *sums) {
  reduce_sums s = reduce_start_sums(op);
  vf mean = v_splat(op == TN_REDUCE_GRADS ? means[0] : 0);
  int64_t vectors = n / V_LANES;
  for (int64_t at = 0, m; at < vectors; at += m) {
    m = reduce_tile_length(vectors, at);
    s = reduce_tile(op, dtype, x, y, at * V_LANES, m, V_LANES, mean);
    if (at + m == vectors) break;
    reduce_add_all(op, &sums[0], s.first);
    if (reduce_sets(op) == 2) reduce_add_all(op, &sums[1], s.second);
  }
  if (n > vectors * V_LANES) reduce_part(op, dtype, x, y, vectors * V_LANES, n - vectors * V_LANES, mean, &s);
  reduce_add_all(op, &sums[0], s.first);
  if (reduce_sets(op) == 2) reduce_add_all(op, &sums[1], s.second);
}

V_INLINE void reduce_block(int32_t op, int32_t dtype, const void *x, const void *y, int64_t n,
                           const float *means, double *sums) {
  vf mean = op == TN_REDUCE_GRADS ? v_load(means) : v_splat(0);
  for (int64_t at = 0, m; at < n; at += m) {
    m = reduce_tile_length(n, at);
    reduce_sums s = reduce_tile(op, dtype, x, y, at * V_LANES, m, V_LANES, mean);
    reduce_add_lanes(op, sums, s.first, V_LANES);
    if (reduce_sets(op) == 2) reduce_add_lanes(op, sums + V_LANES, s.second, V_LANES);
  }
}

/* Rows come in tiles, so that every column of a tile is summed while the tile is in the cache. */
V_INLINE void reduce_columns(int32_t op, int32_t dtype, const void *x, const void *y, int64_t n,
                             int64_t stride, int64_t m, const float *means, double *sums) {
  for (int64_t row = 0, rows; row < n; row += rows) {
    rows = reduce_tile_length(n, row);
    int64_t base = row * stride, column = 0;
    for (; column + V_LANES <= m; column += V_LANES) {
      vf mean = op == TN_REDUCE_GRADS ? v_load(means + column) : v_splat(0);
      reduce_sums s = reduce_tile(op, dtype, x, y, base + column, rows, stride, mean);
      reduce_add_lanes(op, sums + column, s.first, V_LANES);
      if (reduce_sets(op) == 2) reduce_add_lanes(op, sums + m + column, s.second, V_LANES);
    }
    if (column == m) continue;
    vf mean = op == TN_REDUCE_GRADS ? v_load_part(means + column, m - column) : v_splat(0);
    for (int64_t i = 0; i < rows;) {
      reduce_sums s = reduce_start_sums(op);
      for (int64_t end = i + TERMS < rows ? i + TERMS : rows; i < end; i++)
        reduce_part(op, dtype, x, y, base + i * stride + column, m - column, mean, &s);
      reduce_add_lanes(op, sums + column, s.first, m - column);
      if (reduce_sets(op) == 2) reduce_add_lanes(op, sums + m + column, s.second, m - column);
    }
  }
}

V_INLINE void reduce_store(int32_t dtype, const double *sums, void *to, int64_t n) {
  int64_t i = 0;
  for (; i + V_LANES <= n; i += V_LANES) {
    vd wide;
    memcpy(&wide, sums + i, sizeof wide);
    v_store_as(dtype, to, i, __builtin_convertvector(wide, vf));
  }
  if (i == n) return;
  float rest[V_LANES] = {0};
  for (int64_t k = i; k < n; k++) rest[k - i] = (float)sums[k];
  v_store_part_as(dtype, to, i, n - i, v_load(rest));
}

/* ---- the table ------------------------------------------------------------------------------------- */

#define REDUCE_LOOPS(op, dtype)                                                                              \
  static void reduce_run_##op##_##dtype(const void *x, const void *y, int64_t n, const float *mean,          \
                                        double *sums) {                                                      \
    reduce_run(op, dtype, x, y, n, mean, sums);                                                              \
  }                                                                                                          \
  static void reduce_block_##op##_##dtype(const void *x, const void *y, int64_t n, const float *mean,        \
                                          double *sums) {                                                    \
    reduce_block(op, dtype, x, y, n, mean, sums);                                                            \
  }                                                                                                          \
  static void reduce_columns_##op##_##dtype(const void *x, const void *y, int64_t n, int64_t stride,         \
                                            int64_t m, const float *mean, double *sums) {                    \
    reduce_columns(op, dtype, x, y, n, stride, m, mean, sums);                                               \
  }
#define REDUCE_LOOPS_OF(dtype)                                                                               \
  REDUCE_LOOPS(TN_REDUCE_SUM, dtype)                                                                         \
  REDUCE_LOOPS(TN_REDUCE_MAX, dtype)                                                                         \
  REDUCE_LOOPS(TN_REDUCE_MIN, dtype)                                                                         \
  REDUCE_LOOPS(TN_REDUCE_MOMENTS, dtype)                                                                     \
  REDUCE_LOOPS(TN_REDUCE_GRADS, dtype)                                                                       \
  static void reduce_store_##dtype(const double *sums, void *to, int64_t n) {                                \
    reduce_store(dtype, sums, to, n);                                                                        \
  }
REDUCE_LOOPS_OF(TN_F32)
REDUCE_LOOPS_OF(TN_BF16)
REDUCE_LOOPS_OF(TN_F16)

#define REDUCE_ENTRY(op, dtype)                                                                              \
  [dtype] = {reduce_run_##op##_##dtype, reduce_block_##op##_##dtype, reduce_columns_##op##_##dtype}
#define REDUCE_ENTRIES(op)                                                                                   \
  [op] = {REDUCE_ENTRY(op, TN_F32), REDUCE_ENTRY(op, TN_BF16), REDUCE_ENTRY(op, TN_F16)}

const tn_reduce_loops TN_LOOP(tn_loops_reduce) = {
    .lanes = V_LANES,
    .of = {REDUCE_ENTRIES(TN_REDUCE_SUM), REDUCE_ENTRIES(TN_REDUCE_MAX), REDUCE_ENTRIES(TN_REDUCE_MIN),
           REDUCE_ENTRIES(TN_REDUCE_MOMENTS), REDUCE_ENTRIES(TN_REDUCE_GRADS)},
    .store =
        {[TN_F32] = reduce_store_TN_F32, [TN_BF16] = reduce_store_TN_BF16, [TN_F16] = reduce_store_TN_F16},
};
