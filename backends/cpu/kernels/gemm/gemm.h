/* backends/cpu/kernels/gemm/gemm.h: C = A B for operands that are strided, transposed, in half precision, or
 * gathered from images (convolutions).
 *
 * The algorithm is that of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", ACM
 * TOMS 34(3), 2008. Blocks of A and B are packed: copied into panels in the order in which the micro-kernel
 * reads them. The micro-kernel keeps its part of C in registers. Packing converts strides, types and the
 * padding of a convolution; storing converts a tile to the type and the strides of the result. The product
 * between them is computed in f32, for f64 in f64.
 *
 * A convolution is a product with one operand that is gathered from images while it is packed, so the full
 * matrix of patches ("im2col": Chellapilla, Puri, Simard, IWFHR 2006) is never stored.
 *
 * Determinism: an element of C is the sum over blocks of TN_GEMM_K in ascending order, each block summed in
 * ascending order. Neither order depends on tiles or threads. */
#pragma once

#include "backends/shared/integer_math.h"
#include "tenon/attributes.h"
#include "tenon/plugin/kernel.h"

enum {
  TN_GEMM_K = 256,       /* depth of a packed block */
  TN_GEMM_ALIGN = 32,    /* a multiple of the panels' widths of every instruction set */
  TN_GEMM_CHUNKS = 32,   /* the largest number of chunks; each has its own scratch */
  TN_GEMM_DIRECT_N = 256 /* the widest tile without packing */
};

/* A kind of product is a dtype, or TN_GEMM_TF32: f32 with operands rounded to TF32. */
enum { TN_GEMM_TF32 = TN_DTYPES, TN_GEMM_KINDS = TN_DTYPES + 1 };
static inline int32_t tn_gemm_kind(int32_t dtype, int32_t math) {
  return dtype == TN_F32 && math == TN_MATH_TF32 ? TN_GEMM_TF32 : dtype;
}
static inline int32_t tn_gemm_dtype(int32_t kind) { return kind == TN_GEMM_TF32 ? TN_F32 : kind; }

/* A grid of pixels. Pixel p belongs to image p / (height * width) and has a row and a column in it. Its
 * position in a plane of plane_height x plane_width is (row * step_y, column * step_x), shifted by the tap if
 * there is one. A shift may leave the plane; elements outside are zero. */
typedef struct tn_gemm_grid {
  int64_t height, width;
  int64_t step_y, step_x;
  int64_t plane_height, plane_width;
  int64_t image_step; /* elements from one image to the next */
} tn_gemm_grid;

/* The shift of an element of the filter: in rows, in columns, and in elements of the source. */
typedef struct tn_gemm_tap {
  int64_t y, x, offset;
} tn_gemm_tap;

/* An operand as rows of elements. With `along_k` a row runs along k and its number is the operand's own index
 * (m for A, n for B); without it the roles are exchanged. Element x of row r is
 *
 *     data[(r / n_taps) * row_step + taps[r % n_taps].offset + offset of x]
 *
 * The offset of x is x * step, or the offset of pixel x if there is a grid. */
typedef struct tn_gemm_source {
  const void *data;
  int64_t row_step, step;
  int64_t n_taps;          /* 0 counts as 1, with offset 0 */
  const tn_gemm_tap *taps; /* may be NULL where n_taps <= 1 */
  const tn_gemm_grid *grid;
  int32_t along_k;
} tn_gemm_source;

/* The result: element (i, j) is stored at data[i * row_step + offset of j]. */
typedef struct tn_gemm_result {
  void *data;
  int64_t row_step, step;
  const tn_gemm_grid *grid;
  const void *bias;       /* of the operands' type; NULL without a bias */
  int64_t bias_i, bias_j; /* steps of the bias: 0, 1 for an element per column; 1, 0 for one per row */
  int32_t wide;           /* stored in the type of the sums instead of the operands' type */
} tn_gemm_result;

typedef struct tn_gemm {
  tn_gemm_source a, b;
  tn_gemm_result c;
  const void *packed_a; /* all of A, packed by tn_gemm_isa.pack, or NULL */
  int64_t m;            /* rows of all of A, for packed_a */
} tn_gemm;

/* A part of a product: rows m0 .. m0+m-1, columns n0 .. n0+n-1, k0 .. k0+k-1. m0 is a multiple of
 * TN_GEMM_ALIGN. */
typedef struct tn_gemm_range {
  int64_t m0, m, n0, n, k0, k;
} tn_gemm_range;

/* The functions of one instruction set, by kind of product; NULL for dtypes that are not floats. */
typedef struct tn_gemm_isa {
  const char *name;
  /* Computes a part with packing; scratch has tn_gemm_tiling.scratch_bytes. */
  void (*tile[TN_GEMM_KINDS])(const tn_gemm *g, const tn_gemm_range *range, void *scratch);
  /* Computes a part without packing, for small products: no grid, no taps, n <= TN_GEMM_DIRECT_N. */
  void (*direct[TN_GEMM_KINDS])(const tn_gemm *g, const tn_gemm_range *range, void *scratch);
  /* Packs the block of A (m rows) that starts at k0, a multiple of TN_GEMM_K, into its part of `packed`,
   * which has tn_gemm_packed_bytes. */
  void (*pack[TN_GEMM_KINDS])(const tn_gemm_source *a, int64_t m, int64_t k0, int64_t k, void *packed);
} tn_gemm_isa;

/* Instruction set `index` of those that this processor supports, best first; NULL past the last. */
const tn_gemm_isa *tn_gemm_isa_at(int32_t index);

/* Fails with TN_EUNSUPPORTED unless the dtype is a float type. */
tn_status tn_gemm_check_dtype(tn_query *q, int32_t dtype);

int64_t tn_gemm_packed_bytes(int32_t kind, int64_t m, int64_t k);
/* Bytes of an element of the sums. */
int64_t tn_gemm_wide_bytes(int32_t kind);

/* The division of `products` products of one shape into tiles, and of the tiles into chunks. It is a function
 * of the shape alone, so query, which reports the workspace, and prepare compute the same tiling. */
typedef struct tn_gemm_tiling {
  int32_t kind, direct;
  int64_t products, m, n, k;
  int64_t tile_m, tile_n, tile_k; /* tile_k < k: `splits` partial sums */
  int64_t tiles_m, tiles_n, splits;
  int64_t chunks, scratch_bytes; /* scratch of one chunk */
} tn_gemm_tiling;

enum {
  TN_GEMM_PACKED = 1, /* A is packed beforehand */
  TN_GEMM_SPLIT = 2,  /* k may be split: the caller adds the partial sums */
  TN_GEMM_PLAIN = 4   /* no grid and no taps: a small product may run without packing */
};
void tn_gemm_tiling_make(tn_gemm_tiling *tiling, int32_t kind, int64_t products, int64_t m, int64_t n,
                         int64_t k, int32_t flags);
static inline int64_t tn_gemm_workspace(const tn_gemm_tiling *tiling) {
  return tiling->chunks * tiling->scratch_bytes;
}

/* Runs all products of a tiling on the launch's team. `describe` fills *g, which is zeroed, for one product
 * and one split; the threads of the team call it once per tile. scratch: tn_gemm_workspace(tiling) bytes. */
typedef void (*tn_gemm_describe)(const void *arg, int64_t product, int64_t split, tn_gemm *g);
void tn_gemm_run(tn_launch *launch, const tn_gemm_isa *isa, const tn_gemm_tiling *tiling,
                 tn_gemm_describe describe, const void *arg, void *scratch);

/* ---- for isa.c -------------------------------------------------------------------------------------- */

/* The part of a span of pixels inside one row of the grid. */
typedef struct tn_gemm_segment {
  int64_t offset, y, x; /* position of its first pixel */
  int64_t at, n;        /* index of the first pixel in the span, and number of pixels */
} tn_gemm_segment;

/* Divides pixels p .. p+n-1 into runs, at most min(n, n / width + 2); returns their number. */
int64_t tn_gemm_runs(const tn_gemm_grid *grid, int64_t p, int64_t n, tn_gemm_segment *runs);
