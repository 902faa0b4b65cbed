/* backends/cpu/kernels/pool_typed.h: pooling of one plane, for one element type. pool.c includes this file
 * once per type, with ELEMENT, WIDE, TYPED(name), WIDEN(x) and NARROW(x), as in gemm/typed.h. */

/* NaN is larger than every number; the first of equal elements wins. */
static void TYPED(max_plane)(const pool_shape *s, const void *from, void *to, int32_t *index) {
  const ELEMENT *x = from;
  ELEMENT *y = to;
  for (int64_t i = 0; i < s->axis[0].out; i++)
    for (int64_t j = 0; j < s->axis[1].out; j++, index++) {
      pool_window v = pool_window_at(&s->axis[0], i), h = pool_window_at(&s->axis[1], j);
      int64_t at = v.low * s->axis[1].in + h.low;
      WIDE best = WIDEN(x[at]);
      for (int64_t r = v.low; r < v.high; r++)
        for (int64_t c = h.low; c < h.high; c++) {
          WIDE value = WIDEN(x[r * s->axis[1].in + c]);
          int32_t larger = value > best || (value != value && best == best);
          best = larger ? value : best;
          at = larger ? r * s->axis[1].in + c : at;
        }
      *y++ = x[at];
      *index = (int32_t)at;
    }
}

/* Adds each element of dy to the element of dx that was the maximum of its window. */
static void TYPED(max_grad_scatter)(const pool_shape *s, const ELEMENT *dy, ELEMENT *dx,
                                    const int32_t *index) {
  int64_t in = s->axis[0].in * s->axis[1].in, out = s->axis[0].out * s->axis[1].out;
  memset(dx, 0, (size_t)in * sizeof *dx);
  for (int64_t o = 0; o < out; o++)
    if (index[o] >= 0 && index[o] < in) dx[index[o]] = NARROW(WIDEN(dx[index[o]]) + WIDEN(dy[o]));
}

/* In half precision, each element of dx sums over its windows in WIDE, so that it is rounded once. The other
 * types scatter, which adds in the same order and is faster. */
static void TYPED(max_grad_plane)(const pool_shape *s, const void *from, void *to, int32_t *index) {
  const ELEMENT *dy = from;
  ELEMENT *dx = to;
  if (sizeof(ELEMENT) == sizeof(WIDE)) {
    TYPED(max_grad_scatter)(s, dy, dx, index);
    return;
  }
  for (int64_t i = 0; i < s->axis[0].in; i++)
    for (int64_t j = 0; j < s->axis[1].in; j++) {
      pool_window v = pool_windows_of(&s->axis[0], i), h = pool_windows_of(&s->axis[1], j);
      WIDE sum = 0;
      for (int64_t r = v.low; r < v.high; r++)
        for (int64_t c = h.low; c < h.high; c++) {
          int64_t o = r * s->axis[1].out + c;
          if (index[o] == i * s->axis[1].in + j) sum += WIDEN(dy[o]);
        }
      *dx++ = NARROW(sum);
    }
}

static void TYPED(avg_plane)(const pool_shape *s, const void *from, void *to, int32_t *unused) {
  const ELEMENT *x = from;
  ELEMENT *y = to;
  (void)unused;
  for (int64_t i = 0; i < s->axis[0].out; i++)
    for (int64_t j = 0; j < s->axis[1].out; j++) {
      pool_window v = pool_window_at(&s->axis[0], i), h = pool_window_at(&s->axis[1], j);
      WIDE sum = 0;
      for (int64_t r = v.low; r < v.high; r++)
        for (int64_t c = h.low; c < h.high; c++) sum += WIDEN(x[r * s->axis[1].in + c]);
      *y++ = NARROW(sum / (WIDE)(pool_divisor(s, &v) * pool_divisor(s, &h)));
    }
}

static void TYPED(avg_grad_plane)(const pool_shape *s, const void *from, void *to, int32_t *unused) {
  const ELEMENT *dy = from;
  ELEMENT *dx = to;
  (void)unused;
  for (int64_t i = 0; i < s->axis[0].in; i++)
    for (int64_t j = 0; j < s->axis[1].in; j++) {
      pool_window v = pool_windows_of(&s->axis[0], i), h = pool_windows_of(&s->axis[1], j);
      WIDE sum = 0;
      for (int64_t r = v.low; r < v.high; r++)
        for (int64_t c = h.low; c < h.high; c++) {
          pool_window a = pool_window_at(&s->axis[0], r), b = pool_window_at(&s->axis[1], c);
          sum += WIDEN(dy[r * s->axis[1].out + c]) / (WIDE)(pool_divisor(s, &a) * pool_divisor(s, &b));
        }
      *dx++ = NARROW(sum);
    }
}
