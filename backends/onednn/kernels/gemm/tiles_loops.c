/* backends/onednn/kernels/gemm/tiles_loops.c: products of matrices, in tiles that stay in registers. */
#include "backends/onednn/simd/gelu.h"
#include "backends/onednn/kernels/gemm/loops.h"
#include "backends/onednn/simd/partial.h"
#include "backends/onednn/integer_math.h"

/* A tile: rows, vectors of columns. Of 32 registers 24 hold sums, of 16 it is 12; the rest are a line of B
 * and an element of A. */
#if defined(__AVX512F__)
enum { ROWS = 8, VECTORS = 3 };
#elif defined(__AVX2__)
enum { ROWS = 4, VECTORS = 3 };
#else
enum { ROWS = 4, VECTORS = 2 };
#endif
enum { PANEL = VECTORS * V_LANES, LINE = 16 /* floats of the cache's */ };

/* How many of `n` things at once, at most `most`, so that the last turn is not much smaller. */
static int64_t evenly(int64_t n, int64_t most) {
  int64_t turns = (n + most - 1) / most;
  return turns > 0 ? (n + turns - 1) / turns : 1;
}

/* ---- the end of a tile --------------------------------------------------------------------------- */

V_INLINE vf ended(const tn_gemm_end *e, vf y, int64_t at, int64_t j, int64_t n) {
  if (e->bias != NULL) y += v_get_most(e->bias + j, n);
  if (e->what == TN_END_MAX) return v_larger(y, v_all(e->limit));
  if (e->what == TN_END_GATE)
    return v_pick(v_gt(v_get_most(e->gate + at, n), v_all(e->limit)), y, v_all(e->other));
  if (e->what == TN_END_ADD) return y + v_get_most(e->gate + at, n);
  return y;
}

/* What takes more than a few instructions is done when a tile lies in the first-level cache. */
static void activate(const tn_sgemm *g, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const tn_gemm_end *e = &g->end;
  for (int64_t i = row; i < row + rows; i++)
    for (int64_t j = 0; j < columns; j += V_LANES) {
      int64_t at = i * g->c_i + column + j, lanes = least(V_LANES, columns - j);
      vf y = v_get_most(g->c + at, lanes);
      if (e->what == TN_END_GELU_GRAD) {
        y *= v_gelu_slope(v_get_most(e->gate + at, lanes), e->approximate);
      } else {
        if (e->kept != NULL) v_put_most(e->kept + at, y, lanes);
        y = v_gelu(y, e->approximate);
      }
      v_put_most(g->c + at, y, lanes);
    }
}

/* ---- straight ------------------------------------------------------------------------------------ */

/* What tiles to come read, `step` floats from line to line. Each tile fetches a square of it into the cache
 * while it computes: as many lines as it has rows, as many columns as it has k. */
typedef struct ahead {
  const float *at;
  int64_t step, across, squares; /* of a line; of all */
} ahead;

/* Some columns of B, and a range of k. */
typedef struct strip {
  const float *a, *b; /* of line k0 and the first row, and of the first column of B */
  int64_t a_k, b_k;
  int64_t rows, a_step; /* of a tile, and from its first row of A to the next one's */
  int64_t j, n;         /* columns */
  int64_t k0, k;
  int64_t lanes;   /* of the last vector, where it may not be read as a whole */
  int64_t stored;  /* of the last vector's sums */
  ahead ahead[2];  /* the second after the first */
  int64_t fetched; /* squares, by strips before */
} strip;

/* The square that a turn fetches; NULL: none. */
static const float *square(const strip *s, int64_t turn, int64_t *step) {
  turn += s->fetched;
  for (const ahead *a = s->ahead; a < s->ahead + 2; turn -= a++->squares) {
    if (turn >= a->squares) continue;
    *step = a->step;
    return a->at + turn / a->across * s->rows * a->step + turn % a->across * s->k;
  }
  return NULL;
}

V_INLINE void fetch(const float *at, int64_t step, const int m) {
#pragma GCC unroll 8
  for (int i = 0; i < m; i++) __builtin_prefetch(at + i * step, 0, 2);
}

/* Lines that a tile's results are written to, and what it reads at its end, while it computes. */
V_INLINE void fetch_ends(const tn_sgemm *g, int64_t at, const int m, const int n) {
  for (int i = 0; i < m; i++, at += g->c_i)
#pragma GCC unroll 3
    for (int j = 0; j < n; j++) {
      __builtin_prefetch(g->c + at + j * V_LANES, 1, 3);
      if (g->end.gate != NULL) __builtin_prefetch(g->end.gate + at + j * V_LANES, 0, 3);
      if (g->end.kept != NULL) __builtin_prefetch(g->end.kept + at + j * V_LANES, 1, 3);
    }
}

V_INLINE void tile(const tn_sgemm *g, const strip *s, int64_t turn, const int m, const int n,
                   const int part) {
  vf sum[ROWS][VECTORS], line[VECTORS];
  const float *a = s->a + turn * s->a_step, *b = s->b;
  int64_t a_i = g->a_i, a_k = s->a_k, b_k = s->b_k, lanes = s->lanes, step = 0;
  const float *next = square(s, turn, &step);
  fetch_ends(g, turn * s->rows * g->c_i + s->j, m, n);
#pragma GCC unroll 8
  for (int i = 0; i < m; i++)
#pragma GCC unroll 3
    for (int j = 0; j < n; j++) sum[i][j] = (vf){0};
  for (int64_t p = 0; p < s->k; p++, a += a_k, b += b_k) {
    if (next != NULL && p % LINE == 0) fetch(next + p, step, m);
#pragma GCC unroll 3
    for (int j = 0; j < n; j++)
      line[j] = part && j == n - 1 ? v_get_some(b + j * V_LANES, lanes) : v_get(b + j * V_LANES);
#pragma GCC unroll 8
    for (int i = 0; i < m; i++) {
      vf x = v_all(a[i * a_i]);
#pragma GCC unroll 3
      for (int j = 0; j < n; j++) sum[i][j] += x * line[j];
    }
  }
  const int first = s->k0 == 0, last = s->k0 + s->k == g->k;
#pragma GCC unroll 8
  for (int i = 0; i < m; i++) {
    int64_t at = (turn * s->rows + i) * g->c_i + s->j;
#pragma GCC unroll 3
    for (int j = 0; j < n; j++, at += V_LANES) {
      int64_t stored = j == n - 1 ? s->stored : V_LANES;
      vf y = first ? sum[i][j] : sum[i][j] + v_get_most(g->c + at, stored);
      if (last) y = ended(&g->end, y, at, s->j + j * V_LANES, stored);
      v_put_most(g->c + at, y, stored);
    }
  }
  if (last && g->end.what >= TN_END_GELU) activate(g, turn * s->rows, m, s->j, s->n);
}

typedef void tile_function(const tn_sgemm *g, const strip *s, int64_t turn);

#define TILE(m, n)                                                                                           \
  static void tile_##m##_##n(const tn_sgemm *g, const strip *s, int64_t turn) { tile(g, s, turn, m, n, 0); } \
  static void part_##m##_##n(const tn_sgemm *g, const strip *s, int64_t turn) { tile(g, s, turn, m, n, 1); }
#if defined(__AVX512F__)
#define EACH_ROWS(X, n) X(1, n) X(2, n) X(3, n) X(4, n) X(5, n) X(6, n) X(7, n) X(8, n)
#define LIST(kind, n)                                                                                        \
  {                                                                                                          \
    kind##_1_##n, kind##_2_##n, kind##_3_##n, kind##_4_##n, kind##_5_##n, kind##_6_##n, kind##_7_##n,        \
        kind##_8_##n                                                                                         \
  }
#else
#define EACH_ROWS(X, n) X(1, n) X(2, n) X(3, n) X(4, n)
#define LIST(kind, n)                                                                                        \
  { kind##_1_##n, kind##_2_##n, kind##_3_##n, kind##_4_##n }
#endif
EACH_ROWS(TILE, 1)
EACH_ROWS(TILE, 2)
#if defined(__AVX2__)
EACH_ROWS(TILE, 3)
static tile_function *const tiles[2][3][ROWS] = {{LIST(tile, 1), LIST(tile, 2), LIST(tile, 3)},
                                                 {LIST(part, 1), LIST(part, 2), LIST(part, 3)}};
#else
static tile_function *const tiles[2][2][ROWS] = {{LIST(tile, 1), LIST(tile, 2)},
                                                 {LIST(part, 1), LIST(part, 2)}};
#endif

/* All rows of a strip of at most PANEL columns; `padded`: its lines are whole vectors. */
static void down(const tn_sgemm *g, strip *s, int padded) {
  int64_t vectors = (s->n + V_LANES - 1) / V_LANES;
  s->stored = s->lanes = s->n - (vectors - 1) * V_LANES;
  tile_function *const *by_rows = tiles[!padded && s->lanes < V_LANES][vectors - 1];
  for (int64_t turn = 0, i = 0; i < g->m; turn++, i += s->rows)
    by_rows[least(s->rows, g->m - i) - 1](g, s, turn);
}

static int64_t strip_columns(int64_t n) { return evenly((n + V_LANES - 1) / V_LANES, VECTORS) * V_LANES; }

/* Columns j .. of B as they lie, and A as it lies, from line k0 on. */
static strip strip_at(const tn_sgemm *g, int64_t j, int64_t columns, int64_t k0, int64_t k) {
  int64_t rows = evenly(g->m, ROWS);
  return (strip){.a = g->a + k0 * g->a_k,
                 .b = g->b + k0 * g->b_k + j * g->b_j,
                 .a_k = g->a_k,
                 .b_k = g->b_k,
                 .rows = rows,
                 .a_step = rows * g->a_i,
                 .j = j,
                 .n = least(columns, g->n - j),
                 .k0 = k0,
                 .k = k};
}

static void straight(const tn_sgemm *g) {
  int64_t columns = strip_columns(g->n), k0 = 0;
  do {
    int64_t k = least(TN_GEMM_DEPTH, g->k - k0);
    for (int64_t j = 0; j < g->n; j += columns) {
      strip s = strip_at(g, j, columns, k0, k);
      down(g, &s, 0);
    }
    k0 += k;
  } while (k0 < g->k);
}

/* ---- packed -------------------------------------------------------------------------------------- */

/* Where the lanes of two vectors go when a square of vectors is transposed in log2(V_LANES) steps, each of
 * which swaps halves of blocks of 2 s lanes between vectors s apart. */
#define KEPT(l, s)  ((l) & (s) ? V_LANES + (l) - (s) : (l))
#define MOVED(l, s) ((l) & (s) ? V_LANES + (l) : (l) + (s))
/* The lanes of the first and the second halves of blocks of s lanes of two vectors. */
#define LOW(l, s)  ((l) / ((s) / 2) * (s) + (l) % ((s) / 2))
#define HIGH(l, s) (LOW(l, s) + (s) / 2)
#if defined(__AVX512F__)
#define LANES_OF(f, s)                                                                                       \
  ((vi){f(0, s), f(1, s), f(2, s), f(3, s), f(4, s), f(5, s), f(6, s), f(7, s), f(8, s), f(9, s), f(10, s),  \
        f(11, s), f(12, s), f(13, s), f(14, s), f(15, s)})
#elif defined(__AVX2__)
#define LANES_OF(f, s) ((vi){f(0, s), f(1, s), f(2, s), f(3, s), f(4, s), f(5, s), f(6, s), f(7, s)})
#else
#define LANES_OF(f, s) ((vi){f(0, s), f(1, s), f(2, s), f(3, s)})
#endif

V_INLINE void swap_halves(vf *v, const int s, const vi kept, const vi moved) {
#pragma GCC unroll 16
  for (int i = 0; i < V_LANES; i++) {
    if (i & s) continue;
    vf x = v[i], y = v[i + s];
    v[i] = __builtin_shuffle(x, y, kept);
    v[i + s] = __builtin_shuffle(x, y, moved);
  }
}

V_INLINE void transpose(vf *v) {
#if defined(__AVX512F__)
  swap_halves(v, 8, LANES_OF(KEPT, 8), LANES_OF(MOVED, 8));
#endif
#if defined(__AVX2__)
  swap_halves(v, 4, LANES_OF(KEPT, 4), LANES_OF(MOVED, 4));
#endif
  swap_halves(v, 2, LANES_OF(KEPT, 2), LANES_OF(MOVED, 2));
  swap_halves(v, 1, LANES_OF(KEPT, 1), LANES_OF(MOVED, 1));
}

/* V_LANES columns along k, of which n exist, become k lines of a panel. */
static void pack_columns(const float *b, int64_t b_j, int64_t n, int64_t k, float *panel) {
  for (int64_t p = 0; p < k; p += V_LANES) {
    vf v[V_LANES];
    int64_t lanes = least(V_LANES, k - p);
    if (n == V_LANES && lanes == V_LANES) {
#pragma GCC unroll 16
      for (int i = 0; i < V_LANES; i++) v[i] = v_get(b + i * b_j + p);
      transpose(v);
#pragma GCC unroll 16
      for (int i = 0; i < V_LANES; i++) v_put(panel + (p + i) * PANEL, v[i]);
      continue;
    }
    for (int64_t i = 0; i < V_LANES; i++) v[i] = i < n ? v_get_most(b + i * b_j + p, lanes) : (vf){0};
    transpose(v);
    for (int64_t i = 0; i < lanes; i++) v_put(panel + (p + i) * PANEL, v[i]);
  }
}

/* Lines as they lie, into panels of `columns` columns that begin `step` floats apart. */
static void pack_lines(const tn_sgemm *g, const strip *s, int64_t n, int64_t columns, int64_t step,
                       float *panels) {
  const float *b = s->b;
  for (int64_t p = 0; p < s->k; p++, b += g->b_k, panels += PANEL) {
    float *to = panels;
    for (int64_t j = 0; j < n; j += columns, to += step)
      for (int64_t x = j; x < least(n, j + columns); x += V_LANES)
        v_put(to + x - j, v_get_most(b + x, least(V_LANES, n - x)));
  }
}

/* Columns of B from the strip's first on, into panels. */
static void pack(const tn_sgemm *g, const strip *s, int64_t n, int64_t columns, float *panels) {
  int64_t step = s->k * PANEL;
  if (g->b_j == 1) {
    pack_lines(g, s, n, columns, step, panels);
    return;
  }
  for (int64_t j = 0; j < n; j += columns, panels += step)
    for (int64_t x = j; x < least(n, j + columns); x += V_LANES)
      pack_columns(s->b + x * g->b_j, g->b_j, least(V_LANES, n - x), s->k, panels + x - j);
}

/* From now on the strip's B is a panel. */
static void use_panel(strip *s, const float *panel) {
  s->b = panel;
  s->b_k = PANEL;
}

static void packed(const tn_sgemm *g, float *panel) {
  int64_t columns = strip_columns(g->n), depth = evenly(g->k, TN_GEMM_DEPTH), k0 = 0;
  do {
    int64_t k = least(depth, g->k - k0);
    for (int64_t j = 0; j < g->n; j += columns) {
      strip s = strip_at(g, j, columns, k0, k);
      pack(g, &s, s.n, columns, panel);
      use_panel(&s, panel);
      if (j == 0) s.ahead[0] = (ahead){s.a + s.a_step, g->a_i, 1, (g->m - 1) / s.rows};
      down(g, &s, 1);
    }
    k0 += k;
  } while (k0 < g->k);
}

/* ---- sums of rows -------------------------------------------------------------------------------- */

V_INLINE vf get_element(const void *from, int64_t at, int64_t n, const int bf16) {
  if (!bf16) return v_get_most((const float *)from + at, n);
  uint16_t rest[V_LANES] = {0};
  memcpy(rest, (const uint16_t *)from + at, (size_t)least(n, V_LANES) * sizeof *rest);
  return v_of_bf16(v_get_halves(rest));
}

/* Sums of 32 rows are added up, so that rounding errors do not grow with the number of rows. */
V_INLINE vf sum_lines(const void *from, int64_t at, int64_t step, int64_t rows, int64_t lanes,
                      const int bf16) {
  vf total = {0};
  for (int64_t i = 0; i < rows; i += 32) {
    vf sum = {0};
    for (int64_t r = i; r < least(rows, i + 32); r++) sum += get_element(from, at + r * step, lanes, bf16);
    total += sum;
  }
  return total;
}

V_INLINE void sum_all_rows(const void *from, int64_t step, int64_t rows, int64_t n, void *to,
                           const int bf16) {
  for (int64_t j = 0; j < n; j += V_LANES) {
    int64_t lanes = least(V_LANES, n - j);
    vf total = sum_lines(from, j, step, rows, lanes, bf16);
    if (bf16) {
      uint16_t rest[V_LANES];
      v_put_halves(rest, v_bf16_of(total));
      memcpy((uint16_t *)to + j, rest, (size_t)lanes * sizeof *rest);
    } else {
      v_put_most((float *)to + j, total, lanes);
    }
  }
}
static void sum_rows(const void *from, int64_t step, int64_t rows, int64_t n, void *to) {
  sum_all_rows(from, step, rows, n, to, 0);
}
static void sum_rows_bf16(const void *from, int64_t step, int64_t rows, int64_t n, void *to) {
  sum_all_rows(from, step, rows, n, to, 1);
}

/* Lines k0 .. of a transposed A, which have just been read. */
static void sum_gathered(const tn_sgemm *g, const strip *s) {
  for (int64_t i = 0; i < g->m; i += V_LANES) {
    int64_t lanes = least(V_LANES, g->m - i);
    vf sum = sum_lines(s->a, i, g->a_k, s->k, lanes, 0);
    if (s->k0 > 0) sum += v_get_most(g->row_sums + i, lanes);
    v_put_most(g->row_sums + i, sum, lanes);
  }
}

/* ---- gathered ------------------------------------------------------------------------------------ */

/* Rows of a transposed A, as many as a tile has, side by side; those of the next tile begin `step` further.
 */
static void gather_rows(const tn_sgemm *g, const strip *s, int64_t step, float *to) {
  const float *a = s->a;
  int64_t rows = s->rows;
  for (int64_t p = 0; p < s->k; p++, to += rows, a += g->a_k) {
    float *at = to;
    int64_t i = 0;
    for (; rows == ROWS && i + ROWS <= g->m; i += ROWS, at += step) memcpy(at, a + i, ROWS * sizeof *at);
    for (; i < g->m; i += rows, at += step)
      for (int64_t r = 0; r < least(rows, g->m - i); r++) at[r] = a[i + r];
  }
}

static ahead lines(const strip *s, const float *at, int64_t step, int64_t n) {
  int64_t across = (n + s->k - 1) / s->k;
  return (ahead){at, step, across, across * ((s->k + s->rows - 1) / s->rows)};
}

/* The lines from k0 on, which come next. */
static void expect(const tn_sgemm *g, strip *s, int64_t k0) {
  s->ahead[0] = lines(s, g->a + k0 * g->a_k, g->a_k, g->m);
  if (g->b_j == 1) s->ahead[1] = lines(s, g->b + k0 * g->b_k, g->b_k, g->n);
}

static void gathered(const tn_sgemm *g, float *scratch) {
  int64_t columns = strip_columns(g->n), depth = evenly(g->k, tn_gemm_gathered_depth(g->m, g->n)), k0 = 0;
  do {
    int64_t k = least(depth, g->k - k0);
    strip s = strip_at(g, 0, columns, k0, k);
    const float *panel = scratch;
    float *rows = scratch + (g->n + columns - 1) / columns * k * PANEL;
    pack(g, &s, g->n, columns, scratch);
    if (k0 + k < g->k) expect(g, &s, k0 + k);
    s.a_step = s.rows * k + TN_GEMM_GAP;
    gather_rows(g, &s, s.a_step, rows);
    if (g->row_sums != NULL) sum_gathered(g, &s);
    s.a = rows;
    s.a_k = s.rows;
    for (; s.j < g->n; s.j += columns, panel += k * PANEL) {
      s.n = least(columns, g->n - s.j);
      use_panel(&s, panel);
      down(g, &s, 1);
      s.fetched += (g->m + s.rows - 1) / s.rows;
    }
    k0 += k;
  } while (k0 < g->k);
}

/* ---- dots ---------------------------------------------------------------------------------------- */

/* Halves the lanes of each sum, and packs neighbours into one vector while there are several. */
V_INLINE int halve(vf *v, int n, const vi low, const vi high) {
  int half = n > 1 ? n / 2 : 1;
#pragma GCC unroll 8
  for (int i = 0; i < half; i++) {
    vf x = v[2 * i], y = n > 1 ? v[2 * i + 1] : x;
    v[i] = __builtin_shuffle(x, y, low) + __builtin_shuffle(x, y, high);
  }
  return half;
}

/* The sums over the lanes of n vectors, n a power of two, in order; lanes behind them are copies. */
V_INLINE void sum_lanes(vf *v, int n) {
#if defined(__AVX512F__)
  n = halve(v, n, LANES_OF(LOW, 16), LANES_OF(HIGH, 16));
#endif
#if defined(__AVX2__)
  n = halve(v, n, LANES_OF(LOW, 8), LANES_OF(HIGH, 8));
#endif
  n = halve(v, n, LANES_OF(LOW, 4), LANES_OF(HIGH, 4));
  halve(v, n, LANES_OF(LOW, 2), LANES_OF(HIGH, 2));
}

enum { DOTS = 4 };

V_INLINE void dot_step(const float *const *a, const float *const *b, int64_t p, int64_t lanes, vf *sum,
                       const int m, const int n, const int whole) {
  vf y[DOTS];
#pragma GCC unroll 4
  for (int j = 0; j < n; j++) y[j] = whole ? v_get(b[j] + p) : v_get_some(b[j] + p, lanes);
#pragma GCC unroll 4
  for (int i = 0; i < m; i++) {
    vf x = whole ? v_get(a[i] + p) : v_get_some(a[i] + p, lanes);
#pragma GCC unroll 4
    for (int j = 0; j < n; j++) sum[i * n + j] += x * y[j];
  }
}

V_INLINE void dot_tile(const tn_sgemm *g, int64_t row, int64_t column, const int m, const int n) {
  vf sum[DOTS * DOTS];
  const float *a[DOTS], *b[DOTS];
  float *c = g->c + row * g->c_i + column;
  int64_t p = 0;
#pragma GCC unroll 16
  for (int i = 0; i < m * n; i++) sum[i] = (vf){0};
#pragma GCC unroll 4
  for (int i = 0; i < m; i++) a[i] = g->a + (row + i) * g->a_i;
#pragma GCC unroll 4
  for (int j = 0; j < n; j++) b[j] = g->b + (column + j) * g->b_j;
  for (; p + V_LANES <= g->k; p += V_LANES) dot_step(a, b, p, V_LANES, sum, m, n, 1);
  if (p < g->k) dot_step(a, b, p, g->k - p, sum, m, n, 0);
  sum_lanes(sum, m * n);
#pragma GCC unroll 4
  for (int i = 0; i < m; i++) memcpy(c + i * g->c_i, (const float *)sum + i * n, (size_t)n * sizeof(float));
}

#define DOT(m, n)                                                                                            \
  static void dot_##m##_##n(const tn_sgemm *g, int64_t i, int64_t j) { dot_tile(g, i, j, m, n); }
DOT(1, 1)
DOT(1, 2)
DOT(1, 4)
DOT(2, 1)
DOT(2, 2)
DOT(2, 4)
DOT(4, 1)
DOT(4, 2)
DOT(4, 4)
/* by powers of two */
static void (*const dot_tiles[3][3])(const tn_sgemm *g, int64_t i, int64_t j) = {
    {dot_1_1, dot_1_2, dot_1_4}, {dot_2_1, dot_2_2, dot_2_4}, {dot_4_1, dot_4_2, dot_4_4}};

static int power_below(int64_t n) { return n >= 4 ? 2 : n >= 2 ? 1 : 0; }

/* The sums are complete. */
static void finish(const tn_sgemm *g) {
  if (g->end.bias == NULL && g->end.what == TN_END_NONE) return;
  for (int64_t i = 0; i < g->m; i++)
    for (int64_t j = 0; j < g->n; j += V_LANES) {
      int64_t at = i * g->c_i + j, lanes = least(V_LANES, g->n - j);
      v_put_most(g->c + at, ended(&g->end, v_get_most(g->c + at, lanes), at, j, lanes), lanes);
    }
  if (g->end.what >= TN_END_GELU) activate(g, 0, g->m, 0, g->n);
}

static void dots(const tn_sgemm *g) {
  for (int64_t j = 0; j < g->n; j += 1 << power_below(g->n - j))
    for (int64_t i = 0; i < g->m; i += 1 << power_below(g->m - i))
      dot_tiles[power_below(g->m - i)][power_below(g->n - j)](g, i, j);
  finish(g);
}

/* ---- half precision ------------------------------------------------------------------------------ */

static void widen(const uint16_t *from, float *to, int64_t n) {
  int64_t i = 0;
  for (; i + V_LANES <= n; i += V_LANES) v_put(to + i, v_of_bf16(v_get_halves(from + i)));
  if (i == n) return;
  uint16_t rest[V_LANES] = {0};
  memcpy(rest, from + i, (size_t)(n - i) * sizeof *rest);
  v_put_some(to + i, v_of_bf16(v_get_halves(rest)), n - i);
}

static void narrow(const float *from, uint16_t *to, int64_t n) {
  int64_t i = 0;
  for (; i + V_LANES <= n; i += V_LANES) v_put_halves(to + i, v_bf16_of(v_get(from + i)));
  if (i == n) return;
  uint16_t rest[V_LANES];
  v_put_halves(rest, v_bf16_of(v_get_some(from + i, n - i)));
  memcpy(to + i, rest, (size_t)(n - i) * sizeof *rest);
}

static void add_parts(const float *first, int64_t parts, int64_t step, int64_t n, float *to) {
  for (int64_t i = 0; i < n; i += V_LANES) {
    int64_t lanes = least(V_LANES, n - i);
    vf sum = v_get_most(first + i, lanes);
    for (int64_t p = 1; p < parts; p++) sum += v_get_most(first + p * step + i, lanes);
    v_put_most(to + i, sum, lanes);
  }
}

extern const tn_gemm_loops TN_LOOP(tn_loops_gemm);
const tn_gemm_loops TN_LOOP(tn_loops_gemm) = {.lanes = V_LANES,
                                              .straight = straight,
                                              .dots = dots,
                                              .packed = packed,
                                              .gathered = gathered,
                                              .widen = widen,
                                              .narrow = narrow,
                                              .sum_rows = sum_rows,
                                              .sum_rows_bf16 = sum_rows_bf16,
                                              .add_parts = add_parts};
