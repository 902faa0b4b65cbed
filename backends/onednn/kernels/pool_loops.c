#include "backends/onednn/simd/lanes.h"
#include "backends/onednn/kernels/pool.h"

#include <math.h>

/* ---- what a maximum is ---------------------------------------------------------------------------- */

/* NaN is larger than everything, but not than NaN. */
LANE_INLINE lane_i32 beats(lane_f32 x, lane_f32 best) { return ~(lane_i32)(x <= best) & (best == best); }

/* The same where x did not come after `best`: of equals the one in front counts. */
LANE_INLINE lane_i32 beats_in_front(lane_f32 x, lane_f32 best, lane_i32 at, lane_i32 best_at) {
  lane_i32 equal = (x == best) | ((x != x) & (best != best));
  return beats(x, best) | (equal & (at < best_at));
}

LANE_INLINE lane_i32 load_index(const int32_t *from) {
  lane_i32 x;
  memcpy(&x, from, sizeof x);
  return x;
}
LANE_INLINE void store_index(int32_t *to, lane_i32 x) { memcpy(to, &x, sizeof x); }

LANE_INLINE float divisor_of(const tn_pool_shape *s, const tn_pool_window *v, const tn_pool_window *h) {
  if (s->include_pad) return (float)(v->padded * h->padded);
  return (float)((v->high - v->low) * (h->high - h->low));
}

/* ---- channels in blocks --------------------------------------------------------------------------- */

LANE_INLINE void max_blocks(int32_t dtype, const tn_pool_shape *s, const void *x, void *y, int32_t *index) {
  int64_t width = s->axis[1].in, o = 0;
  for (int64_t i = 0; i < s->axis[0].out; i++) {
    tn_pool_window v = tn_pool_window_at(&s->axis[0], i);
    for (int64_t j = 0; j < s->axis[1].out; j++, o += LANES) {
      tn_pool_window h = tn_pool_window_at(&s->axis[1], j);
      int64_t first = v.low * width + h.low;
      lane_f32 best = lane_load(dtype, x, first * LANES);
      lane_i32 at = lane_all_i32((int32_t)first);
      for (int64_t r = v.low; r < v.high; r++)
        for (int64_t c = h.low; c < h.high; c++) {
          lane_f32 value = lane_load(dtype, x, (r * width + c) * LANES);
          lane_i32 is = beats(value, best);
          best = lane_pick(is, value, best);
          at = lane_pick_i32(is, lane_all_i32((int32_t)(r * width + c)), at);
        }
      lane_store(dtype, y, o, best);
      store_index(index + o, at);
    }
  }
}

/* The windows that hold element i, from those that hold the element before it. */
LANE_INLINE void move_windows(const tn_pool_axis *a, int64_t i, tn_pool_window *w) {
  while (w->low < a->out && w->low * a->stride - a->padding + a->kernel <= i) w->low++;
  while (w->high < a->out && w->high * a->stride - a->padding <= i) w->high++;
}

/* Each element collects from the windows that hold it. */
LANE_INLINE void max_grad_blocks(int32_t dtype, const tn_pool_shape *s, const void *dy, void *dx,
                                 const int32_t *index) {
  int64_t at = 0;
  for (int64_t i = 0; i < s->axis[0].in; i++) {
    tn_pool_window v = tn_pool_windows_of(&s->axis[0], i), h = {0, 0, 0};
    for (int64_t j = 0; j < s->axis[1].in; j++, at++) {
      lane_i32 here = lane_all_i32((int32_t)at);
      lane_f32 sum = {0};
      move_windows(&s->axis[1], j, &h);
      for (int64_t r = v.low; r < v.high; r++)
        for (int64_t c = h.low; c < h.high; c++) {
          int64_t o = (r * s->axis[1].out + c) * LANES;
          sum += (lane_f32)((load_index(index + o) == here) & (lane_i32)lane_load(dtype, dy, o));
        }
      lane_store(dtype, dx, at * LANES, sum);
    }
  }
}

LANE_INLINE void avg_blocks(int32_t dtype, const tn_pool_shape *s, const void *x, void *y) {
  int64_t o = 0;
  for (int64_t i = 0; i < s->axis[0].out; i++)
    for (int64_t j = 0; j < s->axis[1].out; j++, o += LANES) {
      tn_pool_window v = tn_pool_window_at(&s->axis[0], i), h = tn_pool_window_at(&s->axis[1], j);
      lane_f32 sum = {0};
      for (int64_t r = v.low; r < v.high; r++)
        for (int64_t c = h.low; c < h.high; c++) sum += lane_load(dtype, x, (r * s->axis[1].in + c) * LANES);
      lane_store(dtype, y, o, sum / divisor_of(s, &v, &h));
    }
}

LANE_INLINE void avg_grad_blocks(int32_t dtype, const tn_pool_shape *s, const void *dy, void *dx) {
  int64_t at = 0;
  for (int64_t i = 0; i < s->axis[0].in; i++)
    for (int64_t j = 0; j < s->axis[1].in; j++, at += LANES) {
      tn_pool_window v = tn_pool_windows_of(&s->axis[0], i), h = tn_pool_windows_of(&s->axis[1], j);
      lane_f32 sum = {0};
      for (int64_t r = v.low; r < v.high; r++)
        for (int64_t c = h.low; c < h.high; c++) {
          tn_pool_window a = tn_pool_window_at(&s->axis[0], r), b = tn_pool_window_at(&s->axis[1], c);
          sum += lane_load(dtype, dy, (r * s->axis[1].out + c) * LANES) / divisor_of(s, &a, &b);
        }
      lane_store(dtype, dx, at, sum);
    }
}

/* ---- planes: first down the columns of a window's rows, then along ---------------------------------- */

/* Columns with padding on both sides, which is never a maximum: it stands behind all others. */
typedef struct strip {
  float best[TN_POOL_COLUMNS + 3 * LANES];
  int32_t at[TN_POOL_COLUMNS + 3 * LANES];
} strip;

LANE_INLINE lane_f32 load_columns(int32_t dtype, const void *x, int64_t at, int64_t n, float fill) {
  return n >= LANES ? lane_load(dtype, x, at) : lane_load_part(dtype, x, at, n, fill);
}

/* What does not belong to x beyond the last column keeps the index of padding. */
LANE_INLINE void max_down(int32_t dtype, const tn_pool_axis *across, const tn_pool_window *rows,
                          const void *x, strip *to) {
  for (int64_t c = 0; c < across->in; c += LANES) {
    int64_t n = across->in - c;
    lane_i32 column = LANE_NUMBERS + (int32_t)c, at = column + (int32_t)(rows->low * across->in);
    lane_f32 best = load_columns(dtype, x, rows->low * across->in + c, n, -INFINITY);
    for (int64_t r = rows->low + 1; r < rows->high; r++) {
      lane_f32 value = load_columns(dtype, x, r * across->in + c, n, -INFINITY);
      lane_i32 is = beats(value, best);
      best = lane_pick(is, value, best);
      at = lane_pick_i32(is, column + (int32_t)(r * across->in), at);
    }
    at = lane_pick_i32(column < (int32_t)across->in, at, lane_all_i32(INT32_MAX));
    lane_store(TN_F32, to->best, across->padding + c, best);
    store_index(to->at + across->padding + c, at);
  }
}

LANE_INLINE void sum_down(int32_t dtype, const tn_pool_axis *across, const tn_pool_window *rows,
                          const void *x, float *to) {
  for (int64_t c = 0; c < across->in; c += LANES) {
    lane_f32 sum = {0};
    for (int64_t r = rows->low; r < rows->high; r++)
      sum += load_columns(dtype, x, r * across->in + c, across->in - c, 0);
    lane_store(TN_F32, to, across->padding + c, sum);
  }
}

/* Every one, or every other, from `from` on. */
LANE_INLINE lane_f32 every(int64_t stride, const float *from) {
  lane_f32 low = lane_load(TN_F32, from, 0);
  return stride == 1 ? low : __builtin_shuffle(low, lane_load(TN_F32, from, LANES), LANE_NUMBERS * 2);
}
LANE_INLINE lane_i32 every_index(int64_t stride, const int32_t *from) {
  lane_i32 low = load_index(from);
  return stride == 1 ? low : __builtin_shuffle(low, load_index(from + LANES), LANE_NUMBERS * 2);
}

LANE_INLINE void max_along(int32_t dtype, const tn_pool_axis *across, const strip *from, void *y, int64_t o,
                           int32_t *index) {
  for (int64_t j = 0; j < across->out; j += LANES) {
    int64_t n = across->out - j, c = j * across->stride;
    lane_f32 best = every(across->stride, from->best + c);
    lane_i32 at = every_index(across->stride, from->at + c);
    for (int64_t k = 1; k < across->kernel; k++) {
      lane_f32 value = every(across->stride, from->best + c + k);
      lane_i32 value_at = every_index(across->stride, from->at + c + k);
      lane_i32 is = beats_in_front(value, best, value_at, at);
      best = lane_pick(is, value, best);
      at = lane_pick_i32(is, value_at, at);
    }
    if (n >= LANES) {
      lane_store(dtype, y, o + j, best);
      store_index(index + o + j, at);
    } else {
      lane_store_part(dtype, y, o + j, n, best);
      for (int64_t k = 0; k < n; k++) index[o + j + k] = at[k];
    }
  }
}

/* `wide`: whether any window hangs over the border. */
LANE_INLINE void avg_along(int32_t dtype, const tn_pool_shape *s, const tn_pool_window *rows,
                           const float *from, void *y, int64_t o) {
  const tn_pool_axis *across = &s->axis[1];
  for (int64_t j = 0; j < across->out; j += LANES) {
    int64_t n = across->out - j < LANES ? across->out - j : LANES;
    lane_f32 sum = {0};
    float divisor[LANES];
    for (int64_t k = 0; k < across->kernel; k++) sum += every(across->stride, from + j * across->stride + k);
    for (int64_t k = 0; k < LANES; k++) {
      tn_pool_window h = tn_pool_window_at(across, k < n ? j + k : j);
      divisor[k] = divisor_of(s, rows, &h);
    }
    sum /= lane_load(TN_F32, divisor, 0);
    if (n == LANES)
      lane_store(dtype, y, o + j, sum);
    else
      lane_store_part(dtype, y, o + j, n, sum);
  }
}

LANE_INLINE void max_planes(int32_t dtype, const tn_pool_shape *s, const void *x, void *y, int32_t *index) {
  strip columns;
  int64_t read = (s->axis[1].out + LANES) * s->axis[1].stride + s->axis[1].kernel + LANES;
  int64_t written = s->axis[1].padding + s->axis[1].in + LANES;
  for (int64_t c = 0; c < read || c < written; c++) {
    columns.best[c] = -INFINITY;
    columns.at[c] = INT32_MAX;
  }
  for (int64_t i = 0; i < s->axis[0].out; i++) {
    tn_pool_window rows = tn_pool_window_at(&s->axis[0], i);
    max_down(dtype, &s->axis[1], &rows, x, &columns);
    max_along(dtype, &s->axis[1], &columns, y, i * s->axis[1].out, index);
  }
}

LANE_INLINE void avg_planes(int32_t dtype, const tn_pool_shape *s, const void *x, void *y) {
  float columns[TN_POOL_COLUMNS + 3 * LANES] = {0};
  for (int64_t i = 0; i < s->axis[0].out; i++) {
    tn_pool_window rows = tn_pool_window_at(&s->axis[0], i);
    sum_down(dtype, &s->axis[1], &rows, x, columns);
    avg_along(dtype, s, &rows, columns, y, i * s->axis[1].out);
  }
}

/* ---- planes: gradients of windows of 2 x 2 side by side --------------------------------------------- */

/* Lanes of `even` and `odd` in turn, to n <= 2 LANES neighbours. */
LANE_INLINE void store_in_turn(int32_t dtype, void *to, int64_t at, int64_t n, lane_f32 even, lane_f32 odd) {
  lane_i32 turn = LANE_NUMBERS / 2 + (LANE_NUMBERS & 1) * LANES;
  lane_f32 low = __builtin_shuffle(even, odd, turn), high = __builtin_shuffle(even, odd, turn + LANES / 2);
  if (n >= LANES)
    lane_store(dtype, to, at, low);
  else
    lane_store_part(dtype, to, at, n, low);
  if (n >= 2 * LANES)
    lane_store(dtype, to, at + LANES, high);
  else if (n > LANES)
    lane_store_part(dtype, to, at + LANES, n - LANES, high);
}

/* Two rows of dx from a row of dy. */
LANE_INLINE void max_grad_row(int32_t dtype, const tn_pool_axis *across, int64_t i, const void *dy, void *dx,
                              const int32_t *index) {
  for (int64_t j = 0; j < across->out; j += LANES) {
    int64_t n = across->out - j < LANES ? across->out - j : LANES, o = i * across->out + j;
    lane_f32 d = load_columns(dtype, dy, o, n, 0);
    lane_i32 at = lane_all_i32(-1);
    if (n == LANES)
      at = load_index(index + o);
    else
      for (int64_t k = 0; k < n; k++) at[k] = index[o + k];
    for (int64_t r = 2 * i; r < 2 * i + 2; r++) {
      int64_t row = r * across->in + 2 * j;
      lane_i32 here = LANE_NUMBERS * 2 + (int32_t)row;
      store_in_turn(dtype, dx, row, 2 * n, (lane_f32)((at == here) & (lane_i32)d),
                    (lane_f32)((at == here + 1) & (lane_i32)d));
    }
  }
}

LANE_INLINE void max_grad_planes(int32_t dtype, const tn_pool_shape *s, const void *dy, void *dx,
                                 const int32_t *index) {
  for (int64_t i = 0; i < s->axis[0].out; i++) max_grad_row(dtype, &s->axis[1], i, dy, dx, index);
}

LANE_INLINE void avg_grad_planes(int32_t dtype, const tn_pool_shape *s, const void *dy, void *dx) {
  const tn_pool_axis *across = &s->axis[1];
  for (int64_t i = 0; i < s->axis[0].in; i++)
    for (int64_t j = 0; j < across->out; j += LANES) {
      int64_t n = across->out - j < LANES ? across->out - j : LANES;
      lane_f32 d = load_columns(dtype, dy, i / 2 * across->out + j, n, 0) * 0.25f;
      store_in_turn(dtype, dx, i * across->in + 2 * j, 2 * n, d, d);
    }
}

/* ---- one of each ---------------------------------------------------------------------------------- */

#define POOL(how, dtype)                                                                                     \
  static void TN_LOOP(max_##how##_##dtype)(const tn_pool_shape *s, const void *x, void *y, int32_t *index) { \
    max_##how(dtype, s, x, y, index);                                                                        \
  }                                                                                                          \
  static void TN_LOOP(max_grad_##how##_##dtype)(const tn_pool_shape *s, const void *dy, void *dx,            \
                                                int32_t *index) {                                            \
    max_grad_##how(dtype, s, dy, dx, index);                                                                 \
  }                                                                                                          \
  static void TN_LOOP(avg_##how##_##dtype)(const tn_pool_shape *s, const void *x, void *y, int32_t *index) { \
    (void)index;                                                                                             \
    avg_##how(dtype, s, x, y);                                                                               \
  }                                                                                                          \
  static void TN_LOOP(avg_grad_##how##_##dtype)(const tn_pool_shape *s, const void *dy, void *dx,            \
                                                int32_t *index) {                                            \
    (void)index;                                                                                             \
    avg_grad_##how(dtype, s, dy, dx);                                                                        \
  }
#define POOL_EACH(how) POOL(how, TN_F32) POOL(how, TN_BF16) POOL(how, TN_F16)
POOL_EACH(blocks)
POOL_EACH(planes)

#define FUNCTIONS(name, how)                                                                                 \
  {                                                                                                          \
    [TN_F32] = TN_LOOP(name##_##how##_TN_F32), [TN_BF16] = TN_LOOP(name##_##how##_TN_BF16),                  \
    [TN_F16] = TN_LOOP(name##_##how##_TN_F16)                                                                \
  }
#define FUNCTIONS_OF(how)                                                                                    \
  {                                                                                                          \
    [TN_POOL_MAX] = FUNCTIONS(max, how), [TN_POOL_MAX_GRAD] = FUNCTIONS(max_grad, how),                      \
    [TN_POOL_AVG] = FUNCTIONS(avg, how), [TN_POOL_AVG_GRAD] = FUNCTIONS(avg_grad, how)                       \
  }

const tn_pool_loops TN_LOOP(tn_loops_pool) = {
    .lanes = LANES, .blocks = FUNCTIONS_OF(blocks), .planes = FUNCTIONS_OF(planes)};
