/* backends/cpu/kernels/matmul.c: y = matmul(a, b, bias?), with transposed operands and broadcast batch
 * dimensions. */
#include <stddef.h>

#include "backends/shared/define_kernel.h"
#include "backends/shared/matmul_batch.h"
#include "backends/cpu/kernels/gemm/gemm.h"
#include "tenon/attributes.h"

typedef struct matmul_kernel {
  tn_gemm_tiling gemm;
  const tn_gemm_isa *isa;
  int32_t transpose_a, transpose_b;
  tn_matmul_batch batch;
} matmul_kernel;

static void matmul_kernel_make(const tn_match *match, matmul_kernel *p) {
  const tn_matmul_attributes *attributes = match->nodes[0].node->attributes;
  const tn_type *a = match->in[0], *y = match->out[0];
  int64_t k = attributes->transpose_a ? a->dims[a->rank - 2] : a->dims[a->rank - 1];
  p->isa = tn_gemm_isa_at(0);
  p->transpose_a = attributes->transpose_a;
  p->transpose_b = attributes->transpose_b;
  p->batch = tn_matmul_batch_of(match->nodes[0].node);
  tn_gemm_tiling_make(&p->gemm, tn_gemm_kind(y->dtype, attributes->math), p->batch.products, p->batch.rows,
                      y->dims[y->rank - 1], k, TN_GEMM_PLAIN);
}

static tn_status matmul_query(tn_query *q) {
  matmul_kernel kernel = {0};
  TN_TRY(tn_gemm_check_dtype(q, q->match->out[0]->dtype));
  matmul_kernel_make(q->match, &kernel);
  return tn_offer(q, (tn_variant){.name = kernel.gemm.direct ? "direct" : "packed",
                                  .workspace_bytes = tn_gemm_workspace(&kernel.gemm),
                                  .prepared_bytes = (int64_t)sizeof kernel});
}

static tn_status matmul_prepare(tn_prepare *p, void **prepared) {
  matmul_kernel *made = tn_new(p, sizeof *made);
  if (made == NULL) return TN_ENOMEM;
  matmul_kernel_make(p->match, made);
  *prepared = made;
  return TN_OK;
}

static void matmul_describe(const void *arg, int64_t product, int64_t split, tn_gemm *g) {
  const tn_launch *l = arg;
  const matmul_kernel *p = l->prepared;
  int64_t size = (int64_t)tn_dtype_size(tn_gemm_dtype(p->gemm.kind)), a, b;
  (void)split;
  tn_matmul_batch_at(&p->batch, product, &a, &b);
  g->a.data = (const char *)l->in[0].data + a * size;
  g->a.along_k = !p->transpose_a;
  g->a.row_step = p->transpose_a ? p->gemm.m : p->gemm.k;
  g->b.data = (const char *)l->in[1].data + b * size;
  g->b.along_k = p->transpose_b;
  g->b.row_step = p->transpose_b ? p->gemm.k : p->gemm.n;
  g->c.data = (char *)l->out[0].data + product * p->gemm.m * p->gemm.n * size;
  g->c.row_step = p->gemm.n;
  g->c.bias = l->n_in > 2 ? l->in[2].data : NULL;
  g->c.bias_j = 1;
  g->a.step = g->b.step = g->c.step = 1;
}

static tn_status matmul_launch(tn_launch *l) {
  const matmul_kernel *p = l->prepared;
  tn_gemm_run(l, p->isa, &p->gemm, matmul_describe, l, l->workspace);
  return TN_OK;
}

TN_DEFINE_KERNEL(cpu, matmul, "matmul", "y = matmul(a, b, bias?)",
                 "blocked matrix product with packed operands",
                 TN_KERNEL_CALLBACKS_WITH(matmul, tn_delete_prepared));
