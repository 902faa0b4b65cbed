/* backends/onednn/kernels/gemm/loops.h: C = A B in f32 for small and medium matrices, mostly without
 * rearranging the operands: a copy that makes a large product faster costs a small one as much as the product
 * itself.
 *
 * A tile of C stays in registers while k passes by (Goto and van de Geijn, "Anatomy of high-performance
 * matrix multiplication", ACM TOMS 34(3), 2008). There are five methods:
 *
 *     straight   rows of B are read in place, as vectors
 *     dots       rows of A and columns of B run along k, so vectors run along k, too, and their lanes are
 *                summed at the end of a tile
 *     packed     as `straight`, with B copied, or transposed, into panels first; pays with many rows
 *     gathered   as `packed`, with the rows of a transposed A gathered, too, so that a tile reads one stream
 *                of each operand, and memory is read from front to end
 *     folded     as `packed`, with all panels of B made once, where B does not change from launch to launch
 *
 * The order in which an element of C is summed depends on the shapes alone, so its bits do not depend on the
 * number of threads. */
#pragma once

#include "backends/onednn/simd/loops.h"

/* The epilogue: applied to each element y of the product, after the bias. */
enum {
  TN_EPILOGUE_NONE = 0,
  TN_EPILOGUE_RELU = 1,      /* max(y, 0) */
  TN_EPILOGUE_RELU_GRAD = 2, /* where(operand > 0, y, 0) */
  TN_EPILOGUE_ADD = 3,       /* y + operand */
  TN_EPILOGUE_GELU = 4,
  TN_EPILOGUE_GELU_GRAD = 5 /* y times the derivative of GELU at operand */
};
typedef struct tn_gemm_epilogue {
  const float *bias;    /* per column, or NULL */
  int32_t op;           /* TN_EPILOGUE_... */
  int32_t approximate;  /* GELU: 1 by tanh, 0 exact */
  const float *operand; /* laid out as C */
  float *preactivation; /* laid out as C: gets the operand of GELU, unless NULL */
} tn_gemm_epilogue;

/* Element (i, p) of A is a[i * a_i + p * a_k], (p, j) of B is b[p * b_k + j * b_j], (i, j) of C is
 * c[i * c_i + j]. */
typedef struct tn_sgemm {
  int64_t m, n, k;
  const float *a, *b;
  int64_t a_i, a_k, b_k, b_j;
  float *c;
  int64_t c_i;
  tn_gemm_epilogue epilogue;
  float *row_sums; /* of `gathered`: gets the sums of A's rows, unless NULL */
  int32_t adds; /* 1: C has sums over an earlier range of k, to which the product is added; not of `dots` */
} tn_sgemm;

enum {
  TN_GEMM_DEPTH = 320,               /* k of a panel, at most */
  TN_GEMM_WIDTH = 48,                /* columns of a panel, or of several, on every instruction set */
  TN_GEMM_ROWS = 8,                  /* of a tile, at most */
  TN_GEMM_GATHER_ELEMENTS = 1 << 16, /* elements of each operand that stay in the second-level cache */
  TN_GEMM_GAP = 16 /* floats between the rows of two tiles, which would share cache sets without it */
};

/* The range of k that `gathered` packs at a time, for m rows and n columns, and the floats that it takes. */
static inline int64_t tn_gemm_gathered_depth(int64_t m, int64_t n) {
  int64_t depth = TN_GEMM_GATHER_ELEMENTS / (m > n ? m : n);
  return depth < 64 ? 64 : depth < TN_GEMM_DEPTH ? depth : TN_GEMM_DEPTH;
}
static inline int64_t tn_gemm_gathered_floats(int64_t m, int64_t n) {
  int64_t depth = tn_gemm_gathered_depth(m, n);
  return depth * (n + TN_GEMM_WIDTH) + (depth + TN_GEMM_GAP) * (m + TN_GEMM_ROWS);
}

/* The floats of all panels of a B of k x n. Those of column j on, a multiple of TN_GEMM_WIDTH, begin at j *
 * k. */
static inline int64_t tn_gemm_folded_floats(int64_t n, int64_t k) {
  return (n + TN_GEMM_WIDTH - 1) / TN_GEMM_WIDTH * TN_GEMM_WIDTH * k;
}

typedef struct tn_gemm_loops {
  int32_t lanes;
  void (*straight)(const tn_sgemm *g); /* b_j is 1 */
  void (*dots)(const tn_sgemm *g);     /* a_k and b_k are 1 */
  /* b_j or b_k is 1; panel: TN_GEMM_DEPTH * TN_GEMM_WIDTH floats, aligned to 64. */
  void (*packed)(const tn_sgemm *g, float *panel);
  /* As `packed`, and a_i is 1; scratch: tn_gemm_gathered_floats(m, n) floats, aligned to 64. */
  void (*gathered)(const tn_sgemm *g, float *scratch);
  /* Makes the panels of B, of which b_j or b_k is 1: tn_gemm_folded_floats(n, k) floats, aligned to 64. */
  void (*fold)(const tn_sgemm *g, float *panels);
  void (*folded)(const tn_sgemm *g, const float *panels); /* B itself is not read */
  /* n elements of bf16 to f32, and back. */
  void (*widen)(const uint16_t *from, float *to, int64_t n);
  void (*narrow)(const float *from, uint16_t *to, int64_t n);
  /* n sums over `rows` rows, which are `step` elements apart. */
  void (*sum_rows)(const void *from, int64_t step, int64_t rows, int64_t n, void *to);
  void (*sum_rows_bf16)(const void *from, int64_t step, int64_t rows, int64_t n, void *to);
  /* n sums over `parts` runs of floats, which are `step` apart; `to` may be the first run. */
  void (*add_parts)(const float *first, int64_t parts, int64_t step, int64_t n, float *to);
} tn_gemm_loops;
TN_LOOPS_DECLARE(tn_gemm_loops, tn_loops_gemm);
