/* backends/cuda/cudnn/kernels/attention_graph.c: see attention_graph.h. The operations and their order are
 * those that cuDNN recognizes as attention (NVIDIA, cudnn-frontend, scaled_dot_product_flash_attention.h). */
#include "backends/cuda/cudnn/kernels/attention_graph.h"

#include <math.h>

enum { RANK = 4 };

/* ---- tensors ---- */

static int32_t attention_tensor(tn_cudnn_graph *g, int32_t dtype, const int64_t dims[RANK],
                                const int64_t strides[RANK]) {
  tn_cudnn_tensor t = {.dtype = dtype, .rank = RANK};
  for (int32_t i = 0; i < RANK; i++) {
    t.dims[i] = dims[i];
    t.strides[i] = strides[i];
  }
  return tn_cudnn_add_tensor(g, &t);
}

/* Rows of heads in memory. */
static int32_t attention_heads(tn_cudnn_graph *g, const tn_cuda_attention_use *a, const tn_cuda_heads *h,
                               int64_t rows, int64_t width) {
  return attention_tensor(g, a->dtype, (int64_t[]){a->batch, a->heads, rows, width},
                          (int64_t[]){h->batch, h->head, h->row, 1});
}

/* The same, with rows as columns: the second operand of a product of rows with rows. */
static int32_t attention_columns(tn_cudnn_graph *g, const tn_cuda_attention_use *a, const tn_cuda_heads *h,
                                 int64_t rows, int64_t width) {
  return attention_tensor(g, a->dtype, (int64_t[]){a->batch, a->heads, width, rows},
                          (int64_t[]){h->batch, h->head, 1, h->row});
}

/* Row-major f32. */
static int32_t attention_f32(tn_cudnn_graph *g, const tn_cuda_attention_use *a, int64_t rows, int64_t width) {
  return attention_tensor(g, TN_F32, (int64_t[]){a->batch, a->heads, rows, width},
                          (int64_t[]){a->heads * rows * width, rows * width, width, 1});
}

/* A number for each query, in memory. */
static int32_t attention_rows(tn_cudnn_graph *g, const tn_cuda_attention_use *a) {
  return attention_f32(g, a, a->queries, 1);
}

static int32_t attention_virtual(tn_cudnn_graph *g, int32_t number) {
  g->tensors[number].is_virtual = true;
  return number;
}

static int32_t attention_virtual_rows(tn_cudnn_graph *g, const tn_cuda_attention_use *a) {
  return attention_virtual(g, attention_rows(g, a));
}

/* A number for each pair of a query and a key. */
static int32_t attention_pairs(tn_cudnn_graph *g, const tn_cuda_attention_use *a, int32_t dtype) {
  int32_t pairs = attention_virtual(g, attention_f32(g, a, a->queries, a->keys));
  g->tensors[pairs].dtype = dtype;
  return pairs;
}

/* ---- steps ---- */

/* mode(x, b), for each pair. */
static int32_t attention_apply(tn_cudnn_graph *g, const tn_cuda_attention_use *a, int32_t mode, int32_t x,
                               int32_t b) {
  int32_t y = attention_pairs(g, a, TN_F32);
  tn_cudnn_pointwise(g, mode, x, b, y);
  return y;
}

/* The reduction of x over its last dimension, virtual. */
static int32_t attention_reduce(tn_cudnn_graph *g, const tn_cuda_attention_use *a, int32_t mode, int32_t x) {
  int32_t y = attention_virtual_rows(g, a);
  tn_cudnn_reduce(g, mode, x, y);
  return y;
}

/* scale a b, for each pair. */
static int32_t attention_scaled_product(tn_cudnn_graph *g, const tn_cuda_attention_use *a, int32_t left,
                                        int32_t right, int32_t scale) {
  int32_t product = attention_pairs(g, a, TN_F32);
  tn_cudnn_matmul(g, left, right, product);
  return attention_apply(g, a, CUDNN_POINTWISE_MUL, product, scale);
}

/* The number of the last key that each query sees. */
static int32_t attention_last_seen(tn_cudnn_graph *g, const tn_cuda_attention_use *a, int32_t scores) {
  int32_t query = attention_pairs(g, a, TN_I32);
  tn_cudnn_gen_index(g, 2, scores, query);
  if (a->keys == a->queries) return query;
  int32_t last = attention_pairs(g, a, TN_I32);
  tn_cudnn_pointwise(g, CUDNN_POINTWISE_ADD, query, tn_cudnn_integer(g, RANK, a->keys - a->queries), last);
  return last;
}

/* The scores, -infinity where a query does not see a key. */
static int32_t attention_masked(tn_cudnn_graph *g, const tn_cuda_attention_use *a, int32_t scores) {
  if (!a->causal) return scores;
  int32_t last = attention_last_seen(g, a, scores);
  int32_t key = attention_pairs(g, a, TN_I32), sees = attention_pairs(g, a, TN_BOOL);
  tn_cudnn_gen_index(g, 3, scores, key);
  tn_cudnn_pointwise(g, CUDNN_POINTWISE_CMP_GE, last, key, sees);
  int32_t masked = attention_pairs(g, a, TN_F32);
  tn_cudnn_select(g, sees, scores, tn_cudnn_number(g, RANK, -(double)INFINITY), masked);
  return masked;
}

/* ---- attention ---- */

/* lse = log(sum) + largest. */
static void attention_write_lse(tn_cudnn_graph *g, const tn_cuda_attention_use *a, int32_t largest,
                                int32_t sum) {
  int32_t logarithm = attention_virtual_rows(g, a);
  tn_cudnn_pointwise(g, CUDNN_POINTWISE_LOG, sum, TN_CUDNN_NONE, logarithm);
  tn_cudnn_pointwise(g, CUDNN_POINTWISE_ADD, largest, logarithm, TN_CUDNN_ATTENTION_LSE);
}

void tn_cudnn_attention_graph(const tn_cuda_attention_use *a, tn_cudnn_graph *g) {
  *g = (tn_cudnn_graph){0};
  int32_t q = attention_heads(g, a, &a->q, a->queries, a->width);
  int32_t k = attention_columns(g, a, &a->k, a->keys, a->width);
  int32_t v = attention_heads(g, a, &a->v, a->keys, a->value_width);
  int32_t y = attention_heads(g, a, &a->y, a->queries, a->value_width);
  attention_rows(g, a); /* LSE */
  int32_t scale = tn_cudnn_number(g, RANK, a->scale);
  int32_t scores = attention_masked(g, a, attention_scaled_product(g, a, q, k, scale));
  int32_t largest = attention_reduce(g, a, CUDNN_REDUCE_TENSOR_MAX, scores);
  int32_t below = attention_apply(g, a, CUDNN_POINTWISE_SUB, scores, largest);
  int32_t exponential = attention_apply(g, a, CUDNN_POINTWISE_EXP, below, TN_CUDNN_NONE);
  int32_t sum = attention_reduce(g, a, CUDNN_REDUCE_TENSOR_ADD, exponential);
  attention_write_lse(g, a, largest, sum);
  int32_t probabilities = attention_pairs(g, a, a->dtype);
  tn_cudnn_pointwise(g, CUDNN_POINTWISE_DIV, exponential, sum, probabilities);
  tn_cudnn_matmul(g, probabilities, v, y);
}

/* ---- the gradient ---- */

static void attention_add_memory(tn_cudnn_graph *g, const tn_cuda_attention_use *a, bool ordered) {
  *g = (tn_cudnn_graph){0};
  attention_heads(g, a, &a->q, a->queries, a->width);
  attention_columns(g, a, &a->k, a->keys, a->width);
  attention_columns(g, a, &a->v, a->keys, a->value_width);
  attention_heads(g, a, &a->y, a->queries, a->value_width);
  attention_rows(g, a); /* LSE */
  attention_heads(g, a, &a->dy, a->queries, a->value_width);
  attention_heads(g, a, &a->dq, a->queries, a->width);
  attention_heads(g, a, &a->dk, a->keys, a->width);
  attention_heads(g, a, &a->dv, a->keys, a->value_width);
  attention_rows(g, a); /* SUMS */
  if (!ordered) attention_f32(g, a, a->queries, a->width);
}

/* SUMS. cuDNN recognizes them by the product with 1, which stands where dropout would be. */
static void attention_write_sums(tn_cudnn_graph *g, const tn_cuda_attention_use *a) {
  int32_t product = attention_virtual(g, attention_f32(g, a, a->queries, a->value_width));
  tn_cudnn_pointwise(g, CUDNN_POINTWISE_MUL, TN_CUDNN_ATTENTION_DY, TN_CUDNN_ATTENTION_Y, product);
  int32_t sum = attention_reduce(g, a, CUDNN_REDUCE_TENSOR_ADD, product);
  tn_cudnn_pointwise(g, CUDNN_POINTWISE_MUL, sum, tn_cudnn_number(g, RANK, 1), TN_CUDNN_ATTENTION_SUMS);
}

/* to = pairs^T rows. */
static void attention_multiply_transposed(tn_cudnn_graph *g, const tn_cuda_attention_use *a, int32_t pairs,
                                          int32_t rows, int32_t to) {
  int64_t count = a->queries * a->keys;
  int32_t transposed =
      attention_virtual(g, attention_tensor(g, a->dtype, (int64_t[]){a->batch, a->heads, a->keys, a->queries},
                                            (int64_t[]){a->heads * count, count, 1, a->keys}));
  tn_cudnn_reshape(g, pairs, transposed);
  tn_cudnn_matmul(g, transposed, rows, to);
}

/* dq = pairs k. */
static void attention_write_dq(tn_cudnn_graph *g, const tn_cuda_attention_use *a, int32_t pairs,
                               bool ordered) {
  int32_t k = attention_virtual(g, attention_heads(g, a, &a->k, a->keys, a->width));
  tn_cudnn_reshape(g, TN_CUDNN_ATTENTION_K, k);
  tn_cudnn_matmul(g, pairs, k, ordered ? TN_CUDNN_ATTENTION_DQ : TN_CUDNN_ATTENTION_ACCUMULATED);
  if (!ordered)
    tn_cudnn_pointwise(g, CUDNN_POINTWISE_IDENTITY, TN_CUDNN_ATTENTION_ACCUMULATED, TN_CUDNN_NONE,
                       TN_CUDNN_ATTENTION_DQ);
}

/* p = exp(scores - lse); ds = scale p (dy v^T - sums); dv = p^T dy, dk = ds^T q, dq = ds k. */
void tn_cudnn_attention_grad_graph(const tn_cuda_attention_use *a, bool ordered, tn_cudnn_graph *g) {
  attention_add_memory(g, a, ordered);
  int32_t scale = tn_cudnn_number(g, RANK, a->scale);
  attention_write_sums(g, a);
  int32_t scores = attention_scaled_product(g, a, TN_CUDNN_ATTENTION_Q, TN_CUDNN_ATTENTION_K, scale);
  int32_t below = attention_apply(g, a, CUDNN_POINTWISE_SUB, scores, TN_CUDNN_ATTENTION_LSE);
  int32_t p = attention_apply(g, a, CUDNN_POINTWISE_EXP, attention_masked(g, a, below), TN_CUDNN_NONE);
  attention_multiply_transposed(g, a, p, TN_CUDNN_ATTENTION_DY, TN_CUDNN_ATTENTION_DV);
  int32_t dp = attention_pairs(g, a, TN_F32);
  tn_cudnn_matmul(g, TN_CUDNN_ATTENTION_DY, TN_CUDNN_ATTENTION_V, dp);
  int32_t centered = attention_apply(g, a, CUDNN_POINTWISE_SUB, dp, TN_CUDNN_ATTENTION_SUMS);
  int32_t weighted = attention_apply(g, a, CUDNN_POINTWISE_MUL, centered, p);
  int32_t ds = attention_apply(g, a, CUDNN_POINTWISE_MUL, weighted, scale);
  attention_multiply_transposed(g, a, ds, TN_CUDNN_ATTENTION_Q, TN_CUDNN_ATTENTION_DK);
  attention_write_dq(g, a, ds, ordered);
}
