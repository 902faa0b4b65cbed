/* backends/onednn/kernels/gemm/strip.h: strips of columns, which panels_loops.c walks over and tiles_loops.c
 * computes, and the functions of the table of loops that other files define. */
#pragma once

#include "backends/onednn/kernels/gemm/loops.h"
#include "backends/onednn/simd/vector.h"

/* The rows and the vectors of columns of a tile. 24 of 32 registers hold sums, or 12 of 16; the others hold a
 * line of B and an element of A. */
#if defined(__AVX512F__)
enum { TN_GEMM_TILE_ROWS = 8, TN_GEMM_TILE_VECTORS = 3 };
#elif defined(__AVX2__)
enum { TN_GEMM_TILE_ROWS = 4, TN_GEMM_TILE_VECTORS = 3 };
#else
enum { TN_GEMM_TILE_ROWS = 4, TN_GEMM_TILE_VECTORS = 2 };
#endif
enum { TN_GEMM_TILE_COLUMNS = TN_GEMM_TILE_VECTORS * V_LANES };

/* Memory that later tiles read, with lines `step` floats apart. Each tile prefetches a square of it: as many
 * lines as the tile has rows, as many columns as it has k. */
typedef struct tn_gemm_prefetch {
  const float *at;
  int64_t step, across, squares; /* squares of a line, and of all lines */
} tn_gemm_prefetch;

/* Some columns of B, and a range of k. */
typedef struct tn_gemm_strip {
  const float *a, *b; /* line k0: the first row of A, and the first column of B */
  int64_t a_k, b_k;
  int64_t rows, a_step; /* of a tile, and the distance in A from one tile to the next */
  int64_t j, n;         /* columns */
  int64_t k0, k;
  int64_t lanes;                /* of the last vector of B, where it is read in part */
  int64_t stored;               /* lanes of the last vector of sums */
  tn_gemm_prefetch prefetch[2]; /* the second one after the first */
  int64_t fetched;              /* squares that earlier strips fetched */
} tn_gemm_strip;

/* Computes tile `index` of a strip. */
typedef void (*tn_gemm_tile)(const tn_sgemm *g, const tn_gemm_strip *s, int64_t index);
/* By whether the last vector of B is read in part, by the number of vectors, and by the number of rows. */
typedef struct tn_gemm_tiles {
  tn_gemm_tile by[2][TN_GEMM_TILE_VECTORS][TN_GEMM_TILE_ROWS];
} tn_gemm_tiles;
extern const tn_gemm_tiles TN_LOOP(tn_gemm_tiles);

/* dots_loops.c */
void TN_LOOP(tn_gemm_dots)(const tn_sgemm *g);

/* rows_loops.c */
void TN_LOOP(tn_gemm_widen)(const uint16_t *from, float *to, int64_t n);
void TN_LOOP(tn_gemm_narrow)(const float *from, uint16_t *to, int64_t n);
void TN_LOOP(tn_gemm_sum_rows)(const void *from, int64_t step, int64_t rows, int64_t n, void *to);
void TN_LOOP(tn_gemm_sum_rows_bf16)(const void *from, int64_t step, int64_t rows, int64_t n, void *to);
void TN_LOOP(tn_gemm_add_parts)(const float *first, int64_t parts, int64_t step, int64_t n, float *to);
