/* backends/onednn/kernels/gemm/gemm.h: how products are cut into chunks for the team, and run. */
#ifndef TN_BACKENDS_ONEDNN_KERNELS_GEMM_GEMM_H
#define TN_BACKENDS_ONEDNN_KERNELS_GEMM_GEMM_H

#include "backends/onednn/kernels/gemm/loops.h"

enum { TN_GEMM_STRAIGHT = 0, TN_GEMM_DOTS = 1, TN_GEMM_PACK = 2, TN_GEMM_GATHER = 3 };

/* A pure function of the shape, so that query (which sizes the workspace) and prepare agree, and so that bits
 * do not depend on the number of threads. */
typedef struct tn_gemm_cut {
  int32_t dtype, way; /* TN_F32 or TN_BF16; TN_GEMM_... */
  int32_t transpose_a, transpose_b;
  int64_t products, m, n, k;
  int64_t tile_m, tile_n, tiles_m, tiles_n;
  int64_t parts, depth; /* a long k, of a single product, is summed in parts, which then are joined */
  int64_t chunks, scratch_bytes; /* scratch of one chunk */
  int64_t joins, parts_bytes; /* chunks of the joining, and what it joins; 0 where there is nothing to join */
  int32_t wants;
} tn_gemm_cut;

enum {
  TN_GEMM_ENDED = 1, /* something becomes of the sums, so they are not made in parts */
  TN_GEMM_SUMMED = 2 /* the sums of A's rows, too, which `gathered` makes on its way */
};
void tn_gemm_cut_make(tn_gemm_cut *cut, int32_t dtype, int32_t transpose_a, int32_t transpose_b,
                      int64_t products, int64_t m, int64_t n, int64_t k, int32_t wants);
/* The chunks' scratch, and the parts behind it. */
static inline int64_t tn_gemm_cut_workspace(const tn_gemm_cut *cut) {
  return cut->chunks * cut->scratch_bytes + cut->parts_bytes;
}
/* Estimated seconds on so many threads. */
double tn_gemm_cut_cost_s(const tn_gemm_cut *cut, int32_t threads);

/* The matrices of one product, in elements of the cut's dtype. */
typedef struct tn_gemm_matrices {
  const void *a, *b, *bias, *gate; /* bias and gate may be NULL */
  void *c, *kept;                  /* kept may be NULL */
} tn_gemm_matrices;

/* Rows m0 .., columns n0 .. and k from k0 on of a product. `parts`: the workspace behind the scratch. */
typedef struct tn_gemm_range {
  int64_t part, m0, m, n0, n, k0, k;
} tn_gemm_range;
/* `scratch`: the cut's scratch_bytes, aligned to 64. */
void tn_gemm_cut_run(const tn_gemm_cut *cut, const tn_gemm_loops *loops, const tn_gemm_matrices *matrices,
                     const tn_gemm_end *end, const tn_gemm_range *range, void *scratch, float *parts);
/* Joins the rows of chunk 0 .. joins - 1 of c, and of the sums of A's rows where they are wanted. */
void tn_gemm_cut_join(const tn_gemm_cut *cut, const tn_gemm_loops *loops, float *parts, int64_t chunk,
                      void *c, void *sums);

/* The product and the range of an item: 0 .. products * parts * tiles_m * tiles_n - 1. */
int64_t tn_gemm_cut_item(const tn_gemm_cut *cut, int64_t item, tn_gemm_range *range);
/* The items of a chunk: the first, and how many. */
int64_t tn_gemm_cut_chunk(const tn_gemm_cut *cut, int64_t chunk, int64_t *count);

#endif
