/* tests/fakecuda/cudnn/product.c: see product.h. */
#include "tests/fakecuda/cudnn/product.h"
#include "backends/cpu/kernels/common/clones.h"

enum { ROWS = 4, BLOCK = 256 };
typedef float lanes __attribute__((vector_size(FAKEDNN_LANES * sizeof(float)), aligned(4)));

static inline __attribute__((always_inline)) void add_tile(const fakednn_product *p,
                                                           const float *const a[ROWS], const float *b,
                                                           int64_t length, lanes sum[ROWS]) {
  lanes s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
  for (int64_t k = 0; k < length; k++) {
    const lanes row = *(const lanes *)(b + k * p->b_row);
    s0 += a[0][k * p->a_step] * row;
    s1 += a[1][k * p->a_step] * row;
    s2 += a[2][k * p->a_step] * row;
    s3 += a[3][k * p->a_step] * row;
  }
  sum[0] = s0, sum[1] = s1, sum[2] = s2, sum[3] = s3;
}

/* Rows of A and a block of k. A row beyond the last is the last again; its sums are not kept. */
TN_CPU_CLONES static void add_rows(const fakednn_product *p, int64_t i, int64_t first, int64_t length) {
  const float *a[ROWS];
  lanes sum[ROWS];
  for (int64_t r = 0; r < ROWS; r++) {
    a[r] = p->a + (i + r < p->m ? i + r : p->m - 1) * p->a_row + first * p->a_step;
  }
  for (int64_t j = 0; j < p->n; j += FAKEDNN_LANES) {
    add_tile(p, a, p->b + first * p->b_row + j, length, sum);
    for (int64_t r = 0; r < ROWS && i + r < p->m; r++) {
      double *c = p->c + (i + r) * p->c_row + j;
      for (int lane = 0; lane < FAKEDNN_LANES; lane++) c[lane] += (double)sum[r][lane];
    }
  }
}

void fakednn_multiply(const fakednn_product *p) {
  for (int64_t first = 0; first < p->k; first += BLOCK) {
    int64_t length = p->k - first < BLOCK ? p->k - first : BLOCK;
    for (int64_t i = 0; i < p->m; i += ROWS) add_rows(p, i, first, length);
  }
}
