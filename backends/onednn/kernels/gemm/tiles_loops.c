/* backends/onednn/kernels/gemm/tiles_loops.c: tiles of a product, whose sums stay in registers: a function
 * for each shape of a tile. */
#include "backends/onednn/kernels/gemm/epilogue.h"
#include "backends/onednn/kernels/gemm/strip.h"

enum {
  LINE = 16, /* floats of a cache line */
  UNROLLED = 4
};

/* The square that tile `index` prefetches, or NULL. */
static const float *tile_prefetch_square(const tn_gemm_strip *s, int64_t index, int64_t *step) {
  index += s->fetched;
  for (const tn_gemm_prefetch *a = s->prefetch; a < s->prefetch + 2; index -= a++->squares) {
    if (index >= a->squares) continue;
    *step = a->step;
    return a->at + index / a->across * s->rows * a->step + index % a->across * s->k;
  }
  return NULL;
}

V_INLINE void tile_prefetch(const float *at, int64_t step, const int m) {
#pragma GCC unroll 8
  for (int i = 0; i < m; i++) __builtin_prefetch(at + i * step, 0, 2);
}

/* The lines that the epilogue reads and writes arrive while the tile computes. */
V_INLINE void tile_prefetch_results(const tn_sgemm *g, int64_t at, const int m, const int n) {
  for (int i = 0; i < m; i++, at += g->c_i)
#pragma GCC unroll 3
    for (int j = 0; j < n; j++) {
      __builtin_prefetch(g->c + at + j * V_LANES, 1, 3);
      if (g->epilogue.operand != NULL) __builtin_prefetch(g->epilogue.operand + at + j * V_LANES, 0, 3);
      if (g->epilogue.preactivation != NULL)
        __builtin_prefetch(g->epilogue.preactivation + at + j * V_LANES, 1, 3);
    }
}

/* Adds the product of a column of A, whose elements are a_i apart, and a line of B. lanes: of its last
 * vector, if it is read in part; else 0. */
V_INLINE void tile_add_line(vf sum[][TN_GEMM_TILE_VECTORS], const float *a, int64_t a_i, const float *b,
                            int64_t lanes, const int m, const int n) {
  vf line[TN_GEMM_TILE_VECTORS];
#pragma GCC unroll 3
  for (int j = 0; j < n; j++)
    line[j] = lanes > 0 && j == n - 1 ? v_load_part(b + j * V_LANES, lanes) : v_load(b + j * V_LANES);
#pragma GCC unroll 8
  for (int i = 0; i < m; i++) {
    vf x = v_splat(a[i * a_i]);
#pragma GCC unroll 3
    for (int j = 0; j < n; j++) sum[i][j] += x * line[j];
  }
}

/* The lines of a panel. The distances from line to line are constants where it is inlined, so that a line
 * takes few instructions beside its sums. Returns how many lines were added, a multiple of LINE. */
V_INLINE int64_t tile_add_panel(vf sum[][TN_GEMM_TILE_VECTORS], const float *a, int64_t a_i,
                                const int64_t a_k, const float *b, const float *next, int64_t step, int64_t k,
                                const int m, const int n) {
  int64_t p = 0;
  for (; p + LINE <= k; p += LINE) {
    if (next != NULL) tile_prefetch(next + p, step, m);
    for (int i = 0; i < LINE; i += UNROLLED, a += UNROLLED * a_k, b += UNROLLED * TN_GEMM_TILE_COLUMNS)
#pragma GCC unroll 4
      for (int q = 0; q < UNROLLED; q++)
        tile_add_line(sum, a + q * a_k, a_i, b + q * TN_GEMM_TILE_COLUMNS, 0, m, n);
  }
  return p;
}

/* m rows of n vectors. part: only some lanes of the last vector of B are read. */
V_INLINE void tile_compute(const tn_sgemm *g, const tn_gemm_strip *s, int64_t index, const int m, const int n,
                           const int part) {
  vf sum[TN_GEMM_TILE_ROWS][TN_GEMM_TILE_VECTORS];
  const float *a = s->a + index * s->a_step, *b = s->b;
  int64_t a_i = g->a_i, a_k = s->a_k, b_k = s->b_k, step = 0, p = 0;
  const float *next = tile_prefetch_square(s, index, &step);
  tile_prefetch_results(g, index * s->rows * g->c_i + s->j, m, n);
#pragma GCC unroll 8
  for (int i = 0; i < m; i++)
#pragma GCC unroll 3
    for (int j = 0; j < n; j++) sum[i][j] = (vf){0};
  if (!part && b_k == TN_GEMM_TILE_COLUMNS) {
    if (a_k == 1) /* rows in place */
      p = tile_add_panel(sum, a, a_i, 1, b, next, step, s->k, m, n);
    else if (a_i == 1 && a_k == TN_GEMM_TILE_ROWS) /* rows that were gathered */
      p = tile_add_panel(sum, a, 1, TN_GEMM_TILE_ROWS, b, next, step, s->k, m, n);
  }
  for (a += p * a_k, b += p * b_k; p < s->k; p++, a += a_k, b += b_k) {
    if (next != NULL && p % LINE == 0) tile_prefetch(next + p, step, m);
    tile_add_line(sum, a, a_i, b, part ? s->lanes : 0, m, n);
  }
  const int first = s->k0 == 0 && !g->adds, last = s->k0 + s->k == g->k;
#pragma GCC unroll 8
  for (int i = 0; i < m; i++) {
    int64_t at = (index * s->rows + i) * g->c_i + s->j;
#pragma GCC unroll 3
    for (int j = 0; j < n; j++, at += V_LANES) {
      int64_t stored = j == n - 1 ? s->stored : V_LANES;
      vf y = first ? sum[i][j] : sum[i][j] + v_load_upto(g->c + at, stored);
      if (last) y = gemm_apply_epilogue(&g->epilogue, y, at, s->j + j * V_LANES, stored);
      v_store_upto(g->c + at, y, stored);
    }
  }
  if (last && g->epilogue.op >= TN_EPILOGUE_GELU) gemm_apply_gelu(g, index * s->rows, m, s->j, s->n);
}

#define TILE(m, n)                                                                                           \
  static void tile_full_##m##_##n(const tn_sgemm *g, const tn_gemm_strip *s, int64_t index) {                \
    tile_compute(g, s, index, m, n, 0);                                                                      \
  }                                                                                                          \
  static void tile_part_##m##_##n(const tn_sgemm *g, const tn_gemm_strip *s, int64_t index) {                \
    tile_compute(g, s, index, m, n, 1);                                                                      \
  }
#if defined(__AVX512F__)
#define TILE_EACH_ROWS(X, n) X(1, n) X(2, n) X(3, n) X(4, n) X(5, n) X(6, n) X(7, n) X(8, n)
#define TILE_LIST(kind, n)                                                                                   \
  {                                                                                                          \
    tile_##kind##_1_##n, tile_##kind##_2_##n, tile_##kind##_3_##n, tile_##kind##_4_##n, tile_##kind##_5_##n, \
        tile_##kind##_6_##n, tile_##kind##_7_##n, tile_##kind##_8_##n                                        \
  }
#else
#define TILE_EACH_ROWS(X, n) X(1, n) X(2, n) X(3, n) X(4, n)
#define TILE_LIST(kind, n)                                                                                   \
  { tile_##kind##_1_##n, tile_##kind##_2_##n, tile_##kind##_3_##n, tile_##kind##_4_##n }
#endif
TILE_EACH_ROWS(TILE, 1)
TILE_EACH_ROWS(TILE, 2)
#if defined(__AVX2__)
TILE_EACH_ROWS(TILE, 3)
#define TILE_LISTS(kind)                                                                                     \
  { TILE_LIST(kind, 1), TILE_LIST(kind, 2), TILE_LIST(kind, 3) }
#else
#define TILE_LISTS(kind)                                                                                     \
  { TILE_LIST(kind, 1), TILE_LIST(kind, 2) }
#endif

const tn_gemm_tiles TN_LOOP(tn_gemm_tiles) = {{TILE_LISTS(full), TILE_LISTS(part)}};
