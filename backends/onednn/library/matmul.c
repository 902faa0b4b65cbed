/* backends/onednn/library/matmul.c: products of large matrices of bf16 by oneDNN, with sums in f32, on
 * processors that multiply bf16. The kernels of kernels/gemm convert the operands to f32. */
#include "backends/onednn/kernels/gemm/gemm.h"
#include "backends/onednn/library/matmul.h"
#include "backends/shared/define_kernel.h"

enum { LEAST = 128 /* rows, columns and products of a sum: smaller products are left to kernels/gemm */ };

/* The speed beside that of products in f32 by kernels/gemm. With AMX: 2.6, the ratio of the times of
 * PyTorch's oneDNN in bf16 and of Tenon in f32 for the products of docs/results/optimizers.md. Without it the
 * vectors have twice as many products; no such processor was measured. */
static const double amx_speed = 2.6, vector_speed = 1.3;

static bool matmul_library_has_amx(void) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("amx-bf16");
#else
  return false;
#endif
}

/* A stored matrix, transposed where the product reads it so. */
static tn_status matmul_library_describe(tn_primitive_list *list, const tn_type *stored, int32_t transpose,
                                         tn_dnnl_desc *desc) {
  tn_type type = *stored;
  tn_layout layout = {.set = 1, .order = {0, 1}};
  if (transpose) {
    type.dims[0] = stored->dims[1];
    type.dims[1] = stored->dims[0];
    layout.order[0] = 1;
    layout.order[1] = 0;
  }
  return tn_dnnl_memory(list, &type, &layout, desc);
}

tn_status tn_dnnl_matmul_list(tn_primitive_list *list, const tn_match *m) {
  const tn_matmul_attributes *t = m->nodes[0].node->attributes;
  dnnl_primitive_attr_t attributes = NULL;
  dnnl_primitive_desc_t primitive = NULL;
  tn_primitive_step *step = NULL;
  tn_dnnl_desc a, b, c;
  TN_TRY(matmul_library_describe(list, m->in[0], t->transpose_a, &a));
  TN_TRY(matmul_library_describe(list, m->in[1], t->transpose_b, &b));
  TN_TRY(matmul_library_describe(list, m->out[0], 0, &c));
  TN_TRY(tn_dnnl_attributes(list->env, &attributes));
  tn_status status =
      tn_dnnl_check(list->env, tn_dnnl_new_matmul(list->library->engine, a, b, c, attributes, &primitive),
                    "dnnl_matmul_primitive_desc_create");
  dnnl_primitive_attr_destroy(attributes);
  if (status == TN_OK) status = tn_primitive_list_add(list, primitive, &step);
  if (status != TN_OK) return status;
  tn_primitive_step_put(step, DNNL_ARG_SRC, TN_ARG_IN, 0, a);
  tn_primitive_step_put(step, DNNL_ARG_WEIGHTS, TN_ARG_IN, 1, b);
  tn_primitive_step_put(step, DNNL_ARG_DST, TN_ARG_OUT, 0, c);
  return TN_OK;
}

static tn_status matmul_library_check(const tn_query *q) {
  const tn_match *m = q->match;
  const tn_matmul_attributes *t = m->nodes[0].node->attributes;
  const tn_type *a = m->in[0], *y = m->out[0];
  if (a->dtype != TN_BF16 || tn_onednn_isa_of(q->backend) < TN_ISA_AVX512_BF16)
    return tn_fail(&q->env, TN_EUNSUPPORTED, NULL, "products of %s here are those of onednn_matmul",
                   tn_dtype_name(a->dtype));
  if (y->dtype != TN_BF16 && y->dtype != TN_F32)
    return tn_fail(&q->env, TN_EUNSUPPORTED, NULL, "results are %s, expected bf16 or f32",
                   tn_dtype_name(y->dtype));
  int64_t k = a->dims[a->rank - (t->transpose_a ? 2 : 1)];
  if (a->rank == 2 && m->in[1]->rank == 2 && y->dims[0] >= LEAST && y->dims[1] >= LEAST && k >= LEAST)
    return TN_OK;
  return tn_fail(&q->env, TN_EUNSUPPORTED, NULL, "not a product of matrices of at least %d rows and columns",
                 LEAST);
}

static double matmul_library_cost_s(const tn_query *q) {
  const tn_match *m = q->match;
  const tn_matmul_attributes *t = m->nodes[0].node->attributes;
  tn_gemm_partition own;
  tn_gemm_partition_make(&own, TN_F32, t->transpose_a, t->transpose_b, 1, m->out[0]->dims[0],
                         m->out[0]->dims[1], m->in[0]->dims[t->transpose_a ? 0 : 1], 0);
  return tn_gemm_partition_cost_s(&own, q->device) / (matmul_library_has_amx() ? amx_speed : vector_speed);
}

static tn_status matmul_library_query(tn_query *q) {
  tn_primitive_list list;
  TN_TRY(matmul_library_check(q));
  tn_status status = tn_primitive_list_start(&list, &q->env, q->backend, q->device->threads);
  if (status == TN_OK) status = tn_dnnl_matmul_list(&list, q->match);
  if (status == TN_OK)
    tn_offer(q, (tn_variant){.name = "library",
                             .workspace_bytes = tn_primitive_list_workspace(&list),
                             .prepared_bytes = TN_PRIMITIVE_LIST_BYTES,
                             .cost_s = matmul_library_cost_s(q)});
  tn_primitive_list_finish(&list);
  return status;
}

static tn_status matmul_library_prepare(tn_prepare *p, void **made) {
  tn_primitive_list list;
  tn_status status = tn_primitive_list_start(&list, &p->env, p->backend, p->device->threads);
  if (status == TN_OK) status = tn_dnnl_matmul_list(&list, p->match);
  if (status == TN_OK) status = tn_primitive_list_compile(&list, made);
  tn_primitive_list_finish(&list);
  return status;
}

#define MATMUL_LIBRARY(name, pattern, help)                                                                  \
  TN_DEFINE_KERNEL(onednn, name, "onednn_" #name, pattern, help, .query = matmul_library_query,              \
                   .prepare = matmul_library_prepare, .release = tn_primitive_list_release,                  \
                   .launch = tn_primitive_list_launch)

MATMUL_LIBRARY(matmul_library, "y = matmul(a, b)", "products of large matrices of bf16 by oneDNN");
MATMUL_LIBRARY(matmul_library_cast, "y = matmul(a, b); z = cast(y)",
               "products of large matrices of bf16 by oneDNN, with results in f32");
