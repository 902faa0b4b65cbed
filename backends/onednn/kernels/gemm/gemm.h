/* backends/onednn/kernels/gemm/gemm.h: the partition of products into chunks for the
 * team, and their execution. */
#pragma once

#include <stdbool.h>

#include "backends/onednn/kernels/gemm/loops.h"

enum { TN_GEMM_STRAIGHT = 0, TN_GEMM_DOTS = 1, TN_GEMM_PACKED = 2, TN_GEMM_GATHERED = 3, TN_GEMM_FOLDED = 4 };

/* A partition depends on the shape alone, so that query, which sizes the workspace, and prepare agree, and so
 * that bits do not depend on the number of threads. */
typedef struct tn_gemm_partition {
  int32_t dtype, method; /* TN_F32 or TN_BF16; TN_GEMM_... */
  int32_t transpose_a, transpose_b;
  int64_t products, m, n, k;
  int64_t tile_m, tile_n, tiles_m, tiles_n;
  int64_t parts, depth;          /* a long k of a single product is summed in parts, which are added up */
  int64_t chunks, scratch_bytes; /* scratch of one chunk */
  int64_t joins, parts_bytes;    /* chunks of the addition of parts, and their bytes; or 0 */
  int32_t flags;                 /* below */
} tn_gemm_partition;

enum {
  TN_GEMM_EPILOGUE = 1, /* the sums have an epilogue, so k is not summed in parts */
  TN_GEMM_ROW_SUMS = 2, /* the sums of A's rows are wanted, which `gathered` computes on its way */
  TN_GEMM_WIDE = 4,     /* the results of a product in bf16 are f32 */
  TN_GEMM_CONSTANT = 8  /* B is the same in all launches, so its panels may be made once */
};
void tn_gemm_partition_make(tn_gemm_partition *partition, int32_t dtype, int32_t transpose_a,
                            int32_t transpose_b, int64_t products, int64_t m, int64_t n, int64_t k,
                            int32_t flags);
/* The scratch of all chunks, and the parts behind it. */
static inline int64_t tn_gemm_workspace_bytes(const tn_gemm_partition *partition) {
  return partition->chunks * partition->scratch_bytes + partition->parts_bytes;
}
/* The panels of all products of method TN_GEMM_FOLDED, one after the other; 0 for the other methods. */
int64_t tn_gemm_folded_bytes(const tn_gemm_partition *partition);
static inline float *tn_gemm_panels_of(const tn_gemm_partition *c, void *folded, int64_t product) {
  return (float *)folded + product * tn_gemm_folded_floats(c->n, c->k);
}
/* Makes the panels of tile 0 .. products * tiles_n - 1 of columns. b: of the tile's product; panels: of all.
 */
void tn_gemm_fold_tile(const tn_gemm_partition *partition, const tn_gemm_loops *loops, const float *b,
                       int64_t tile, float *panels);
/* Estimated seconds on so many threads. */
double tn_gemm_partition_cost_s(const tn_gemm_partition *partition, const tn_device_properties *device);

/* Whether a chunk has room for its operands as f32. alone: the sums have no epilogue and no bias, so that a
 * long k can go range by range. */
bool tn_gemm_fits(const tn_gemm_partition *partition, bool alone);

/* The matrices of one product, in elements of the dtype of the partition; c is f32 with TN_GEMM_WIDE. */
typedef struct tn_gemm_matrices {
  const void *a, *b, *bias, *operand; /* b: with TN_GEMM_FOLDED the panels of this product; operand: the
                                         epilogue's; bias and operand may be NULL */
  void *c, *preactivation;            /* preactivation may be NULL */
} tn_gemm_matrices;

/* Rows m0 .., columns n0 .. and k0 .. of a product. */
typedef struct tn_gemm_extent {
  int64_t part, m0, m, n0, n, k0, k;
} tn_gemm_extent;
/* scratch: scratch_bytes, aligned to 64. parts: the workspace behind the scratch of all chunks. */
void tn_gemm_run_range(const tn_gemm_partition *partition, const tn_gemm_loops *loops,
                       const tn_gemm_matrices *matrices, const tn_gemm_epilogue *epilogue,
                       const tn_gemm_extent *range, void *scratch, float *parts);
/* Adds up the parts of the rows of chunk 0 .. joins - 1 of c, and of the sums of A's rows with
 * TN_GEMM_ROW_SUMS. */
void tn_gemm_join_chunk(const tn_gemm_partition *partition, const tn_gemm_loops *loops, float *parts,
                        int64_t chunk, void *c, void *sums);

/* The product and the range of an item: 0 .. products * parts * tiles_m * tiles_n - 1. */
int64_t tn_gemm_item_range(const tn_gemm_partition *partition, int64_t item, tn_gemm_extent *range);
/* The items of a chunk: the first, and how many. */
int64_t tn_gemm_chunk_items(const tn_gemm_partition *partition, int64_t chunk, int64_t *count);
