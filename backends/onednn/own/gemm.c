/* backends/onednn/own/gemm.c: cuts products into tiles, and tiles into chunks. */
#include "own/gemm_plan.h"
#include "whole.h"

#include <stdbool.h>

enum {
  FORK_MACS = 1 << 21,  /* some twenty microseconds: less is not worth a second thread */
  CHUNK_MACS = 3 << 18, /* of what is */
  CHUNKS = 16,
  DOT_ROWS = 128,              /* with more, transposing B pays */
  STRAIGHT_ELEMENTS = 1 << 18, /* a larger B is copied into panels, */
  PACKED_ROWS = 256, /* which serve so many rows: a block of A that stays in the second-level cache */
  LEAST_ROWS = 32
};

/* ---- the cut ------------------------------------------------------------------------------------- */

/* Lines of a transposed A that lie far apart cost a page each. */
static int32_t way_of(const tn_gemm_cut *c) {
  bool large = c->k * c->n > STRAIGHT_ELEMENTS || (c->transpose_a && c->k * c->m > 2 * STRAIGHT_ELEMENTS);
  if (!c->transpose_b) return c->m > LEAST_ROWS && large ? TN_GEMM_PACK : TN_GEMM_STRAIGHT;
  return !c->transpose_a && c->m <= DOT_ROWS ? TN_GEMM_DOTS : TN_GEMM_PACK;
}

/* What columns come in: dots, vectors, panels. */
static int64_t column_step(const tn_gemm_cut *c) {
  return c->way == TN_GEMM_DOTS ? 8 : c->way == TN_GEMM_STRAIGHT ? 16 : TN_GEMM_WIDTH;
}

/* Cuts as evenly as whole tiles allow. */
static void set_tiles(tn_gemm_cut *c, int64_t tiles_m, int64_t tiles_n) {
  c->tile_m = round_up(divide_up(c->m, tiles_m), 8);
  c->tile_n = round_up(divide_up(c->n, tiles_n), column_step(c));
  c->tiles_m = divide_up(c->m, c->tile_m);
  c->tiles_n = divide_up(c->n, c->tile_n);
}

/* Packing is done anew for each tile of rows, so those are kept tall. */
static void cut_tiles(tn_gemm_cut *c, int64_t pieces) {
  int64_t columns = divide_up(c->n, TN_GEMM_WIDTH), rows = divide_up(c->m, LEAST_ROWS);
  int64_t tiles_m = c->way == TN_GEMM_PACK ? divide_up(c->m, PACKED_ROWS) : 1;
  int64_t tiles_n = least(columns, divide_up(pieces, tiles_m));
  set_tiles(c, most(tiles_m, least(rows, divide_up(pieces, tiles_n))), tiles_n);
}

/* A panel of B, and lines of A. */
static int64_t packed_floats(const tn_gemm_cut *c) {
  if (c->way != TN_GEMM_PACK) return 0;
  return TN_GEMM_DEPTH * (TN_GEMM_WIDTH + (c->transpose_a ? round_up(c->tile_m, 16) : 0));
}

static int64_t scratch_of(const tn_gemm_cut *c) {
  int64_t floats = packed_floats(c);
  if (c->dtype == TN_BF16)
    floats += round_up(c->tile_m * c->k, 16) + round_up(c->k * c->tile_n, 16) + 2 * c->tile_m * c->tile_n +
              c->tile_n;
  return floats * (int64_t)sizeof(float);
}

/* An even number, since there are most often two threads, or four. */
static int64_t wanted_chunks(double macs) {
  if (macs < FORK_MACS) return 1;
  return macs / CHUNK_MACS >= CHUNKS ? CHUNKS : round_up((int64_t)(macs / CHUNK_MACS), 2);
}

void tn_gemm_cut_make(tn_gemm_cut *c, int32_t dtype, int32_t transpose_a, int32_t transpose_b,
                      int64_t products, int64_t m, int64_t n, int64_t k) {
  *c = (tn_gemm_cut){.dtype = dtype,
                     .transpose_a = transpose_a,
                     .transpose_b = transpose_b,
                     .products = products,
                     .m = m,
                     .n = n,
                     .k = k};
  if (products == 0 || m == 0 || n == 0) return;
  int64_t wanted = wanted_chunks((double)products * (double)m * (double)n * (double)k);
  c->way = way_of(c);
  cut_tiles(c, divide_up(wanted, products));
  c->chunks = least(wanted, products * c->tiles_m * c->tiles_n);
  c->scratch_bytes = scratch_of(c);
}

double tn_gemm_cut_cost_s(const tn_gemm_cut *c, int32_t threads) {
  double rate = tn_onednn_isa() >= TN_ISA_AVX512 ? 7e10 : tn_onednn_isa() >= TN_ISA_AVX2 ? 3.5e10 : 5e9;
  double used = c->chunks < threads ? (double)c->chunks : threads;
  return 1e-7 +
         (double)c->products * (double)c->m * (double)c->n * (double)c->k / (rate * (used > 1 ? used : 1));
}

int64_t tn_gemm_cut_chunk(const tn_gemm_cut *c, int64_t chunk, int64_t *count) {
  int64_t items = c->products * c->tiles_m * c->tiles_n, each = items / c->chunks, rest = items % c->chunks;
  *count = each + (chunk < rest);
  return each * chunk + least(chunk, rest);
}

int64_t tn_gemm_cut_item(const tn_gemm_cut *c, int64_t item, tn_gemm_range *r) {
  int64_t i = item % c->tiles_m, rest = item / c->tiles_m, j = rest % c->tiles_n;
  *r = (tn_gemm_range){.m0 = i * c->tile_m, .n0 = j * c->tile_n};
  r->m = least(c->tile_m, c->m - r->m0);
  r->n = least(c->tile_n, c->n - r->n0);
  return rest / c->tiles_n;
}

/* ---- running ------------------------------------------------------------------------------------- */

static void run(const tn_gemm_cut *c, const tn_gemm_loops *loops, const tn_sgemm *g, float *panel) {
  if (c->way == TN_GEMM_PACK)
    loops->packed(g, panel, c->transpose_a ? panel + TN_GEMM_DEPTH * TN_GEMM_WIDTH : NULL);
  else if (c->way == TN_GEMM_DOTS)
    loops->dots(g);
  else
    loops->straight(g);
}

static void run_f32(const tn_gemm_cut *c, const tn_gemm_loops *loops, const tn_gemm_matrices *x,
                    const tn_gemm_end *end, const tn_gemm_range *r, float *scratch) {
  tn_sgemm g = {.m = r->m, .n = r->n, .k = c->k, .c_i = c->n, .end = *end};
  g.a_i = c->transpose_a ? 1 : c->k;
  g.a_k = c->transpose_a ? c->m : 1;
  g.b_k = c->transpose_b ? 1 : c->n;
  g.b_j = c->transpose_b ? c->k : 1;
  g.a = (const float *)x->a + r->m0 * g.a_i;
  g.b = (const float *)x->b + r->n0 * g.b_j;
  g.c = (float *)x->c + r->m0 * c->n + r->n0;
  g.end.bias = x->bias == NULL ? NULL : (const float *)x->bias + r->n0;
  g.end.gate = x->gate == NULL ? NULL : (const float *)x->gate + r->m0 * c->n + r->n0;
  run(c, loops, &g, scratch);
}

/* `rows` rows of `n` elements that lie `step` apart, as f32 one after the other. */
static float *widen(const tn_gemm_loops *loops, const void *from, int64_t at, int64_t rows, int64_t step,
                    int64_t n, float *to) {
  for (int64_t i = 0; i < rows; i++) loops->widen((const uint16_t *)from + at + i * step, to + i * n, n);
  return to;
}

/* The operands' parts as f32 in the scratch, and the result back. Rounding once, at the end, is what an
 * accumulator in f32 means. */
static void run_bf16(const tn_gemm_cut *c, const tn_gemm_loops *loops, const tn_gemm_matrices *x,
                     const tn_gemm_end *end, const tn_gemm_range *r, float *scratch) {
  tn_sgemm g = {.m = r->m, .n = r->n, .k = c->k, .c_i = r->n, .end = *end};
  float *panel = scratch, *a = panel + packed_floats(c), *b = a + round_up(c->tile_m * c->k, 16),
        *gate = b + round_up(c->k * c->tile_n, 16), *bias = gate + c->tile_m * c->tile_n;
  int64_t at = r->m0 * c->n + r->n0;
  g.a_i = c->transpose_a ? 1 : c->k;
  g.a_k = c->transpose_a ? r->m : 1;
  g.b_k = c->transpose_b ? 1 : r->n;
  g.b_j = c->transpose_b ? c->k : 1;
  g.a = c->transpose_a ? widen(loops, x->a, r->m0, c->k, c->m, r->m, a)
                       : widen(loops, x->a, r->m0 * c->k, r->m, c->k, c->k, a);
  g.b = c->transpose_b ? widen(loops, x->b, r->n0 * c->k, r->n, c->k, c->k, b)
                       : widen(loops, x->b, r->n0, c->k, c->n, r->n, b);
  g.c = bias + c->tile_n;
  if (x->bias != NULL) g.end.bias = widen(loops, x->bias, r->n0, 1, 0, r->n, bias);
  if (x->gate != NULL) g.end.gate = widen(loops, x->gate, at, r->m, c->n, r->n, gate);
  run(c, loops, &g, panel);
  for (int64_t i = 0; i < r->m; i++) loops->narrow(g.c + i * r->n, (uint16_t *)x->c + at + i * c->n, r->n);
}

void tn_gemm_cut_run(const tn_gemm_cut *c, const tn_gemm_loops *loops, const tn_gemm_matrices *x,
                     const tn_gemm_end *end, const tn_gemm_range *r, void *scratch) {
  (c->dtype == TN_BF16 ? run_bf16 : run_f32)(c, loops, x, end, r, scratch);
}
