/* backends/onednn/kernels/gemm/panels_loops.c: walks over the tiles of a product, on B in place (`straight`)
 * or packed into panels (`packed`, `folded`), and on the rows of a transposed A gathered (`gathered`). */
#include "backends/shared/integer_math.h"
#include "backends/onednn/kernels/gemm/strip.h"
#include "backends/onednn/kernels/gemm/sum_lines.h"
#include "backends/onednn/simd/vector_load.h"
#include "backends/onednn/simd/vector_transpose.h"

enum { PANEL = TN_GEMM_TILE_COLUMNS };

/* ---- strips -------------------------------------------------------------------------------------- */

/* All rows of a strip of at most PANEL columns. padded: its lines fill whole vectors. */
static void gemm_run_strip(const tn_sgemm *g, tn_gemm_strip *s, int padded) {
  int64_t vectors = (s->n + V_LANES - 1) / V_LANES;
  s->stored = s->lanes = s->n - (vectors - 1) * V_LANES;
  const tn_gemm_tile *by_rows = TN_LOOP(tn_gemm_tiles).by[!padded && s->lanes < V_LANES][vectors - 1];
  for (int64_t index = 0, i = 0; i < g->m; index++, i += s->rows)
    by_rows[least(s->rows, g->m - i) - 1](g, s, index);
}

static int64_t gemm_strip_columns(int64_t n) {
  return balanced_step((n + V_LANES - 1) / V_LANES, TN_GEMM_TILE_VECTORS) * V_LANES;
}

/* Columns j .. of B and all rows of A, both in place, from line k0 on. */
static tn_gemm_strip gemm_strip_at(const tn_sgemm *g, int64_t j, int64_t columns, int64_t k0, int64_t k) {
  int64_t rows = balanced_step(g->m, TN_GEMM_TILE_ROWS);
  return (tn_gemm_strip){.a = g->a + k0 * g->a_k,
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

static void gemm_straight(const tn_sgemm *g) {
  int64_t columns = gemm_strip_columns(g->n), k0 = 0;
  do {
    int64_t k = least(TN_GEMM_DEPTH, g->k - k0);
    for (int64_t j = 0; j < g->n; j += columns) {
      tn_gemm_strip s = gemm_strip_at(g, j, columns, k0, k);
      gemm_run_strip(g, &s, 0);
    }
    k0 += k;
  } while (k0 < g->k);
}

/* ---- packed -------------------------------------------------------------------------------------- */

/* V_LANES columns along k, of which n exist, become k lines of a panel. */
static void gemm_pack_columns(const float *b, int64_t b_j, int64_t n, int64_t k, float *panel) {
  for (int64_t p = 0; p < k; p += V_LANES) {
    vf v[V_LANES];
    int64_t lanes = least(V_LANES, k - p);
    if (n == V_LANES && lanes == V_LANES) {
#pragma GCC unroll 16
      for (int i = 0; i < V_LANES; i++) v[i] = v_load(b + i * b_j + p);
      v_transpose(v);
#pragma GCC unroll 16
      for (int i = 0; i < V_LANES; i++) v_store(panel + (p + i) * PANEL, v[i]);
      continue;
    }
    for (int64_t i = 0; i < V_LANES; i++) v[i] = i < n ? v_load_upto(b + i * b_j + p, lanes) : (vf){0};
    v_transpose(v);
    for (int64_t i = 0; i < lanes; i++) v_store(panel + (p + i) * PANEL, v[i]);
  }
}

/* Row-major lines of B, into panels of `columns` columns that begin `step` floats apart. */
static void gemm_pack_lines(const tn_sgemm *g, const tn_gemm_strip *s, int64_t n, int64_t columns,
                            int64_t step, float *panels) {
  const float *b = s->b;
  for (int64_t p = 0; p < s->k; p++, b += g->b_k, panels += PANEL) {
    float *to = panels;
    for (int64_t j = 0; j < n; j += columns, to += step)
      for (int64_t x = j; x < least(n, j + columns); x += V_LANES)
        v_store(to + x - j, v_load_upto(b + x, least(V_LANES, n - x)));
  }
}

/* Columns of B from the strip's first on, into panels. */
static void gemm_pack(const tn_sgemm *g, const tn_gemm_strip *s, int64_t n, int64_t columns, float *panels) {
  int64_t step = s->k * PANEL;
  if (g->b_j == 1) {
    gemm_pack_lines(g, s, n, columns, step, panels);
    return;
  }
  for (int64_t j = 0; j < n; j += columns, panels += step)
    for (int64_t x = j; x < least(n, j + columns); x += V_LANES)
      gemm_pack_columns(s->b + x * g->b_j, g->b_j, least(V_LANES, n - x), s->k, panels + x - j);
}

static void gemm_use_panel(tn_gemm_strip *s, const float *panel) {
  s->b = panel;
  s->b_k = PANEL;
}

/* The tiles of a strip. Those of the first one prefetch the rows of A, which the others find in the cache. */
static void gemm_run_panel(const tn_sgemm *g, tn_gemm_strip *s, const float *panel) {
  gemm_use_panel(s, panel);
  if (s->j == 0) s->prefetch[0] = (tn_gemm_prefetch){s->a + s->a_step, g->a_i, 1, (g->m - 1) / s->rows};
  gemm_run_strip(g, s, 1);
}

static void gemm_packed(const tn_sgemm *g, float *panel) {
  int64_t columns = gemm_strip_columns(g->n), depth = balanced_step(g->k, TN_GEMM_DEPTH), k0 = 0;
  do {
    int64_t k = least(depth, g->k - k0);
    for (int64_t j = 0; j < g->n; j += columns) {
      tn_gemm_strip s = gemm_strip_at(g, j, columns, k0, k);
      gemm_pack(g, &s, s.n, columns, panel);
      gemm_run_panel(g, &s, panel);
    }
    k0 += k;
  } while (k0 < g->k);
}

/* ---- folded -------------------------------------------------------------------------------------- */

/* The panels follow one another in the order in which gemm_folded reads them. */
static void gemm_fold(const tn_sgemm *g, float *panels) {
  int64_t columns = gemm_strip_columns(g->n), depth = balanced_step(g->k, TN_GEMM_DEPTH);
  for (int64_t k0 = 0; k0 < g->k; k0 += depth) {
    tn_gemm_strip s = gemm_strip_at(g, 0, columns, k0, least(depth, g->k - k0));
    gemm_pack(g, &s, g->n, columns, panels);
    panels += divide_up(g->n, columns) * s.k * PANEL;
  }
}

/* The next panel comes from memory while the tiles of one compute: each fetches some of its floats, as lines
 * of k. */
static void gemm_folded(const tn_sgemm *g, const float *panels) {
  int64_t columns = gemm_strip_columns(g->n), depth = balanced_step(g->k, TN_GEMM_DEPTH);
  for (int64_t k0 = 0; k0 < g->k; k0 += depth)
    for (int64_t j = 0; j < g->n; j += columns) {
      tn_gemm_strip s = gemm_strip_at(g, j, columns, k0, least(depth, g->k - k0));
      const float *next = panels + s.k * PANEL;
      s.prefetch[1] = (tn_gemm_prefetch){next, s.k, 1, PANEL / s.rows};
      gemm_run_panel(g, &s, panels);
      panels = next;
    }
}

/* ---- gathered ------------------------------------------------------------------------------------ */

/* Lines k0 .. of a transposed A, which are in the cache. */
static void gemm_sum_gathered(const tn_sgemm *g, const tn_gemm_strip *s) {
  for (int64_t i = 0; i < g->m; i += V_LANES) {
    int64_t lanes = least(V_LANES, g->m - i);
    vf sum = gemm_sum_lines(TN_F32, s->a, i, g->a_k, s->k, lanes);
    if (s->k0 > 0) sum += v_load_upto(g->row_sums + i, lanes);
    v_store_upto(g->row_sums + i, sum, lanes);
  }
}

/* The rows of a transposed A, interleaved for each tile; those of the next tile begin `step` floats later. */
static void gemm_gather_rows(const tn_sgemm *g, const tn_gemm_strip *s, int64_t step, float *to) {
  const float *a = s->a;
  int64_t rows = s->rows;
  for (int64_t p = 0; p < s->k; p++, to += rows, a += g->a_k) {
    float *at = to;
    int64_t i = 0;
    for (; rows == TN_GEMM_TILE_ROWS && i + TN_GEMM_TILE_ROWS <= g->m; i += TN_GEMM_TILE_ROWS, at += step)
      memcpy(at, a + i, TN_GEMM_TILE_ROWS * sizeof *at);
    for (; i < g->m; i += rows, at += step)
      for (int64_t r = 0; r < least(rows, g->m - i); r++) at[r] = a[i + r];
  }
}

static tn_gemm_prefetch gemm_prefetch_lines(const tn_gemm_strip *s, const float *at, int64_t step,
                                            int64_t n) {
  int64_t across = (n + s->k - 1) / s->k;
  return (tn_gemm_prefetch){at, step, across, across * ((s->k + s->rows - 1) / s->rows)};
}

/* Prefetches the lines of the next range of k, which begins at k0. */
static void gemm_prefetch_next(const tn_sgemm *g, tn_gemm_strip *s, int64_t k0) {
  s->prefetch[0] = gemm_prefetch_lines(s, g->a + k0 * g->a_k, g->a_k, g->m);
  if (g->b_j == 1) s->prefetch[1] = gemm_prefetch_lines(s, g->b + k0 * g->b_k, g->b_k, g->n);
}

static void gemm_gathered(const tn_sgemm *g, float *scratch) {
  int64_t columns = gemm_strip_columns(g->n);
  int64_t depth = balanced_step(g->k, tn_gemm_gathered_depth(g->m, g->n)), k0 = 0;
  do {
    int64_t k = least(depth, g->k - k0);
    tn_gemm_strip s = gemm_strip_at(g, 0, columns, k0, k);
    const float *panel = scratch;
    float *rows = scratch + (g->n + columns - 1) / columns * k * PANEL;
    gemm_pack(g, &s, g->n, columns, scratch);
    if (k0 + k < g->k) gemm_prefetch_next(g, &s, k0 + k);
    s.a_step = s.rows * k + TN_GEMM_GAP;
    gemm_gather_rows(g, &s, s.a_step, rows);
    if (g->row_sums != NULL) gemm_sum_gathered(g, &s);
    s.a = rows;
    s.a_k = s.rows;
    for (; s.j < g->n; s.j += columns, panel += k * PANEL) {
      s.n = least(columns, g->n - s.j);
      gemm_use_panel(&s, panel);
      gemm_run_strip(g, &s, 1);
      s.fetched += (g->m + s.rows - 1) / s.rows;
    }
    k0 += k;
  } while (k0 < g->k);
}

const tn_gemm_loops TN_LOOP(tn_loops_gemm) = {.lanes = V_LANES,
                                              .straight = gemm_straight,
                                              .dots = TN_LOOP(tn_gemm_dots),
                                              .packed = gemm_packed,
                                              .gathered = gemm_gathered,
                                              .fold = gemm_fold,
                                              .folded = gemm_folded,
                                              .widen = TN_LOOP(tn_gemm_widen),
                                              .narrow = TN_LOOP(tn_gemm_narrow),
                                              .sum_rows = TN_LOOP(tn_gemm_sum_rows),
                                              .sum_rows_bf16 = TN_LOOP(tn_gemm_sum_rows_bf16),
                                              .add_parts = TN_LOOP(tn_gemm_add_parts)};
