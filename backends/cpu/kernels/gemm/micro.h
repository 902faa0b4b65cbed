/* backends/cpu/kernels/gemm/micro.h: the innermost loops of a product, for one type of sums. isa.c
 * includes this file once for f32 and once for f64, with
 *
 *     WIDE   the type of the sums       MICRO(name)   name of a function for that type
 *
 * VECTOR_BYTES and PANEL_M describe the instruction set. */

/* A row of C in the micro-kernel is two vectors. */
#define PANEL_N (2 * VECTOR_BYTES / (int64_t)sizeof(WIDE))
#define LANES   (VECTOR_BYTES / (int64_t)sizeof(WIDE))

typedef WIDE MICRO(vector) __attribute__((vector_size(VECTOR_BYTES)));

/* C += A B for a panel of A (k lines of PANEL_M) and a panel of B (k lines of PANEL_N). The sums of this
 * block are computed separately and added to C once. The rounding error is smaller than that of one long sum
 * (Higham, "The accuracy of floating point summation", SIAM J. Sci. Comput. 14, 1993). */
static void MICRO(panel)(int64_t k, const WIDE *restrict a, const WIDE *restrict b, WIDE *restrict c,
                         int64_t ldc) {
  MICRO(vector) sum[PANEL_M][2] = {{{0}}};
  for (int64_t p = 0; p < k; p++, a += PANEL_M, b += PANEL_N) {
    MICRO(vector) b0, b1;
    memcpy(&b0, b, sizeof b0);
    memcpy(&b1, b + LANES, sizeof b1);
#pragma GCC unroll 8
    for (int i = 0; i < PANEL_M; i++) {
      sum[i][0] += a[i] * b0;
      sum[i][1] += a[i] * b1;
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < PANEL_M; i++, c += ldc) {
    MICRO(vector) c0, c1;
    memcpy(&c0, c, sizeof c0);
    memcpy(&c1, c + LANES, sizeof c1);
    c0 += sum[i][0];
    c1 += sum[i][1];
    memcpy(c, &c0, sizeof c0);
    memcpy(c + LANES, &c1, sizeof c1);
  }
}

/* All panels of a block. A panel of B stays in the first-level cache for all panels of A. */
static void MICRO(block)(int64_t m, int64_t n, int64_t k, const WIDE *a, const WIDE *b, WIDE *c) {
  for (int64_t j = 0; j < n; j += PANEL_N)
    for (int64_t i = 0; i < m; i += PANEL_M) MICRO(panel)(k, a + i * k, b + j * k, c + i * n + j, n);
}

/* Transposes `width` rows of k elements to k lines of `width`, a multiple of 4. Each pass reads four rows, so
 * that the compiler can vectorize the loads and stores. */
static void MICRO(transpose)(const WIDE *restrict rows, int64_t width, int64_t k, WIDE *restrict lines) {
  for (int64_t i = 0; i < width; i += 4) {
    const WIDE *r0 = rows + i * k, *r1 = r0 + k, *r2 = r1 + k, *r3 = r2 + k;
    WIDE *to = lines + i;
    for (int64_t p = 0; p < k; p++, to += width) {
      to[0] = r0[p];
      to[1] = r1[p];
      to[2] = r2[p];
      to[3] = r3[p];
    }
  }
}

#undef PANEL_N
#undef LANES
