/* backends/cpu/kernels/pool_typed.h: pooling of one plane, for one element type. Included by pool.c
 * once per type with ELEMENT, WIDE, TYPED(name), WIDEN(x) and NARROW(x), as in gemm_typed.h. */

/* NaN is larger than everything; of equals the first counts. */
static void TYPED(max_plane)(const pool_shape *s, const void *from, void *to, int32_t *index) {
  const ELEMENT *x = from;
  ELEMENT *y = to;
  for (int64_t i = 0; i < s->axis[0].out; i++)
    for (int64_t j = 0; j < s->axis[1].out; j++, index++) {
      window v = pool_window_at(&s->axis[0], i), h = pool_window_at(&s->axis[1], j);
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

/* Each output's gradient goes where its maximum was. */
static void TYPED(max_grad_scatter)(const pool_shape *s, const ELEMENT *dy, ELEMENT *dx,
                                    const int32_t *index) {
  int64_t in = s->axis[0].in * s->axis[1].in, out = s->axis[0].out * s->axis[1].out;
  memset(dx, 0, (size_t)in * sizeof *dx);
  for (int64_t o = 0; o < out; o++)
    if (index[o] >= 0 && index[o] < in) dx[index[o]] = NARROW(WIDEN(dx[index[o]]) + WIDEN(dy[o]));
}

/* Types that sums are rounded to: each element of dx collects from the windows that hold it, so that it
 * is rounded once. For the others scattering adds in the same order and costs less. */
static void TYPED(max_grad_plane)(const pool_shape *s, const void *from, void *to, int32_t *index) {
  const ELEMENT *dy = from;
  ELEMENT *dx = to;
  if (sizeof(ELEMENT) == sizeof(WIDE)) {
    TYPED(max_grad_scatter)(s, dy, dx, index);
    return;
  }
  for (int64_t i = 0; i < s->axis[0].in; i++)
    for (int64_t j = 0; j < s->axis[1].in; j++) {
      window v = windows_of(&s->axis[0], i), h = windows_of(&s->axis[1], j);
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
      window v = pool_window_at(&s->axis[0], i), h = pool_window_at(&s->axis[1], j);
      WIDE sum = 0;
      for (int64_t r = v.low; r < v.high; r++)
        for (int64_t c = h.low; c < h.high; c++) sum += WIDEN(x[r * s->axis[1].in + c]);
      *y++ = NARROW(sum / (WIDE)(divisor_of(s, &v) * divisor_of(s, &h)));
    }
}

static void TYPED(avg_grad_plane)(const pool_shape *s, const void *from, void *to, int32_t *unused) {
  const ELEMENT *dy = from;
  ELEMENT *dx = to;
  (void)unused;
  for (int64_t i = 0; i < s->axis[0].in; i++)
    for (int64_t j = 0; j < s->axis[1].in; j++) {
      window v = windows_of(&s->axis[0], i), h = windows_of(&s->axis[1], j);
      WIDE sum = 0;
      for (int64_t r = v.low; r < v.high; r++)
        for (int64_t c = h.low; c < h.high; c++) {
          window a = pool_window_at(&s->axis[0], r), b = pool_window_at(&s->axis[1], c);
          sum += WIDEN(dy[r * s->axis[1].out + c]) / (WIDE)(divisor_of(s, &a) * divisor_of(s, &b));
        }
      *dx++ = NARROW(sum);
    }
}
