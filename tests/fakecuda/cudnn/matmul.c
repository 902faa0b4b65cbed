/* tests/fakecuda/cudnn/matmul.c: batches of products of matrices. */
#include <stdlib.h>
#include <string.h>
#include "backends/shared/half.h"
#include "tests/fakecuda/cudnn/product.h"
#include "tests/fakecuda/cudnn/run.h"

/* Offset of the matrix of an operand for a matrix of the result; fewer matrices of an operand are each used
 * by as many neighbours. */
static int64_t batch_offset(const fakednn_tensor *t, const fakednn_tensor *c, int64_t batch) {
  int64_t offset = 0;
  for (int i = c->rank - 3; i >= 0; i--) {
    int64_t at = batch % c->dims[i];
    batch /= c->dims[i];
    offset += at / (c->dims[i] / t->dims[i]) * t->strides[i];
  }
  return offset;
}

/* A copy with rows of `row` elements. */
static void pack(const fakednn_tensor *t, const float *from, bool tf32, int64_t row, float *to) {
  int m = t->rank - 2, n = t->rank - 1;
  for (int64_t i = 0; i < t->dims[m]; i++) {
    for (int64_t j = 0; j < t->dims[n]; j++) {
      float x = from[i * t->strides[m] + j * t->strides[n]];
      to[i * row + j] = tf32 ? tn_tf32_of_f32(x) : x;
    }
  }
}

static void unpack(const fakednn_tensor *c, const double *from, int64_t row, float *to) {
  int m = c->rank - 2, n = c->rank - 1;
  for (int64_t i = 0; i < c->dims[m]; i++) {
    for (int64_t j = 0; j < c->dims[n]; j++)
      to[i * c->strides[m] + j * c->strides[n]] = (float)from[i * row + j];
  }
}

bool fakednn_run_matmul(const fakednn_node *node, const fakednn_values *values) {
  const fakednn_tensor *a = fakednn_in_slot(node, values, FAKEDNN_MM_A);
  const fakednn_tensor *b = fakednn_in_slot(node, values, FAKEDNN_MM_B);
  const fakednn_tensor *c = fakednn_in_slot(node, values, FAKEDNN_MM_C);
  int r = c->rank;
  int64_t m = c->dims[r - 2], n = c->dims[r - 1], k = a->dims[r - 1], row = fakednn_padded(n);
  int64_t batches = fakednn_elements(c) / (m * n);
  float *packed = calloc((size_t)(k * row + m * k), sizeof(float)), *left = packed + k * row;
  double *sums = malloc((size_t)(m * row) * sizeof(double));
  for (int64_t i = 0; packed && sums && i < batches; i++) {
    memset(sums, 0, (size_t)(m * row) * sizeof(double));
    pack(a, fakednn_data(node, values, FAKEDNN_MM_A) + batch_offset(a, c, i), values->tf32, k, left);
    pack(b, fakednn_data(node, values, FAKEDNN_MM_B) + batch_offset(b, c, i), values->tf32, row, packed);
    fakednn_multiply(&(fakednn_product){m, n, k, left, k, 1, packed, row, sums, row});
    unpack(c, sums, row, fakednn_data(node, values, FAKEDNN_MM_C) + batch_offset(c, c, i));
  }
  bool done = packed && sums;
  free(packed);
  free(sums);
  return done;
}
