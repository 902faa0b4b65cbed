/* backends/onednn/kernels/reduce_loops.c: see reduce.h. */
#define V_LEAST_LANES 8
#include "backends/onednn/kernels/reduce.h"
#include "backends/onednn/simd/vector_load.h"

#include <math.h>
#include <stdbool.h>

enum { TERMS = 64 /* of a sum in f32 */, UNROLLED = 4 };
/* Of vectors, for the shift of a tile; shorter runs are shifted by their first element. */
enum { MOST_SAMPLES = 8, FEW_ELEMENTS = 64 };

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
  if (op == TN_REDUCE_MOMENTS) x -= mean;
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

/* A value near n vectors, `stride` elements apart: the mean of the first ones, which are in the cache
 * soonest. An outlier among k of them costs about n / k^2 times the rounding of the sum. */
V_INLINE vf reduce_shift_upto(int32_t dtype, const void *x, int64_t at, int64_t n, int64_t stride,
                              int64_t lanes) {
  int64_t samples = n < 4 ? 1 : n < 4 * MOST_SAMPLES ? n / 4 : MOST_SAMPLES;
  vf sum = v_load_upto_as(dtype, x, at, lanes, 0);
  for (int64_t k = 1; k < samples; k++) sum += v_load_upto_as(dtype, x, at + k * stride, lanes, 0);
  return sum * v_splat(1.0f / (float)samples);
}
V_INLINE vf reduce_shift(int32_t dtype, const void *x, int64_t at, int64_t n, int64_t stride) {
  return reduce_shift_upto(dtype, x, at, n, stride, V_LANES);
}

/* The same for n adjacent elements, in all lanes. */
V_INLINE vf reduce_shift_of_run(int32_t dtype, const void *x, int64_t at, int64_t n) {
  if (n < V_LANES) return v_splat(v_load_part_as(dtype, x, at, n, 0)[0]);
  if (n <= FEW_ELEMENTS) return v_splat(v_load_as(dtype, x, at)[0]);
  return v_sum_across(reduce_shift(dtype, x, at, n / V_LANES, V_LANES)) * v_splat(1.0f / V_LANES);
}

/* The sums of the elements and of their squares, in f64, from those of `count` elements relative to `mean`.
 */
typedef struct reduce_wide {
  vd first, second;
} reduce_wide;
V_INLINE reduce_wide reduce_unshifted(reduce_sums s, vf mean, int64_t count) {
  vd first = __builtin_convertvector(s.first, vd), m = __builtin_convertvector(mean, vd);
  vd whole = m * (double)count;
  return (reduce_wide){first + whole, __builtin_convertvector(s.second, vd) + m * (first + first + whole)};
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

/* The first n lanes of a vector. The other lanes get operands that change nothing: a dy of 0, the mean, or
 * the start of an extreme. */
V_INLINE void reduce_part(int32_t op, int32_t dtype, const void *x, const void *y, int64_t at, int64_t n,
                          vf mean, reduce_sums *s) {
  vf none = {0}, value = v_load_part_as(dtype, x, at, n, reduce_start(op));
  if (op == TN_REDUCE_MOMENTS) value = v_keep_first(value, n, mean);
  reduce_take(op, s, value, op == TN_REDUCE_GRADS ? v_load_part_as(dtype, y, at, n, 0) : none, mean);
}

/* Adds the sums of `count` elements in each of the first n lanes to those of n results, whose second sums are
 * m behind the first ones. */
V_INLINE void reduce_deliver_lanes(int32_t op, double *sums, int64_t m, reduce_sums s, vf mean, int64_t count,
                                   int64_t n) {
  if (op == TN_REDUCE_MOMENTS) {
    reduce_wide w = reduce_unshifted(s, mean, count);
    for (int64_t i = 0; i < n; i++) sums[i] += w.first[i];
    for (int64_t i = 0; i < n; i++) sums[m + i] += w.second[i];
    return;
  }
  reduce_add_lanes(op, sums, s.first, n);
  if (reduce_sets(op) == 2) reduce_add_lanes(op, sums + m, s.second, n);
}

/* The sums over all lanes: of a in the even lanes, of b in the odd ones. */
V_INLINE vf reduce_sum_both(vf a, vf b) {
  a = __builtin_shuffle(a + v_exchange(a, 1), b + v_exchange(b, 1), V_INDEX + (V_INDEX & 1) * V_LANES);
  for (int32_t s = V_LANES / 2; s > 1; s /= 2) a += v_exchange(a, s);
  return a;
}

/* The same for the elements of all lanes and one result. */
V_INLINE void reduce_deliver_all(int32_t op, double *sums, reduce_sums s, vf mean, int64_t count) {
  if (op != TN_REDUCE_MOMENTS) {
    reduce_add_all(op, &sums[0], s.first);
    if (reduce_sets(op) == 2) reduce_add_all(op, &sums[1], s.second);
    return;
  }
  vf both = reduce_sum_both(s.first, s.second);
  double first = (double)both[0], shift = (double)mean[0], whole = shift * (double)count;
  sums[0] += first + whole;
  sums[1] += (double)both[1] + shift * (2 * first + whole);
}

/* The tail, shorter than a vector, belongs to the last tile. */
V_INLINE void reduce_run(int32_t op, int32_t dtype, const void *x, const void *y, int64_t n,
                         const float *means, double *sums) {
  vf mean = v_splat(op == TN_REDUCE_GRADS ? means[0] : 0);
  int64_t vectors = n / V_LANES, at = 0, m;
  do {
    m = reduce_tile_length(vectors, at);
    int64_t end = at + m == vectors ? n : (at + m) * V_LANES, tail = end - (at + m) * V_LANES;
    if (op == TN_REDUCE_MOMENTS && end > 0)
      mean = reduce_shift_of_run(dtype, x, at * V_LANES, end - at * V_LANES);
    reduce_sums s = reduce_tile(op, dtype, x, y, at * V_LANES, m, V_LANES, mean);
    if (tail > 0) reduce_part(op, dtype, x, y, end - tail, tail, mean, &s);
    reduce_deliver_all(op, sums, s, mean, end - at * V_LANES);
    at += m;
  } while (at < vectors);
}

V_INLINE void reduce_block(int32_t op, int32_t dtype, const void *x, const void *y, int64_t n,
                           const float *means, double *sums) {
  vf mean = op == TN_REDUCE_GRADS ? v_load(means) : v_splat(0);
  for (int64_t at = 0, m; at < n; at += m) {
    m = reduce_tile_length(n, at);
    if (op == TN_REDUCE_MOMENTS) mean = reduce_shift(dtype, x, at * V_LANES, m, V_LANES);
    reduce_sums s = reduce_tile(op, dtype, x, y, at * V_LANES, m, V_LANES, mean);
    reduce_deliver_lanes(op, sums, V_LANES, s, mean, m, V_LANES);
  }
}

/* The last columns, fewer than a vector, of a tile of rows. */
V_INLINE void reduce_last_columns(int32_t op, int32_t dtype, const void *x, const void *y, int64_t base,
                                  int64_t rows, int64_t stride, int64_t left, int64_t m, vf mean,
                                  double *sums) {
  for (int64_t i = 0, end; i < rows; i = end) {
    reduce_sums s = reduce_start_sums(op);
    end = i + TERMS < rows ? i + TERMS : rows;
    if (op == TN_REDUCE_MOMENTS) mean = reduce_shift_upto(dtype, x, base + i * stride, end - i, stride, left);
    for (int64_t k = i; k < end; k++) reduce_part(op, dtype, x, y, base + k * stride, left, mean, &s);
    reduce_deliver_lanes(op, sums, m, s, mean, end - i, left);
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
      if (op == TN_REDUCE_MOMENTS) mean = reduce_shift(dtype, x, base + column, rows, stride);
      reduce_sums s = reduce_tile(op, dtype, x, y, base + column, rows, stride, mean);
      reduce_deliver_lanes(op, sums + column, m, s, mean, rows, V_LANES);
    }
    if (column == m) continue;
    vf mean = op == TN_REDUCE_GRADS ? v_load_part(means + column, m - column) : v_splat(0);
    reduce_last_columns(op, dtype, x, y, base + column, rows, stride, m - column, m, mean, sums + column);
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
