/* backends/onednn/kernels/matmul_run.c: launches of products of matrices, and the panels of constant ones. */
#include "backends/onednn/kernels/matmul.h"

typedef struct matmul_job {
  tn_launch *launch;
  const tn_matmul_kernel *kernel;
  tn_gemm_epilogue epilogue;
} matmul_job;

static tn_gemm_epilogue matmul_epilogue(const tn_matmul_kernel *p) {
  static const int32_t ops[] = {[TN_MATMUL_RELU] = TN_EPILOGUE_RELU,
                                [TN_MATMUL_RELU_GRAD] = TN_EPILOGUE_RELU_GRAD,
                                [TN_MATMUL_ADD] = TN_EPILOGUE_ADD,
                                [TN_MATMUL_GELU] = TN_EPILOGUE_GELU,
                                [TN_MATMUL_GELU_GRAD] = TN_EPILOGUE_GELU_GRAD,
                                [TN_MATMUL_SPLIT] = TN_EPILOGUE_NONE,
                                [TN_MATMUL_CAST] = TN_EPILOGUE_NONE};
  return (tn_gemm_epilogue){.op = ops[p->kind], .approximate = p->approximate};
}

/* The operands of the columns of a result: rows of b, and elements of the bias. */
static void matmul_find_columns(const tn_launch *l, const tn_matmul_kernel *p, int64_t result,
                                tn_gemm_matrices *x) {
  int64_t size = (int64_t)tn_dtype_size(p->partition.dtype), start = p->start[result] * size;
  const void *bias = l->n_in > 2 ? l->in[2].data : NULL;
  *x = (tn_gemm_matrices){.a = l->in[0].data,
                          .b = (const char *)l->in[1].data + start * p->partition.k,
                          .bias = bias == NULL ? NULL : (const char *)bias + start,
                          .c = l->out[result].data};
}

static void matmul_find_matrices(const tn_launch *l, const tn_matmul_kernel *p, int64_t product,
                                 tn_gemm_matrices *x) {
  int64_t size = (int64_t)tn_dtype_size(p->partition.dtype), a, b;
  tn_matmul_batch_at(&p->batch, product, &a, &b);
  int64_t c =
      product * p->partition.m * p->partition.n * (p->kind == TN_MATMUL_CAST ? (int64_t)sizeof(float) : size);
  int32_t last = p->kind == TN_MATMUL_GELU ? l->n_out - 1 : 0;
  int32_t beside = p->kind == TN_MATMUL_ADD                                           ? 3
                   : p->kind == TN_MATMUL_RELU_GRAD || p->kind == TN_MATMUL_GELU_GRAD ? 2
                                                                                      : -1;
  x->a = (const char *)l->in[0].data + a * size;
  x->b = (const char *)l->in[1].data + b * size;
  x->c = (char *)l->out[last].data + c;
  x->preactivation = last > 0 ? (char *)l->out[0].data + c : NULL;
  x->bias = beside != 2 && l->n_in > 2 ? l->in[2].data : NULL;
  x->operand = beside >= 0 ? (const char *)l->in[beside].data + c : NULL;
}

/* The bias gradient of rows r->m0 .. of the weight: sums over k of the first operand. */
static void matmul_sum_bias(const matmul_job *j, const tn_gemm_extent *r) {
  const tn_matmul_kernel *p = j->kernel;
  int64_t size = (int64_t)tn_dtype_size(p->partition.dtype);
  const void *from = (const char *)j->launch->in[0].data + r->m0 * size;
  void *to = (char *)j->launch->out[1].data + r->m0 * size;
  (p->partition.dtype == TN_BF16 ? p->loops->sum_rows_bf16 : p->loops->sum_rows)(from, p->partition.m,
                                                                                 p->partition.k, r->m, to);
}

static float *matmul_parts(const matmul_job *j) {
  return (float *)((char *)j->launch->workspace +
                   j->kernel->partition.chunks * j->kernel->partition.scratch_bytes);
}

static void matmul_run_chunk(void *arg, int64_t chunk) {
  const matmul_job *j = arg;
  const tn_matmul_kernel *p = j->kernel;
  char *scratch = (char *)j->launch->workspace + chunk * p->partition.scratch_bytes;
  int64_t count, first = tn_gemm_chunk_items(&p->partition, chunk, &count);
  for (int64_t item = first; item < first + count; item++) {
    tn_gemm_extent range;
    tn_gemm_matrices x;
    int64_t product = tn_gemm_item_range(&p->partition, item, &range);
    (p->kind == TN_MATMUL_SPLIT ? matmul_find_columns : matmul_find_matrices)(j->launch, p, product, &x);
    if (p->partition.method == TN_GEMM_FOLDED)
      x.b = tn_gemm_panels_of(&p->partition, j->launch->folded, product);
    tn_gemm_run_range(&p->partition, p->loops, &x, &j->epilogue, &range, scratch, matmul_parts(j));
    if (p->kind == TN_MATMUL_BIAS_GRAD && p->partition.method != TN_GEMM_GATHERED && range.n0 == 0)
      matmul_sum_bias(j, &range);
  }
}

static void matmul_join_chunk(void *arg, int64_t chunk) {
  const matmul_job *j = arg;
  const tn_launch *l = j->launch;
  void *sums = j->kernel->kind == TN_MATMUL_BIAS_GRAD ? l->out[1].data : NULL;
  tn_gemm_join_chunk(&j->kernel->partition, j->kernel->loops, matmul_parts(j), chunk, l->out[0].data, sums);
}

/* A single chunk runs on the calling thread. */
static void matmul_run_all(matmul_job *j, int64_t chunks, void (*body)(void *arg, int64_t chunk)) {
  if (chunks == 1)
    body(j, 0);
  else if (chunks > 1)
    tn_parallel(j->launch, chunks, body, j);
}

tn_status tn_matmul_launch(tn_launch *l) {
  const tn_matmul_kernel *p = l->prepared;
  matmul_job j = {l, p, matmul_epilogue(p)};
  matmul_run_all(&j, p->partition.chunks, matmul_run_chunk);
  matmul_run_all(&j, p->partition.joins, matmul_join_chunk);
  return TN_OK;
}

/* ---- fold ---------------------------------------------------------------------------------------- */

/* Of a split, each product has rows of b from its own first column on; else there is one product. */
static void matmul_fold_tile(void *arg, int64_t tile) {
  const tn_launch *l = arg;
  const tn_matmul_kernel *p = l->prepared;
  int64_t product = tile / p->partition.tiles_n;
  const float *b = (const float *)l->in[1].data + p->start[product] * p->partition.k;
  tn_gemm_fold_tile(&p->partition, p->loops, b, tile, l->folded);
}

tn_status tn_matmul_fold(tn_launch *l) {
  const tn_gemm_partition *c = &((const tn_matmul_kernel *)l->prepared)->partition;
  tn_parallel(l, c->products * c->tiles_n, matmul_fold_tile, l);
  return TN_OK;
}
