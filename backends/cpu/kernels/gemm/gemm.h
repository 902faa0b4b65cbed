/* backends/cpu/kernels/gemm/gemm.h: C = A B for matrices that lie anywhere: strided, transposed, in half
 * precision, or hidden in images (convolutions).
 *
 * The scheme is that of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication",
 * ACM TOMS 34(3), 2008: blocks of A and B are copied ("packed") into panels in the order in which a
 * small kernel, whose piece of C stays in registers, reads them. Packing converts every operand
 * (strides, type, padding of a convolution) to such panels, and storing converts the tile to the result's type
 * and strides; in between there is one plain product in f32, or f64 for f64.
 *
 * A convolution is a product whose one operand is gathered from images as it is packed, so the
 * matrix of patches ("im2col": Chellapilla, Puri, Simard, IWFHR 2006) never exists as a whole.
 *
 * Determinism: an element of C is summed over blocks of TN_GEMM_K in rising order, each block in
 * rising order; neither depends on tiles or threads. */
#ifndef TN_BACKENDS_CPU_KERNELS_GEMM_GEMM_H
#define TN_BACKENDS_CPU_KERNELS_GEMM_GEMM_H

#include "tenon/attributes.h"
#include "tenon/plugin/kernel.h"

enum {
  TN_GEMM_K = 256,       /* depth of a packed block */
  TN_GEMM_ALIGN = 32,    /* what panels' widths divide, for every instruction set */
  TN_GEMM_CHUNKS = 32,   /* at most so many chunks, each with scratch of its own */
  TN_GEMM_DIRECT_N = 256 /* the widest tile without packing */
};

/* Beside the dtypes there is a kind of product that is f32 but rounds its operands, as TF32 does. */
enum { TN_GEMM_TF32 = TN_DTYPES, TN_GEMM_KINDS = TN_DTYPES + 1 };
static inline int32_t tn_gemm_kind(int32_t dtype, int32_t math) {
  return dtype == TN_F32 && math == TN_MATH_TF32 ? TN_GEMM_TF32 : dtype;
}
static inline int32_t tn_gemm_dtype(int32_t kind) { return kind == TN_GEMM_TF32 ? TN_F32 : kind; }

/* Pixel p of a grid: image p / (height * width), row and column in it; its place in a plane of
 * plane_height x plane_width is (row * step_y, column * step_x), shifted by a tap where there is
 * one. Only the tap's shift leaves a plane: elements outside read as zero. */
typedef struct tn_gemm_grid {
  int64_t height, width;
  int64_t step_y, step_x;
  int64_t plane_height, plane_width;
  int64_t image_step; /* elements from one image to the next */
} tn_gemm_grid;

/* Shift of a filter's element: in rows, in columns, and in elements of what it is applied to. */
typedef struct tn_gemm_tap {
  int64_t y, x, offset;
} tn_gemm_tap;

/* An operand, as rows of elements. Rows run along k (`along_k`), else along the operand's own index
 * (m for A, n for B), and are numbered by the other of the two. Row r, element x lies at
 *
 *     data[(r / n_taps) * row_step + taps[r % n_taps].offset + place of x]
 *
 * where the place of x is x * step, or that of pixel x if there is a grid. */
typedef struct tn_gemm_source {
  const void *data;
  int64_t row_step, step;
  int64_t n_taps;          /* 0 counts as 1, with offset 0 */
  const tn_gemm_tap *taps; /* may be NULL where n_taps <= 1 */
  const tn_gemm_grid *grid;
  int32_t along_k;
} tn_gemm_source;

/* Where C goes: element (i, j) to data[i * row_step + place of j]. */
typedef struct tn_gemm_result {
  void *data;
  int64_t row_step, step;
  const tn_gemm_grid *grid;
  const void *bias;       /* of the operands' type; NULL: none */
  int64_t bias_i, bias_j; /* steps of the bias: 0 1 an element per column, 1 0 one per row */
  int32_t wide;           /* written in the type of the sums instead of the operands' */
} tn_gemm_result;

typedef struct tn_gemm {
  tn_gemm_source a, b;
  tn_gemm_result c;
  const void *packed_a; /* all of A as tn_gemm_isa.pack left it, or NULL */
  int64_t m;            /* rows of all of A, for packed_a */
} tn_gemm;

/* A piece of a product: rows m0 .. m0+m-1 and so on. m0 is a multiple of TN_GEMM_ALIGN. */
typedef struct tn_gemm_range {
  int64_t m0, m, n0, n, k0, k;
} tn_gemm_range;

/* The same code built for one instruction set. Functions by kind; NULL for dtypes that are not floats. */
typedef struct tn_gemm_isa {
  const char *name;
  /* Computes a piece with packing; scratch: tn_gemm_plan.scratch_bytes. */
  void (*tile[TN_GEMM_KINDS])(const tn_gemm *g, const tn_gemm_range *range, void *scratch);
  /* The same without packing, for small products: sources without grid and taps, n <= TN_GEMM_DIRECT_N. */
  void (*direct[TN_GEMM_KINDS])(const tn_gemm *g, const tn_gemm_range *range, void *scratch);
  /* Packs the k-block that starts at k0 (a multiple of TN_GEMM_K) of an A with m rows into its
   * place in `packed`, which holds tn_gemm_packed_bytes. */
  void (*pack[TN_GEMM_KINDS])(const tn_gemm_source *a, int64_t m, int64_t k0, int64_t k, void *packed);
} tn_gemm_isa;

/* Instruction sets built in and usable on this processor, best first; NULL past the last. */
const tn_gemm_isa *tn_gemm_isa_at(int32_t index);

/* Fails with TN_EUNSUPPORTED unless products of this dtype exist. */
tn_status tn_gemm_check_dtype(tn_query *q, int32_t dtype);

int64_t tn_gemm_packed_bytes(int32_t kind, int64_t m, int64_t k);
/* Bytes of an element of the sums. */
int64_t tn_gemm_wide_bytes(int32_t kind);

/* How `products` products of one shape are cut into tiles, and those into chunks. A pure function of
 * the shape, so that query (which sizes the workspace) and prepare agree. */
typedef struct tn_gemm_plan {
  int32_t kind, direct;
  int64_t products, m, n, k;
  int64_t tile_m, tile_n, tile_k; /* tile_k < k: partial sums, `splits` of them */
  int64_t tiles_m, tiles_n, splits;
  int64_t chunks, scratch_bytes; /* scratch of one chunk */
} tn_gemm_plan;

enum {
  TN_GEMM_PACKED = 1, /* A is packed beforehand */
  TN_GEMM_SPLIT = 2,  /* k may be split, since the caller adds up partial sums */
  TN_GEMM_PLAIN = 4   /* no grid and no taps, so a small product may go without packing */
};
void tn_gemm_plan_make(tn_gemm_plan *plan, int32_t kind, int64_t products, int64_t m, int64_t n, int64_t k,
                       int32_t flags);
/* Estimated seconds. */
double tn_gemm_cost_s(const tn_gemm_plan *plan);
static inline int64_t tn_gemm_workspace(const tn_gemm_plan *plan) {
  return plan->chunks * plan->scratch_bytes;
}

/* Runs all products of a plan on the launch's team. `describe` fills *g (zeroed before) for one
 * product and one split; it runs on the team, often. scratch: tn_gemm_workspace(plan) bytes. */
typedef void (*tn_gemm_describe)(const void *arg, int64_t product, int64_t split, tn_gemm *g);
void tn_gemm_run(tn_launch *launch, const tn_gemm_isa *isa, const tn_gemm_plan *plan,
                 tn_gemm_describe describe, const void *arg, void *scratch);

/* ---- for isa.c: grid.c and small arithmetic --------------------------------------------------------------
 */

/* Part of a span of pixels that lies in one row of the grid. */
typedef struct tn_gemm_segment {
  int64_t offset, y, x; /* place of its first pixel */
  int64_t at, n;        /* first pixel within the span, and how many */
} tn_gemm_segment;

/* Cuts pixels p .. p+n-1 into runs (at most n, and at most n / width + 2); returns how many. */
int64_t tn_gemm_runs(const tn_gemm_grid *grid, int64_t p, int64_t n, tn_gemm_segment *runs);

static inline int64_t tn_gemm_round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
static inline int64_t tn_gemm_min(int64_t a, int64_t b) { return a < b ? a : b; }

#endif
