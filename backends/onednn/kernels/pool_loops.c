/* backends/onednn/kernels/pool_loops.c: see pool.h. */
#define V_LEAST_LANES 8
#include "backends/onednn/kernels/pool.h"
#include "backends/onednn/simd/vector_load.h"

#include <math.h>
#include <stdbool.h>

/* ---- maxima --------------------------------------------------------------------------------------- */

/* A value and the index of its element in the plane. */
typedef struct pool_best {
  vf value;
  vi at;
} pool_best;

/* x > best; NaN is larger than every number, and not larger than NaN. */
V_INLINE vm pool_is_larger(vf x, vf best) { return v_and(v_not(v_le(x, best)), v_eq(best, best)); }

/* The larger of both; the one with the smaller index where they are equal, or both NaN. */
V_INLINE vm pool_is_better(pool_best x, pool_best best) {
  vm equal = v_or(v_eq(x.value, best.value), v_and(v_ne(x.value, x.value), v_ne(best.value, best.value)));
  return v_or(pool_is_larger(x.value, best.value), v_and(equal, v_lt_i(x.at, best.at)));
}

V_INLINE pool_best pool_select(vm mask, pool_best x, pool_best y) {
  return (pool_best){v_select(mask, x.value, y.value), v_select_i(mask, x.at, y.at)};
}

V_INLINE float pool_divisor(const tn_pool_shape *s, const tn_pool_window *v, const tn_pool_window *h) {
  if (s->include_pad) return (float)(v->padded * h->padded);
  return (float)((v->high - v->low) * (h->high - h->low));
}

/* ---- channels in blocks --------------------------------------------------------------------------- */

V_INLINE void pool_max_blocks(int32_t dtype, const tn_pool_shape *s, const void *x, void *y, int32_t *index) {
  int64_t width = s->axis[1].in, o = 0;
  for (int64_t i = 0; i < s->axis[0].out; i++) {
    tn_pool_window v = tn_pool_window_at(&s->axis[0], i);
    for (int64_t j = 0; j < s->axis[1].out; j++, o += V_LANES) {
      tn_pool_window h = tn_pool_window_at(&s->axis[1], j);
      int64_t first = v.low * width + h.low;
      pool_best best = {v_load_as(dtype, x, first * V_LANES), v_splat_i((int32_t)first)};
      for (int64_t r = v.low; r < v.high; r++)
        for (int64_t c = h.low; c < h.high; c++) {
          int64_t at = r * width + c;
          pool_best next = {v_load_as(dtype, x, at * V_LANES), v_splat_i((int32_t)at)};
          best = pool_select(pool_is_larger(next.value, best.value), next, best);
        }
      v_store_as(dtype, y, o, best.value);
      if (index != NULL) v_store_i(index + o, best.at);
    }
  }
}

/* Advances w from the windows that hold element i - 1 to those that hold element i. */
V_INLINE void pool_advance_windows(const tn_pool_axis *a, int64_t i, tn_pool_window *w) {
  while (w->low < a->out && w->low * a->stride - a->padding + a->kernel <= i) w->low++;
  while (w->high < a->out && w->high * a->stride - a->padding <= i) w->high++;
}

/* Each element collects from the windows that hold it. */
V_INLINE void pool_max_grad_blocks(int32_t dtype, const tn_pool_shape *s, const void *dy, void *dx,
                                   const int32_t *index) {
  int64_t at = 0;
  for (int64_t i = 0; i < s->axis[0].in; i++) {
    tn_pool_window v = tn_pool_windows_of(&s->axis[0], i), h = {0, 0, 0};
    for (int64_t j = 0; j < s->axis[1].in; j++, at++) {
      vi here = v_splat_i((int32_t)at);
      vf sum = {0};
      pool_advance_windows(&s->axis[1], j, &h);
      for (int64_t r = v.low; r < v.high; r++)
        for (int64_t c = h.low; c < h.high; c++) {
          int64_t o = (r * s->axis[1].out + c) * V_LANES;
          sum += v_select(v_eq_i(v_load_i(index + o), here), v_load_as(dtype, dy, o), (vf){0});
        }
      v_store_as(dtype, dx, at * V_LANES, sum);
    }
  }
}

V_INLINE void pool_avg_blocks(int32_t dtype, const tn_pool_shape *s, const void *x, void *y) {
  int64_t o = 0;
  for (int64_t i = 0; i < s->axis[0].out; i++)
    for (int64_t j = 0; j < s->axis[1].out; j++, o += V_LANES) {
      tn_pool_window v = tn_pool_window_at(&s->axis[0], i), h = tn_pool_window_at(&s->axis[1], j);
      vf sum = {0};
      for (int64_t r = v.low; r < v.high; r++)
        for (int64_t c = h.low; c < h.high; c++)
          sum += v_load_as(dtype, x, (r * s->axis[1].in + c) * V_LANES);
      v_store_as(dtype, y, o, sum / pool_divisor(s, &v, &h));
    }
}

V_INLINE void pool_avg_grad_blocks(int32_t dtype, const tn_pool_shape *s, const void *dy, void *dx) {
  int64_t at = 0;
  for (int64_t i = 0; i < s->axis[0].in; i++)
    for (int64_t j = 0; j < s->axis[1].in; j++, at += V_LANES) {
      tn_pool_window v = tn_pool_windows_of(&s->axis[0], i), h = tn_pool_windows_of(&s->axis[1], j);
      vf sum = {0};
      for (int64_t r = v.low; r < v.high; r++)
        for (int64_t c = h.low; c < h.high; c++) {
          tn_pool_window a = tn_pool_window_at(&s->axis[0], r), b = tn_pool_window_at(&s->axis[1], c);
          sum += v_load_as(dtype, dy, (r * s->axis[1].out + c) * V_LANES) / pool_divisor(s, &a, &b);
        }
      v_store_as(dtype, dx, at, sum);
    }
}

/* ---- channels innermost --------------------------------------------------------------------------- */

/* n channels from `channel` on, at most a vector of them, of a window of a plane of `width` columns. */
typedef struct pool_channels {
  tn_pool_window down, across;
  int64_t width, channels, channel, n;
} pool_channels;

V_INLINE vf pool_load_channels(int32_t dtype, const pool_channels *w, const void *x, int64_t at) {
  return v_load_upto_as(dtype, x, at * w->channels + w->channel, w->n, 0);
}

V_INLINE pool_best pool_max_channels(int32_t dtype, const pool_channels *w, const void *x) {
  int64_t first = w->down.low * w->width + w->across.low;
  pool_best best = {pool_load_channels(dtype, w, x, first), v_splat_i((int32_t)first)};
  for (int64_t r = w->down.low; r < w->down.high; r++)
    for (int64_t c = w->across.low; c < w->across.high; c++) {
      int64_t at = r * w->width + c;
      pool_best next = {pool_load_channels(dtype, w, x, at), v_splat_i((int32_t)at)};
      best = pool_select(pool_is_larger(next.value, best.value), next, best);
    }
  return best;
}

V_INLINE vf pool_sum_channels(int32_t dtype, const pool_channels *w, const void *x) {
  vf sum = {0};
  for (int64_t r = w->down.low; r < w->down.high; r++)
    for (int64_t c = w->across.low; c < w->across.high; c++)
      sum += pool_load_channels(dtype, w, x, r * w->width + c);
  return sum;
}

/* Stores the result of one window; its channels begin at element `o`. */
V_INLINE void pool_store_channels(int32_t op, int32_t dtype, const tn_pool_shape *s, const pool_channels *w,
                                  const void *x, void *y, int32_t *index, int64_t o) {
  if (op == TN_POOL_AVG) {
    vf sum = pool_sum_channels(dtype, w, x);
    v_store_upto_as(dtype, y, o + w->channel, w->n, sum / pool_divisor(s, &w->down, &w->across));
    return;
  }
  pool_best best = pool_max_channels(dtype, w, x);
  v_store_upto_as(dtype, y, o + w->channel, w->n, best.value);
  if (index != NULL) v_store_i_part(index + o + w->channel, best.at, w->n);
}

/* Rows `first` to `last` of the results. A constant number of lanes needs no mask. */
V_INLINE void pool_rows(int32_t op, int32_t dtype, const tn_pool_shape *s, int64_t channels, int64_t first,
                        int64_t last, const void *x, void *y, int32_t *index) {
  pool_channels w = {.width = s->axis[1].in, .channels = channels};
  int64_t o = first * s->axis[1].out * channels;
  for (int64_t i = first; i < last; i++) {
    w.down = tn_pool_window_at(&s->axis[0], i);
    for (int64_t j = 0; j < s->axis[1].out; j++, o += channels) {
      w.across = tn_pool_window_at(&s->axis[1], j);
      w.n = V_LANES;
      for (w.channel = 0; w.channel + V_LANES <= channels; w.channel += V_LANES)
        pool_store_channels(op, dtype, s, &w, x, y, index, o);
      w.n = channels - w.channel;
      if (w.n > 0) pool_store_channels(op, dtype, s, &w, x, y, index, o);
    }
  }
}

/* ---- planes: first down the columns of a window's rows, then along the columns ---------------------- */

/* A row of column maxima with padding on both sides. Padding is minus infinity with the largest index. */
typedef struct pool_columns {
  float best[TN_POOL_COLUMNS + 3 * V_LANES];
  int32_t at[TN_POOL_COLUMNS + 3 * V_LANES];
} pool_columns;

/* Lanes beyond the last column of x keep the index of padding. */
V_INLINE void pool_max_down(int32_t dtype, const tn_pool_axis *across, const tn_pool_window *rows,
                            const void *x, pool_columns *to) {
  for (int64_t c = 0; c < across->in; c += V_LANES) {
    int64_t n = across->in - c, first = rows->low * across->in;
    vi column = V_INDEX + (int32_t)c;
    pool_best best = {v_load_upto_as(dtype, x, first + c, n, -INFINITY), column + (int32_t)first};
    for (int64_t r = rows->low + 1; r < rows->high; r++) {
      pool_best next = {v_load_upto_as(dtype, x, r * across->in + c, n, -INFINITY),
                        column + (int32_t)(r * across->in)};
      best = pool_select(pool_is_larger(next.value, best.value), next, best);
    }
    v_store(to->best + across->padding + c, best.value);
    v_store_i(to->at + across->padding + c,
              v_select_i(v_lt_i(column, v_splat_i((int32_t)across->in)), best.at, v_splat_i(INT32_MAX)));
  }
}

V_INLINE void pool_sum_down(int32_t dtype, const tn_pool_axis *across, const tn_pool_window *rows,
                            const void *x, float *to) {
  for (int64_t c = 0; c < across->in; c += V_LANES) {
    vf sum = {0};
    for (int64_t r = rows->low; r < rows->high; r++)
      sum += v_load_upto_as(dtype, x, r * across->in + c, across->in - c, 0);
    v_store(to + across->padding + c, sum);
  }
}

/* Elements 0, stride, 2 stride ... for a stride of 1 or 2. */
V_INLINE vf pool_load_strided(int64_t stride, const float *from) {
  vf low = v_load(from);
  return stride == 1 ? low : __builtin_shuffle(low, v_load(from + V_LANES), V_INDEX * 2);
}
V_INLINE vi pool_load_strided_i(int64_t stride, const int32_t *from) {
  vi low = v_load_i(from);
  return stride == 1 ? low : __builtin_shuffle(low, v_load_i(from + V_LANES), V_INDEX * 2);
}
V_INLINE pool_best pool_load_columns(int64_t stride, const pool_columns *from, int64_t c) {
  return (pool_best){pool_load_strided(stride, from->best + c), pool_load_strided_i(stride, from->at + c)};
}

V_INLINE void pool_max_along(int32_t dtype, const tn_pool_axis *across, const pool_columns *from, void *y,
                             int64_t o, int32_t *index) {
  for (int64_t j = 0; j < across->out; j += V_LANES) {
    int64_t n = across->out - j, c = j * across->stride;
    pool_best best = pool_load_columns(across->stride, from, c);
    for (int64_t k = 1; k < across->kernel; k++) {
      pool_best next = pool_load_columns(across->stride, from, c + k);
      best = pool_select(pool_is_better(next, best), next, best);
    }
    v_store_upto_as(dtype, y, o + j, n, best.value);
    if (index != NULL) v_store_i_part(index + o + j, best.at, n < V_LANES ? n : V_LANES);
  }
}

V_INLINE void pool_avg_along(int32_t dtype, const tn_pool_shape *s, const tn_pool_window *rows,
                             const float *from, void *y, int64_t o) {
  const tn_pool_axis *across = &s->axis[1];
  for (int64_t j = 0; j < across->out; j += V_LANES) {
    int64_t n = across->out - j < V_LANES ? across->out - j : V_LANES;
    vf sum = {0};
    float divisor[V_LANES];
    for (int64_t k = 0; k < across->kernel; k++)
      sum += pool_load_strided(across->stride, from + j * across->stride + k);
    for (int64_t k = 0; k < V_LANES; k++) {
      tn_pool_window h = tn_pool_window_at(across, k < n ? j + k : j);
      divisor[k] = pool_divisor(s, rows, &h);
    }
    v_store_upto_as(dtype, y, o + j, n, sum / v_load(divisor));
  }
}

/* ---- planes: adjacent windows of 2 x 2 ---------------------------------------------------------------- */

typedef struct pool_pairs {
  vf even, odd;
} pool_pairs;

/* The first n elements from `at` on, at most 2 V_LANES, as those at even and odd places. */
V_INLINE pool_pairs pool_load_pairs(int32_t dtype, const void *from, int64_t at, int64_t n) {
  vf low = v_load_upto_as(dtype, from, at, n, 0), high = {0};
  if (n > V_LANES) high = v_load_upto_as(dtype, from, at + V_LANES, n - V_LANES, 0);
  return (pool_pairs){__builtin_shuffle(low, high, V_INDEX * 2),
                      __builtin_shuffle(low, high, V_INDEX * 2 + 1)};
}

V_INLINE bool pool_has_adjacent_windows(const tn_pool_axis *a) {
  return a->kernel == 2 && a->stride == 2 && a->padding == 0 && 2 * a->out <= a->in;
}

/* The larger one of each pair; `at` has the indices of the even elements. */
V_INLINE pool_best pool_best_of_pairs(pool_pairs x, vi at) {
  return pool_select(pool_is_larger(x.odd, x.even), (pool_best){x.odd, at + 1}, (pool_best){x.even, at});
}

V_INLINE void pool_max_adjacent_row(int32_t dtype, const tn_pool_axis *across, int64_t i, const void *x,
                                    void *y, int32_t *index) {
  for (int64_t j = 0; j < across->out; j += V_LANES) {
    int64_t n = across->out - j < V_LANES ? across->out - j : V_LANES, o = i * across->out + j;
    int64_t upper = 2 * i * across->in + 2 * j, lower = upper + across->in;
    vi at = V_INDEX * 2;
    pool_best best = pool_best_of_pairs(pool_load_pairs(dtype, x, upper, 2 * n), at + (int32_t)upper);
    pool_best next = pool_best_of_pairs(pool_load_pairs(dtype, x, lower, 2 * n), at + (int32_t)lower);
    best = pool_select(pool_is_larger(next.value, best.value), next, best);
    v_store_upto_as(dtype, y, o, n, best.value);
    if (index != NULL) v_store_i_part(index + o, best.at, n);
  }
}

V_INLINE void pool_max_planes(int32_t dtype, const tn_pool_shape *s, const void *x, void *y, int32_t *index) {
  if (pool_has_adjacent_windows(&s->axis[0]) && pool_has_adjacent_windows(&s->axis[1])) {
    for (int64_t i = 0; i < s->axis[0].out; i++) pool_max_adjacent_row(dtype, &s->axis[1], i, x, y, index);
    return;
  }
  pool_columns columns;
  int64_t read = (s->axis[1].out + V_LANES) * s->axis[1].stride + s->axis[1].kernel + V_LANES;
  int64_t written = s->axis[1].padding + s->axis[1].in + V_LANES;
  for (int64_t c = 0; c < read || c < written; c++) {
    columns.best[c] = -INFINITY;
    columns.at[c] = INT32_MAX;
  }
  for (int64_t i = 0; i < s->axis[0].out; i++) {
    tn_pool_window rows = tn_pool_window_at(&s->axis[0], i);
    pool_max_down(dtype, &s->axis[1], &rows, x, &columns);
    pool_max_along(dtype, &s->axis[1], &columns, y, i * s->axis[1].out, index);
  }
}

V_INLINE void pool_avg_planes(int32_t dtype, const tn_pool_shape *s, const void *x, void *y) {
  float columns[TN_POOL_COLUMNS + 3 * V_LANES] = {0};
  for (int64_t i = 0; i < s->axis[0].out; i++) {
    tn_pool_window rows = tn_pool_window_at(&s->axis[0], i);
    pool_sum_down(dtype, &s->axis[1], &rows, x, columns);
    pool_avg_along(dtype, s, &rows, columns, y, i * s->axis[1].out);
  }
}

/* ---- planes: gradients of adjacent windows of 2 x 2 --------------------------------------------------- */

/* Stores lanes of `even` and `odd` alternately: n <= 2 V_LANES elements. */
V_INLINE void pool_store_interleaved(int32_t dtype, void *to, int64_t at, int64_t n, vf even, vf odd) {
  vi order = V_INDEX / 2 + (V_INDEX & 1) * V_LANES;
  vf low = __builtin_shuffle(even, odd, order), high = __builtin_shuffle(even, odd, order + V_LANES / 2);
  v_store_upto_as(dtype, to, at, n, low);
  if (n >= 2 * V_LANES)
    v_store_as(dtype, to, at + V_LANES, high);
  else if (n > V_LANES)
    v_store_part_as(dtype, to, at + V_LANES, n - V_LANES, high);
}

/* Two rows of dx from row i of dy. */
V_INLINE void pool_max_grad_row(int32_t dtype, const tn_pool_axis *across, int64_t i, const void *dy,
                                void *dx, const int32_t *index) {
  for (int64_t j = 0; j < across->out; j += V_LANES) {
    int64_t n = across->out - j < V_LANES ? across->out - j : V_LANES, o = i * across->out + j;
    vf d = v_load_upto_as(dtype, dy, o, n, 0), zero = {0};
    vi at = n == V_LANES ? v_load_i(index + o) : v_load_i_part(index + o, n);
    for (int64_t r = 2 * i; r < 2 * i + 2; r++) {
      int64_t row = r * across->in + 2 * j;
      vi here = V_INDEX * 2 + (int32_t)row;
      pool_store_interleaved(dtype, dx, row, 2 * n, v_select(v_eq_i(at, here), d, zero),
                             v_select(v_eq_i(at, here + 1), d, zero));
    }
  }
}

V_INLINE void pool_max_grad_planes(int32_t dtype, const tn_pool_shape *s, const void *dy, void *dx,
                                   const int32_t *index) {
  for (int64_t i = 0; i < s->axis[0].out; i++) pool_max_grad_row(dtype, &s->axis[1], i, dy, dx, index);
}

V_INLINE void pool_avg_grad_planes(int32_t dtype, const tn_pool_shape *s, const void *dy, void *dx) {
  const tn_pool_axis *across = &s->axis[1];
  for (int64_t i = 0; i < s->axis[0].in; i++)
    for (int64_t j = 0; j < across->out; j += V_LANES) {
      int64_t n = across->out - j < V_LANES ? across->out - j : V_LANES;
      vf d = v_load_upto_as(dtype, dy, i / 2 * across->out + j, n, 0) * 0.25f;
      pool_store_interleaved(dtype, dx, i * across->in + 2 * j, 2 * n, d, d);
    }
}

/* ---- the table ------------------------------------------------------------------------------------- */

#define POOL_LOOPS(by, dtype)                                                                                \
  static void pool_max_##by##_##dtype(const tn_pool_shape *s, const void *x, void *y, int32_t *index) {      \
    pool_max_##by(dtype, s, x, y, index);                                                                    \
  }                                                                                                          \
  static void pool_max_grad_##by##_##dtype(const tn_pool_shape *s, const void *dy, void *dx,                 \
                                           int32_t *index) {                                                 \
    pool_max_grad_##by(dtype, s, dy, dx, index);                                                             \
  }                                                                                                          \
  static void pool_avg_##by##_##dtype(const tn_pool_shape *s, const void *x, void *y, int32_t *index) {      \
    (void)index;                                                                                             \
    pool_avg_##by(dtype, s, x, y);                                                                           \
  }                                                                                                          \
  static void pool_avg_grad_##by##_##dtype(const tn_pool_shape *s, const void *dy, void *dx,                 \
                                           int32_t *index) {                                                 \
    (void)index;                                                                                             \
    pool_avg_grad_##by(dtype, s, dy, dx);                                                                    \
  }
#define POOL_LOOPS_BY(by) POOL_LOOPS(by, TN_F32) POOL_LOOPS(by, TN_BF16) POOL_LOOPS(by, TN_F16)
POOL_LOOPS_BY(blocks)
POOL_LOOPS_BY(planes)

#define POOL_ROWS(op, name, dtype)                                                                           \
  static void name##_##dtype(const tn_pool_shape *s, int64_t channels, int64_t first, int64_t last,          \
                             const void *x, void *y, int32_t *index) {                                       \
    pool_rows(op, dtype, s, channels, first, last, x, y, index);                                             \
  }
#define POOL_ROWS_OF(op, name)                                                                               \
  POOL_ROWS(op, name, TN_F32) POOL_ROWS(op, name, TN_BF16) POOL_ROWS(op, name, TN_F16)
POOL_ROWS_OF(TN_POOL_MAX, pool_max_rows)
POOL_ROWS_OF(TN_POOL_AVG, pool_avg_rows)

#define POOL_EACH(name)                                                                                      \
  { [TN_F32] = name##_TN_F32, [TN_BF16] = name##_TN_BF16, [TN_F16] = name##_TN_F16 }
#define POOL_TABLE(by)                                                                                       \
  {                                                                                                          \
    [TN_POOL_MAX] = POOL_EACH(pool_max_##by), [TN_POOL_MAX_GRAD] = POOL_EACH(pool_max_grad_##by),            \
    [TN_POOL_AVG] = POOL_EACH(pool_avg_##by), [TN_POOL_AVG_GRAD] = POOL_EACH(pool_avg_grad_##by)             \
  }

const tn_pool_loops TN_LOOP(tn_loops_pool) = {
    .lanes = V_LANES,
    .blocks = POOL_TABLE(blocks),
    .planes = POOL_TABLE(planes),
    .rows = {[TN_POOL_MAX] = POOL_EACH(pool_max_rows), [TN_POOL_AVG] = POOL_EACH(pool_avg_rows)}};
