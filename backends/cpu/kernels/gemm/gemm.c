/* backends/cpu/kernels/gemm/gemm.c: divides products into tiles and runs the tiles on the team. */
#include <stddef.h>

#include "backends/cpu/kernels/gemm/gemm.h"

extern const tn_gemm_isa tn_gemm_isa_plain;

#ifdef TN_GEMM_X86
extern const tn_gemm_isa tn_gemm_isa_avx2, tn_gemm_isa_avx512;

static int32_t has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

static int32_t has_avx512(void) {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

const tn_gemm_isa *tn_gemm_isa_at(int32_t index) {
  if (has_avx512() && index-- == 0) return &tn_gemm_isa_avx512;
  if (has_avx2() && index-- == 0) return &tn_gemm_isa_avx2;
  return index == 0 ? &tn_gemm_isa_plain : NULL;
}
#else
const tn_gemm_isa *tn_gemm_isa_at(int32_t index) { return index == 0 ? &tn_gemm_isa_plain : NULL; }
#endif

tn_status tn_gemm_check_dtype(tn_query *q, int32_t dtype) {
  if (dtype >= 0 && dtype < TN_DTYPES && tn_gemm_isa_plain.tile[dtype] != NULL) return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL, "elements are %s, expected f16, bf16, f32 or f64",
                 tn_dtype_name(dtype));
}

int64_t tn_gemm_wide_bytes(int32_t kind) {
  return kind == TN_F64 ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
}

int64_t tn_gemm_packed_bytes(int32_t kind, int64_t m, int64_t k) {
  return round_up(m, TN_GEMM_ALIGN) * k * tn_gemm_wide_bytes(kind);
}

/* ---- tiling ------------------------------------------------------------------------------------ */

enum {
  DIRECT_MACS = 8192,  /* a product with at most so many multiplications runs without packing */
  DIRECT_LINES = 4,    /* so does one with at most so many rows or columns: each element is read that often */
  ITEM_MACS = 1 << 22, /* least multiplications per tile, about 1 ms, if there are several tiles */
  LEAST_TILE = 64,
  LEAST_SPLIT = 4 * TN_GEMM_K
};

static int64_t gemm_items_of(const tn_gemm_tiling *p) {
  return p->products * p->tiles_m * p->tiles_n * p->splits;
}

/* Makes the tiles as equal as the width of the panels allows. */
static void gemm_set_tiles(tn_gemm_tiling *p, int64_t tile_m, int64_t tile_n) {
  p->tiles_m = divide_up(p->m, tile_m);
  p->tiles_n = divide_up(p->n, tile_n);
  p->tile_m = round_up(divide_up(p->m, p->tiles_m), TN_GEMM_ALIGN);
  p->tile_n = round_up(divide_up(p->n, p->tiles_n), TN_GEMM_ALIGN);
  p->tiles_m = divide_up(p->m, p->tile_m);
  p->tiles_n = divide_up(p->n, p->tile_n);
}

static void gemm_set_splits(tn_gemm_tiling *p, int64_t splits) {
  p->tile_k = round_up(divide_up(p->k, splits), TN_GEMM_K);
  p->splits = divide_up(p->k, p->tile_k);
}

/* Halves the tiles until there are enough. Smaller tiles cost more packing, so LEAST_TILE is the limit even
 * if threads stay idle. */
static void gemm_tile_packed(tn_gemm_tiling *p, int64_t wanted, int32_t flags) {
  int64_t tile_m = flags & TN_GEMM_PACKED ? 512 : 256, tile_n = flags & TN_GEMM_PACKED ? 128 : 256;
  gemm_set_tiles(p, tile_m, tile_n);
  if (flags & TN_GEMM_SPLIT && gemm_items_of(p) < wanted && p->k >= 2 * LEAST_SPLIT)
    gemm_set_splits(p, least(divide_up(wanted, gemm_items_of(p)), p->k / LEAST_SPLIT));
  while (gemm_items_of(p) < wanted && (p->tile_m > LEAST_TILE || p->tile_n > LEAST_TILE)) {
    if (p->tile_m >= p->tile_n)
      tile_m = round_up(divide_up(p->tile_m, 2), TN_GEMM_ALIGN);
    else
      tile_n = round_up(divide_up(p->tile_n, 2), TN_GEMM_ALIGN);
    gemm_set_tiles(p, tile_m, tile_n);
  }
  int64_t packed_a = flags & TN_GEMM_PACKED ? 0 : TN_GEMM_K * p->tile_m;
  p->scratch_bytes = (p->tile_m * p->tile_n + TN_GEMM_K * p->tile_n + packed_a) * tn_gemm_wide_bytes(p->kind);
}

static void gemm_tile_direct(tn_gemm_tiling *p, int64_t wanted) {
  p->direct = 1;
  p->tile_n = least(p->n, TN_GEMM_DIRECT_N);
  p->tiles_n = divide_up(p->n, p->tile_n);
  p->tiles_m = least(p->m, divide_up(wanted, p->products * p->tiles_n));
  p->tile_m = divide_up(p->m, p->tiles_m);
  p->tiles_m = divide_up(p->m, p->tile_m);
}

void tn_gemm_tiling_make(tn_gemm_tiling *tiling, int32_t kind, int64_t products, int64_t m, int64_t n,
                         int64_t k, int32_t flags) {
  *tiling =
      (tn_gemm_tiling){.kind = kind, .products = products, .m = m, .n = n, .k = k, .tile_k = k, .splits = 1};
  if (products == 0 || m == 0 || n == 0) return;
  double macs = (double)m * (double)n * (double)(k > 0 ? k : 1);
  double pieces = (double)products * macs / ITEM_MACS;
  int64_t wanted = pieces < 1 ? 1 : pieces > TN_GEMM_CHUNKS ? TN_GEMM_CHUNKS : (int64_t)pieces;
  int32_t small = macs <= DIRECT_MACS || m <= DIRECT_LINES || n <= DIRECT_LINES;
  if (flags & TN_GEMM_PLAIN && small)
    gemm_tile_direct(tiling, wanted);
  else
    gemm_tile_packed(tiling, wanted, flags);
  /* A product with little work gets one chunk; otherwise the items are spread over up to TN_GEMM_CHUNKS. */
  tiling->chunks = least(gemm_items_of(tiling), wanted > 1 ? TN_GEMM_CHUNKS : 1);
}

/* ---- running ------------------------------------------------------------------------------------- */

typedef struct gemm_run {
  const tn_gemm_isa *isa;
  const tn_gemm_tiling *tiling;
  tn_gemm_describe describe;
  const void *arg;
  char *scratch;
} gemm_run;

/* Decodes the item's number to product, split and tile. Consecutive items share columns of B. */
static void gemm_run_item(const gemm_run *run, int64_t item, void *scratch) {
  const tn_gemm_tiling *p = run->tiling;
  tn_gemm g = {0};
  int64_t i = item % p->tiles_m, rest = item / p->tiles_m;
  int64_t j = rest % p->tiles_n;
  rest /= p->tiles_n;
  tn_gemm_range r = {.m0 = i * p->tile_m, .n0 = j * p->tile_n, .k0 = rest % p->splits * p->tile_k};
  r.m = least(p->tile_m, p->m - r.m0);
  r.n = least(p->tile_n, p->n - r.n0);
  r.k = least(p->tile_k, p->k - r.k0);
  run->describe(run->arg, rest / p->splits, rest % p->splits, &g);
  g.m = p->m;
  (p->direct ? run->isa->direct : run->isa->tile)[p->kind](&g, &r, scratch);
}

static void gemm_run_chunk(void *arg, int64_t chunk) {
  const gemm_run *run = arg;
  const tn_gemm_tiling *p = run->tiling;
  int64_t items = gemm_items_of(p), first = items / p->chunks * chunk + least(chunk, items % p->chunks);
  int64_t n = items / p->chunks + (chunk < items % p->chunks);
  for (int64_t item = first; item < first + n; item++)
    gemm_run_item(run, item, run->scratch + chunk * p->scratch_bytes);
}

void tn_gemm_run(tn_launch *launch, const tn_gemm_isa *isa, const tn_gemm_tiling *tiling,
                 tn_gemm_describe describe, const void *arg, void *scratch) {
  gemm_run run = {isa, tiling, describe, arg, scratch};
  if (tiling->chunks > 0) tn_parallel(launch, tiling->chunks, gemm_run_chunk, &run);
}
