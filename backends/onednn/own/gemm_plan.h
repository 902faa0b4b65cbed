/* backends/onednn/own/gemm_plan.h: how products are cut into chunks for the team, and run. */
#ifndef TN_ONEDNN_GEMM_PLAN_H
#define TN_ONEDNN_GEMM_PLAN_H

#include "own/gemm.h"

enum { TN_GEMM_STRAIGHT = 0, TN_GEMM_DOTS = 1, TN_GEMM_PACK = 2 };

/* A pure function of the shape, so that query (which sizes the workspace) and prepare agree, and so that bits
 * do not depend on the number of threads. */
typedef struct tn_gemm_cut {
  int32_t dtype, way; /* TN_F32 or TN_BF16; TN_GEMM_... */
  int32_t transpose_a, transpose_b;
  int64_t products, m, n, k;
  int64_t tile_m, tile_n, tiles_m, tiles_n;
  int64_t chunks, scratch_bytes; /* scratch of one chunk */
} tn_gemm_cut;

void tn_gemm_cut_make(tn_gemm_cut *cut, int32_t dtype, int32_t transpose_a, int32_t transpose_b,
                      int64_t products, int64_t m, int64_t n, int64_t k);
static inline int64_t tn_gemm_cut_workspace(const tn_gemm_cut *cut) {
  return cut->chunks * cut->scratch_bytes;
}
/* Estimated seconds on so many threads. */
double tn_gemm_cut_cost_s(const tn_gemm_cut *cut, int32_t threads);

/* The matrices of one product, in elements of the cut's dtype. */
typedef struct tn_gemm_matrices {
  const void *a, *b, *bias, *gate; /* bias and gate may be NULL */
  void *c;
} tn_gemm_matrices;

/* Rows m0 .. and columns n0 .. of a product. `scratch`: the cut's scratch_bytes, aligned to 64. */
typedef struct tn_gemm_range {
  int64_t m0, m, n0, n;
} tn_gemm_range;
void tn_gemm_cut_run(const tn_gemm_cut *cut, const tn_gemm_loops *loops, const tn_gemm_matrices *matrices,
                     const tn_gemm_end *end, const tn_gemm_range *range, void *scratch);

/* The product and the range of an item: 0 .. products * tiles_m * tiles_n - 1. */
int64_t tn_gemm_cut_item(const tn_gemm_cut *cut, int64_t item, tn_gemm_range *range);
/* The items of a chunk: the first, and how many. */
int64_t tn_gemm_cut_chunk(const tn_gemm_cut *cut, int64_t chunk, int64_t *count);

#endif
