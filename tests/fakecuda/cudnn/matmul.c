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

static int64_t length_of(const fakednn_node *node, const fakednn_values *values, int slot, int64_t batch,
                         int64_t most) {
  const fakednn_tensor *t = fakednn_in_slot(node, values, slot);
  int64_t length =
      t ? (int64_t)fakednn_data(node, values, slot)[t->dims[0] > 1 ? batch * t->strides[0] : 0] : most;
  return length < 0 ? 0 : length < most ? length : most;
}

/* Elements behind `rows` and `columns` become padding. */
static void unpack(const fakednn_tensor *c, const double *from, int64_t row, const int64_t length[2],
                   double padding, float *to) {
  int m = c->rank - 2, n = c->rank - 1;
  for (int64_t i = 0; i < c->dims[m]; i++) {
    for (int64_t j = 0; j < c->dims[n]; j++) {
      bool inside = i < length[0] && j < length[1];
      to[i * c->strides[m] + j * c->strides[n]] = (float)(inside ? from[i * row + j] : padding);
    }
  }
}

typedef struct room {
  float *left, *right; /* [m][k], [k][row] */
  double *sums;        /* [m][row] */
  int64_t row;
} room;

static void run_batch(const fakednn_node *node, const fakednn_values *values, const room *to,
                      int64_t number) {
  const fakednn_tensor *a = fakednn_in_slot(node, values, FAKEDNN_MM_A);
  const fakednn_tensor *b = fakednn_in_slot(node, values, FAKEDNN_MM_B);
  const fakednn_tensor *c = fakednn_in_slot(node, values, FAKEDNN_MM_C);
  int64_t m = c->dims[c->rank - 2], n = c->dims[c->rank - 1], k = a->dims[c->rank - 1];
  int64_t first = number / (fakednn_elements(c) / (c->dims[0] * m * n)); /* index along dimension 0 */
  const int64_t length[2] = {length_of(node, values, FAKEDNN_MM_ROWS, first, m),
                             length_of(node, values, FAKEDNN_MM_COLUMNS, first, n)};
  memset(to->sums, 0, (size_t)(m * to->row) * sizeof(double));
  pack(a, fakednn_data(node, values, FAKEDNN_MM_A) + batch_offset(a, c, number), values->tf32, k, to->left);
  pack(b, fakednn_data(node, values, FAKEDNN_MM_B) + batch_offset(b, c, number), values->tf32, to->row,
       to->right);
  fakednn_multiply(&(fakednn_product){m, n, length_of(node, values, FAKEDNN_MM_INNER, first, k), to->left, k,
                                      1, to->right, to->row, to->sums, to->row});
  unpack(c, to->sums, to->row, length, node->padding,
         fakednn_data(node, values, FAKEDNN_MM_C) + batch_offset(c, c, number));
}

bool fakednn_run_matmul(const fakednn_node *node, const fakednn_values *values) {
  const fakednn_tensor *a = fakednn_in_slot(node, values, FAKEDNN_MM_A);
  const fakednn_tensor *c = fakednn_in_slot(node, values, FAKEDNN_MM_C);
  int64_t m = c->dims[c->rank - 2], n = c->dims[c->rank - 1], k = a->dims[c->rank - 1],
          row = fakednn_padded(n);
  room to = {.left = malloc((size_t)(m * k) * sizeof(float)),
             .right = calloc((size_t)(k * row), sizeof(float)),
             .sums = malloc((size_t)(m * row) * sizeof(double)),
             .row = row};
  bool reserved = to.left && to.right && to.sums;
  for (int64_t i = 0; reserved && i < fakednn_elements(c) / (m * n); i++) run_batch(node, values, &to, i);
  free(to.left);
  free(to.right);
  free(to.sums);
  return reserved;
}
