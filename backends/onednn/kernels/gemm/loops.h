/* backends/onednn/kernels/gemm/loops.h: C = A B in f32 for small and medium matrices, which lie as they lie:
 * what a library gains by rearranging operands, a small product loses again.
 *
 * A tile of C stays in registers while k passes by (Goto and van de Geijn, "Anatomy of high-performance
 * matrix multiplication", ACM TOMS 34(3), 2008). Four ways lead there:
 *
 *     straight   rows of B are vectors as they lie
 *     dots       rows of A and columns of B run along k, so vectors run along k, too, and are summed up at
 *                the end of a tile
 *     packed     as `straight`, with B copied, or transposed, into panels first; pays with many rows
 *     gathered   as `packed`, with the rows of a transposed A gathered, too, so that a tile reads one stream
 *                of each, and memory is read from front to end
 *
 * An element of C is summed in an order that the shapes alone decide, so its bits do not depend on threads.
 */
#ifndef TN_BACKENDS_ONEDNN_KERNELS_GEMM_LOOPS_H
#define TN_BACKENDS_ONEDNN_KERNELS_GEMM_LOOPS_H

#include "backends/onednn/simd/loops.h"

/* What becomes of a sum before it leaves, after the bias. */
enum {
  TN_END_NONE = 0,
  TN_END_MAX = 1,  /* max(y, limit): rectified */
  TN_END_GATE = 2, /* where(gate > limit, y, other): the gradient of that */
  TN_END_ADD = 3,  /* y + gate */
  TN_END_GELU = 4,
  TN_END_GELU_GRAD = 5 /* y times the slope of GELU at gate */
};
typedef struct tn_gemm_end {
  const float *bias; /* per column; NULL: none */
  int32_t what;
  int32_t approximate; /* GELU: 1 by tanh, 0 exact */
  float limit, other;
  const float *gate; /* lies as C does */
  float *kept;       /* as C; NULL, or gets what GELU is taken of */
} tn_gemm_end;

/* Element (i, p) of A lies at a[i * a_i + p * a_k], (p, j) of B at b[p * b_k + j * b_j], (i, j) of C at
 * c[i * c_i + j]. */
typedef struct tn_sgemm {
  int64_t m, n, k;
  const float *a, *b;
  int64_t a_i, a_k, b_k, b_j;
  float *c;
  int64_t c_i;
  tn_gemm_end end;
  float *row_sums; /* of `gathered`: NULL, or gets the sums of A's rows */
} tn_sgemm;

enum {
  TN_GEMM_DEPTH = 320, /* k of a panel, at most */
  TN_GEMM_WIDTH = 48,  /* columns of a panel, or of several, whatever the instruction set */
  TN_GEMM_ROWS = 8,    /* of a tile, at most */
  TN_GEMM_GATHERED =
      1 << 16,     /* elements of an operand that stay in the second-level cache beside the other's */
  TN_GEMM_GAP = 16 /* between the rows of two tiles: written side by side, they must not meet in the cache */
};

/* k of what `gathered` packs at a time, for m rows and n columns, and the floats it needs for that. */
static inline int64_t tn_gemm_gathered_depth(int64_t m, int64_t n) {
  int64_t depth = TN_GEMM_GATHERED / (m > n ? m : n);
  return depth < 64 ? 64 : depth < TN_GEMM_DEPTH ? depth : TN_GEMM_DEPTH;
}
static inline int64_t tn_gemm_gathered_floats(int64_t m, int64_t n) {
  int64_t depth = tn_gemm_gathered_depth(m, n);
  return depth * (n + TN_GEMM_WIDTH) + (depth + TN_GEMM_GAP) * (m + TN_GEMM_ROWS);
}

typedef struct tn_gemm_loops {
  int32_t lanes;
  void (*straight)(const tn_sgemm *g); /* b_j is 1 */
  void (*dots)(const tn_sgemm *g);     /* a_k and b_k are 1 */
  /* b_j or b_k is 1; panel: TN_GEMM_DEPTH * TN_GEMM_WIDTH floats, aligned to 64. */
  void (*packed)(const tn_sgemm *g, float *panel);
  /* As `packed`, and a_i is 1; scratch: tn_gemm_gathered_floats(m, n) floats, aligned to 64. */
  void (*gathered)(const tn_sgemm *g, float *scratch);
  /* n elements of bf16 to f32 and back */
  void (*widen)(const uint16_t *from, float *to, int64_t n);
  void (*narrow)(const float *from, uint16_t *to, int64_t n);
  /* The sums of `rows` rows of n neighbours that lie `step` elements apart: n of them. */
  void (*sum_rows)(const void *from, int64_t step, int64_t rows, int64_t n, void *to);
  void (*sum_rows_bf16)(const void *from, int64_t step, int64_t rows, int64_t n, void *to);
  /* The sums of `parts` lots of n floats that lie `step` apart; `to` may be the first of them. */
  void (*add_parts)(const float *first, int64_t parts, int64_t step, int64_t n, float *to);
} tn_gemm_loops;
TN_LOOPS_DECLARE(tn_gemm_loops, tn_loops_gemm);

#endif
