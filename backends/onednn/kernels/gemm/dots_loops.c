/* backends/onednn/kernels/gemm/dots_loops.c: products whose rows of A and columns of B run along k, as sums
 * over the lanes of vectors along k. */
#include "backends/onednn/kernels/gemm/epilogue.h"
#include "backends/onednn/kernels/gemm/strip.h"

/* The lanes of the first and the second halves of blocks of s lanes of two vectors. */
#define DOTS_LOW(l, s)  ((l) / ((s) / 2) * (s) + (l) % ((s) / 2))
#define DOTS_HIGH(l, s) (DOTS_LOW(l, s) + (s) / 2)

/* Adds the second half of each block of lanes to the first, and packs two vectors into one while there are
 * several. Returns the number of vectors that are left. */
V_INLINE int dots_halve(vf *v, int n, const vi low, const vi high) {
  int half = n > 1 ? n / 2 : 1;
#pragma GCC unroll 8
  for (int i = 0; i < half; i++) {
    vf x = v[2 * i], y = n > 1 ? v[2 * i + 1] : x;
    v[i] = __builtin_shuffle(x, y, low) + __builtin_shuffle(x, y, high);
  }
  return half;
}

/* The sums over the lanes of n vectors, n a power of two, in order; the lanes behind them repeat them. */
V_INLINE void dots_sum_lanes(vf *v, int n) {
#if V_BYTES == 64
  n = dots_halve(v, n, V_CONSTANT(DOTS_LOW, 16), V_CONSTANT(DOTS_HIGH, 16));
#endif
#if V_BYTES >= 32
  n = dots_halve(v, n, V_CONSTANT(DOTS_LOW, 8), V_CONSTANT(DOTS_HIGH, 8));
#endif
  n = dots_halve(v, n, V_CONSTANT(DOTS_LOW, 4), V_CONSTANT(DOTS_HIGH, 4));
  dots_halve(v, n, V_CONSTANT(DOTS_LOW, 2), V_CONSTANT(DOTS_HIGH, 2));
}

enum { DOTS = 4 };

V_INLINE void dots_step(const float *const *a, const float *const *b, int64_t p, int64_t lanes, vf *sum,
                        const int m, const int n, const int full) {
  vf y[DOTS];
#pragma GCC unroll 4
  for (int j = 0; j < n; j++) y[j] = full ? v_load(b[j] + p) : v_load_part(b[j] + p, lanes);
#pragma GCC unroll 4
  for (int i = 0; i < m; i++) {
    vf x = full ? v_load(a[i] + p) : v_load_part(a[i] + p, lanes);
#pragma GCC unroll 4
    for (int j = 0; j < n; j++) sum[i * n + j] += x * y[j];
  }
}

V_INLINE void dots_tile(const tn_sgemm *g, int64_t row, int64_t column, const int m, const int n) {
  vf sum[DOTS * DOTS];
  const float *a[DOTS], *b[DOTS];
  float *c = g->c + row * g->c_i + column;
  int64_t p = 0;
#pragma GCC unroll 16
  for (int i = 0; i < m * n; i++) sum[i] = (vf){0};
#pragma GCC unroll 4
  for (int i = 0; i < m; i++) a[i] = g->a + (row + i) * g->a_i;
#pragma GCC unroll 4
  for (int j = 0; j < n; j++) b[j] = g->b + (column + j) * g->b_j;
  for (; p + V_LANES <= g->k; p += V_LANES) dots_step(a, b, p, V_LANES, sum, m, n, 1);
  if (p < g->k) dots_step(a, b, p, g->k - p, sum, m, n, 0);
  dots_sum_lanes(sum, m * n);
#pragma GCC unroll 4
  for (int i = 0; i < m; i++) memcpy(c + i * g->c_i, (const float *)sum + i * n, (size_t)n * sizeof(float));
}

#define DOTS_TILE(m, n)                                                                                      \
  static void dots_##m##_##n(const tn_sgemm *g, int64_t i, int64_t j) { dots_tile(g, i, j, m, n); }
DOTS_TILE(1, 1)
DOTS_TILE(1, 2)
DOTS_TILE(1, 4)
DOTS_TILE(2, 1)
DOTS_TILE(2, 2)
DOTS_TILE(2, 4)
DOTS_TILE(4, 1)
DOTS_TILE(4, 2)
DOTS_TILE(4, 4)
/* by the powers of two of rows and columns */
static void (*const dots_tiles[3][3])(const tn_sgemm *g, int64_t i, int64_t j) = {
    {dots_1_1, dots_1_2, dots_1_4}, {dots_2_1, dots_2_2, dots_2_4}, {dots_4_1, dots_4_2, dots_4_4}};

static int dots_power(int64_t n) { return n >= 4 ? 2 : n >= 2 ? 1 : 0; }

static void dots_apply_epilogue(const tn_sgemm *g) {
  if (g->epilogue.bias == NULL && g->epilogue.op == TN_EPILOGUE_NONE) return;
  for (int64_t i = 0; i < g->m; i++)
    for (int64_t j = 0; j < g->n; j += V_LANES) {
      int64_t at = i * g->c_i + j, lanes = least(V_LANES, g->n - j);
      v_store_upto(g->c + at, gemm_apply_epilogue(&g->epilogue, v_load_upto(g->c + at, lanes), at, j, lanes),
                   lanes);
    }
  if (g->epilogue.op >= TN_EPILOGUE_GELU) gemm_apply_gelu(g, 0, g->m, 0, g->n);
}

void TN_LOOP(tn_gemm_dots)(const tn_sgemm *g) {
  for (int64_t j = 0; j < g->n; j += 1 << dots_power(g->n - j))
    for (int64_t i = 0; i < g->m; i += 1 << dots_power(g->m - i))
      dots_tiles[dots_power(g->m - i)][dots_power(g->n - j)](g, i, j);
  dots_apply_epilogue(g);
}
