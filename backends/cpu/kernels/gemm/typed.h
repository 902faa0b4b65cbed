/* backends/cpu/kernels/gemm/typed.h: packing, tiles and storing for one element type. isa.c includes
 * this file once per type, with
 *
 *     ELEMENT       type in memory                      WIDE         type of the sums
 *     TYPED(name)   name of a function for that type    MICRO(name)  name from micro.h
 *     WIDEN(x)      ELEMENT to WIDE                     NARROW(x)    WIDE to ELEMENT, rounded once
 *     FACTOR(x)     ELEMENT of an operand to the factor of the product, in WIDE */

#define PANEL_N (2 * VECTOR_BYTES / (int64_t)sizeof(WIDE))

/* ---- reading rows -------------------------------------------------------------------------------- */

/* Elements first .. first+n-1 of the rows of a source. */
typedef struct TYPED(span) {
  int64_t first, n, n_runs;
  tn_gemm_segment runs[TN_GEMM_K];
} TYPED(span);

static void TYPED(span_set)(TYPED(span) * span, const tn_gemm_source *s, int64_t first, int64_t n) {
  span->first = first;
  span->n = n;
  span->n_runs = s->grid != NULL ? tn_gemm_runs(s->grid, first, n, span->runs) : 0;
}

static inline void TYPED(read)(WIDE *restrict to, const ELEMENT *restrict from, int64_t step, int64_t n) {
  if (step == 1)
    for (int64_t i = 0; i < n; i++) to[i] = FACTOR(from[i]);
  else
    for (int64_t i = 0; i < n; i++) to[i] = FACTOR(from[i * step]);
}

/* Reads one run of pixels, shifted by a tap. Pixels outside the plane are zero. */
static inline void TYPED(read_run)(WIDE *restrict to, const ELEMENT *data, int64_t row, const tn_gemm_grid *g,
                                   const tn_gemm_tap *tap, const tn_gemm_segment *run) {
  int64_t y = run->y + tap->y, x = run->x + tap->x, step = g->step_x, low = 0, high = run->n;
  if (y < 0 || y >= g->plane_height) high = 0;
  if (x < 0) low = least(steps(-x + step - 1, step), high);
  if (x + (high - 1) * step >= g->plane_width)
    high = x < g->plane_width ? steps(g->plane_width - 1 - x, step) + 1 : low;
  for (int64_t i = 0; i < low; i++) to[i] = 0;
  if (high > low)
    TYPED(read)(to + low, data + (row + tap->offset + run->offset + low * step), step, high - low);
  else
    high = low;
  for (int64_t i = high; i < run->n; i++) to[i] = 0;
}

/* A row of a source: row r belongs to group r / n_taps and tap r % n_taps. */
typedef struct TYPED(cursor) {
  int64_t group, tap; /* group: its offset in elements */
} TYPED(cursor);

static TYPED(cursor) TYPED(cursor_at)(const tn_gemm_source *s, int64_t row) {
  int64_t taps = s->n_taps > 1 ? s->n_taps : 1;
  return (TYPED(cursor)){row / taps * s->row_step, row % taps};
}

static inline void TYPED(cursor_next)(TYPED(cursor) * at, const tn_gemm_source *s) {
  if (++at->tap < s->n_taps) return;
  at->tap = 0;
  at->group += s->row_step;
}

static inline void TYPED(read_row)(WIDE *restrict to, const tn_gemm_source *s, const TYPED(cursor) * at,
                                   const TYPED(span) * span) {
  static const tn_gemm_tap none = {0, 0, 0};
  const tn_gemm_tap *tap = s->taps != NULL ? &s->taps[at->tap] : &none;
  const ELEMENT *data = s->data;
  if (s->grid == NULL)
    TYPED(read)(to, data + (at->group + tap->offset + span->first * s->step), s->step, span->n);
  for (int64_t i = 0; i < span->n_runs; i++)
    TYPED(read_run)(to + span->runs[i].at, data, at->group, s->grid, tap, &span->runs[i]);
}

/* ---- packing: panels of `width` of the operand's index, each k lines of `width` ------------------- */

/* Rows run across the panels: each row is one line of every panel. */
static inline void TYPED(pack_lines)(const tn_gemm_source *s, int64_t width, const int64_t index[2],
                                     const int64_t k[2], WIDE *restrict to) {
  for (int64_t i = 0; i < index[1]; i += width) {
    TYPED(span) span;
    TYPED(span_set)(&span, s, index[0] + i, least(width, index[1] - i));
    TYPED(cursor) at = TYPED(cursor_at)(s, k[0]);
    for (int64_t p = 0; p < k[1]; p++, to += width) {
      TYPED(read_row)(to, s, &at, &span);
      TYPED(cursor_next)(&at, s);
      for (int64_t j = span.n; j < width; j++) to[j] = 0;
    }
  }
}

/* Rows run along k: reads the rows of a panel, then transposes them. */
static inline void TYPED(pack_rows)(const tn_gemm_source *s, int64_t width, const int64_t index[2],
                                    const int64_t k[2], WIDE *restrict to) {
  WIDE rows[TN_GEMM_ALIGN * TN_GEMM_K];
  TYPED(span) span;
  TYPED(span_set)(&span, s, k[0], k[1]);
  TYPED(cursor) at = TYPED(cursor_at)(s, index[0]);
  for (int64_t i = 0; i < index[1]; i += width, to += width * k[1]) {
    int64_t n = least(width, index[1] - i);
    for (int64_t j = 0; j < n; j++) {
      TYPED(read_row)(rows + j * k[1], s, &at, &span);
      TYPED(cursor_next)(&at, s);
    }
    for (int64_t j = n * k[1]; j < width * k[1]; j++) rows[j] = 0;
    MICRO(transpose)(rows, width, k[1], to);
  }
}

static void TYPED(pack)(const tn_gemm_source *s, int64_t width, int64_t i0, int64_t n, int64_t k0, int64_t k,
                        WIDE *to) {
  const int64_t index[2] = {i0, n}, depth[2] = {k0, k};
  if (s->along_k)
    TYPED(pack_rows)(s, width, index, depth, to);
  else
    TYPED(pack_lines)(s, width, index, depth, to);
}

static void TYPED(pack_all)(const tn_gemm_source *a, int64_t m, int64_t k0, int64_t k, void *packed) {
  WIDE *to = (WIDE *)packed + k0 * round_up(m, PANEL_M);
  TYPED(pack)(a, PANEL_M, 0, m, k0, k, to);
}

/* ---- storing ------------------------------------------------------------------------------------- */

static void TYPED(add_bias)(const tn_gemm_result *c, const tn_gemm_range *r, WIDE *sums, int64_t ldc) {
  const ELEMENT *bias = c->bias;
  if (bias == NULL) return;
  bias += r->m0 * c->bias_i + r->n0 * c->bias_j;
  for (int64_t i = 0; i < r->m; i++, sums += ldc, bias += c->bias_i)
    for (int64_t j = 0; j < r->n; j++) sums[j] += WIDEN(bias[j * c->bias_j]);
}

static inline void TYPED(write)(const tn_gemm_result *c, int64_t offset, int64_t step, const WIDE *sums,
                                int64_t n) {
  if (c->wide) {
    WIDE *to = (WIDE *)c->data + offset;
    for (int64_t j = 0; j < n; j++) to[j * step] = sums[j];
  } else if (step == 1) {
    ELEMENT *to = (ELEMENT *)c->data + offset;
    for (int64_t j = 0; j < n; j++) to[j] = NARROW(sums[j]);
  } else {
    ELEMENT *to = (ELEMENT *)c->data + offset;
    for (int64_t j = 0; j < n; j++) to[j * step] = NARROW(sums[j]);
  }
}

/* Stores spans of at most TN_GEMM_K columns, so that their runs fit into `runs`. */
static void TYPED(store)(const tn_gemm_result *c, const tn_gemm_range *r, WIDE *sums, int64_t ldc) {
  tn_gemm_segment runs[TN_GEMM_K];
  TYPED(add_bias)(c, r, sums, ldc);
  for (int64_t j = 0; j < r->n; j += TN_GEMM_K) {
    int64_t n = least(TN_GEMM_K, r->n - j);
    int64_t n_runs = c->grid != NULL ? tn_gemm_runs(c->grid, r->n0 + j, n, runs) : 0;
    for (int64_t i = 0; i < r->m; i++) {
      const WIDE *row = sums + i * ldc + j;
      int64_t offset = (r->m0 + i) * c->row_step;
      if (c->grid == NULL) TYPED(write)(c, offset + (r->n0 + j) * c->step, c->step, row, n);
      for (int64_t s = 0; s < n_runs; s++)
        TYPED(write)(c, offset + runs[s].offset, c->grid->step_x, row + runs[s].at, runs[s].n);
    }
  }
}

/* ---- a part of a product ------------------------------------------------------------------------ */

static void TYPED(tile)(const tn_gemm *g, const tn_gemm_range *r, void *scratch) {
  int64_t m = round_up(r->m, PANEL_M), n = round_up(r->n, PANEL_N);
  WIDE *sums = scratch, *b = sums + m * n, *a = b + TN_GEMM_K * n;
  memset(sums, 0, (size_t)(m * n) * sizeof *sums);
  for (int64_t done = 0; done < r->k; done += TN_GEMM_K) {
    int64_t k0 = r->k0 + done, k = least(TN_GEMM_K, r->k - done);
    const WIDE *block = a;
    TYPED(pack)(&g->b, PANEL_N, r->n0, r->n, k0, k, b);
    if (g->packed_a != NULL)
      block = (const WIDE *)g->packed_a + k0 * round_up(g->m, PANEL_M) + r->m0 * k;
    else
      TYPED(pack)(&g->a, PANEL_M, r->m0, r->m, k0, k, a);
    MICRO(block)(m, n, k, block, b, sums);
  }
  TYPED(store)(&g->c, r, sums, n);
}

/* ---- small products, straight from the operands --------------------------------------------------- */

/* The sum has DOT_LANES partial sums, so that the loop vectorizes; they are added in order. */
static WIDE TYPED(dot)(const ELEMENT *a, int64_t a_step, const ELEMENT *b, int64_t b_step, int64_t k) {
  WIDE lanes[DOT_LANES] = {0}, sum = 0;
  int64_t p = 0;
  if (a_step == 1 && b_step == 1)
    for (; p + DOT_LANES <= k; p += DOT_LANES)
      for (int64_t l = 0; l < DOT_LANES; l++) lanes[l] += FACTOR(a[p + l]) * FACTOR(b[p + l]);
  for (; p < k; p++) sum += FACTOR(a[p * a_step]) * FACTOR(b[p * b_step]);
  for (int64_t l = 0; l < DOT_LANES; l++) sum += lanes[l];
  return sum;
}

static void TYPED(direct)(const tn_gemm *g, const tn_gemm_range *r, void *scratch) {
  WIDE sums[TN_GEMM_DIRECT_N];
  int64_t a_i = g->a.along_k ? g->a.row_step : g->a.step, a_k = g->a.along_k ? g->a.step : g->a.row_step;
  int64_t b_j = g->b.along_k ? g->b.row_step : g->b.step, b_k = g->b.along_k ? g->b.step : g->b.row_step;
  const ELEMENT *b = (const ELEMENT *)g->b.data + r->n0 * b_j + r->k0 * b_k;
  (void)scratch;
  for (int64_t i = r->m0; i < r->m0 + r->m; i++) {
    const ELEMENT *a = (const ELEMENT *)g->a.data + i * a_i + r->k0 * a_k;
    const tn_gemm_range row = {i, 1, r->n0, r->n, r->k0, r->k};
    for (int64_t j = 0; j < r->n; j++) sums[j] = b_j == 1 ? 0 : TYPED(dot)(a, a_k, b + j * b_j, b_k, r->k);
    for (int64_t p = 0; b_j == 1 && p < r->k; p++)
      for (int64_t j = 0; j < r->n; j++) sums[j] += FACTOR(a[p * a_k]) * FACTOR(b[p * b_k + j]);
    TYPED(store)(&g->c, &row, sums, r->n);
  }
}

#undef PANEL_N
