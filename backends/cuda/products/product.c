/* backends/cuda/products/product.c: see product.h. */
#include "backends/cuda/products/product.h"
#include "backends/shared/integer_math.h"

/* Bits of cublasLtEpilogue_t: an auxiliary matrix; a bias or a gradient of one. */
enum {
  PRODUCT_AUX = 128,
  PRODUCT_BIASES = CUBLASLT_EPILOGUE_BIAS | 16 | CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB
};

enum {
  MOST_RANKS = 8,
  WORKSPACE_LIMIT = 32 << 20,
  WORKSPACE_SUMS = 8,
  WORKSPACE_ALIGNMENT = 256,
  WIDE_ALIGNMENT = 16
};

/* Of these bytes the algorithms get all but the first, up to the alignment. */
int64_t tn_cuda_product_workspace(const tn_cuda_product *product) {
  int64_t sums = round_up(product->batch * product->m * product->n * 4 * WORKSPACE_SUMS, WORKSPACE_ALIGNMENT);
  return least(sums, WORKSPACE_LIMIT) + WORKSPACE_ALIGNMENT;
}

/* ---- describing ---- */

static cudaDataType product_data_type(int32_t dtype) {
  switch (dtype) {
  case TN_F16: return CUDA_R_16F;
  case TN_BF16: return CUDA_R_16BF;
  case TN_F64: return CUDA_R_64F;
  default: return CUDA_R_32F;
  }
}

static cublasComputeType_t product_compute_type(const tn_cuda_product *p) {
  if (p->dtype == TN_F64) return CUBLAS_COMPUTE_64F;
  return p->dtype == TN_F32 && p->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

static tn_status product_set(tn_env *env, const tn_cuda_product_plan *plan,
                             cublasLtMatmulDescAttributes_t attribute, const void *value, size_t bytes) {
  return TN_LT(env, &plan->device->backend->libraries, cublasLtMatmulDescSetAttribute, plan->desc, attribute,
               value, bytes);
}

/* The auxiliary matrix is one like d: the operand of a GELU. */
static tn_status product_describe_epilogue(tn_env *env, const tn_cuda_product_plan *plan) {
  const tn_cuda_product *p = &plan->product;
  bool has_aux = (p->epilogue & PRODUCT_AUX) != 0;
  tn_status status = product_set(env, plan, CUBLASLT_MATMUL_DESC_EPILOGUE, &p->epilogue, sizeof p->epilogue);
  if (status == TN_OK && has_aux)
    status = product_set(env, plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &p->n, sizeof p->n);
  if (status == TN_OK && has_aux && p->batch > 1)
    status =
        product_set(env, plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, &p->step_d, sizeof p->step_d);
  return status;
}

static tn_status product_describe(tn_env *env, tn_cuda_product_plan *plan) {
  const tn_cuda_product *p = &plan->product;
  cublasOperation_t first = p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasOperation_t second = p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  cudaDataType scale = p->dtype == TN_F64 ? CUDA_R_64F : CUDA_R_32F;
  tn_status status = TN_LT(env, &plan->device->backend->libraries, cublasLtMatmulDescCreate, &plan->desc,
                           product_compute_type(p), scale);
  if (status == TN_OK) status = product_set(env, plan, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first);
  if (status == TN_OK) status = product_set(env, plan, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second);
  return status == TN_OK ? product_describe_epilogue(env, plan) : status;
}

/* A row-major matrix in memory. */
typedef struct product_matrix {
  int32_t dtype;
  int64_t rows, columns;
  int64_t row, step; /* elements from one row to the next, and from one product's matrix to the next's */
} product_matrix;

/* To cuBLASLt it is a matrix of columns x rows. */
static tn_status product_add_layout(tn_env *env, const tn_cuda_product_plan *plan,
                                    cublasLtMatrixLayout_t *layout, const product_matrix *x) {
  const tn_cuda_libraries *l = &plan->device->backend->libraries;
  int32_t batch = (int32_t)plan->product.batch;
  TN_TRY(TN_LT(env, l, cublasLtMatrixLayoutCreate, layout, product_data_type(x->dtype), (uint64_t)x->columns,
               (uint64_t)x->rows, x->row));
  if (batch > 1)
    TN_TRY(TN_LT(env, l, cublasLtMatrixLayoutSetAttribute, *layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                 &batch, sizeof batch));
  if (batch > 1)
    TN_TRY(TN_LT(env, l, cublasLtMatrixLayoutSetAttribute, *layout,
                 CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &x->step, sizeof x->step));
  return TN_OK;
}

static tn_status product_add_layouts(tn_env *env, tn_cuda_product_plan *plan) {
  const tn_cuda_product *p = &plan->product;
  int64_t b_rows = p->transpose_b ? p->n : p->k, b_columns = p->transpose_b ? p->k : p->n;
  product_matrix a = {p->dtype, p->transpose_a ? p->k : p->m, p->transpose_a ? p->m : p->k, p->row_a,
                      p->step_a};
  product_matrix b = {p->dtype, b_rows, b_columns, b_columns, p->step_b};
  product_matrix d = {p->wide, p->m, p->n, p->row_d, p->step_d}, c = d;
  if (p->reads_c) c = (product_matrix){p->wide, p->m, p->n, p->n, p->step_c};
  tn_status status = product_add_layout(env, plan, &plan->a, &a);
  if (status == TN_OK) status = product_add_layout(env, plan, &plan->b, &b);
  if (status == TN_OK) status = product_add_layout(env, plan, &plan->c, &c);
  return status == TN_OK ? product_add_layout(env, plan, &plan->d, &d) : status;
}

/* ---- choosing ---- */

/* The alignment of an operand's addresses: `which` 0 to 16 bytes, 1 to an element. */
static uint32_t product_alignment(int32_t dtype, int32_t which) {
  return which == 0 ? WIDE_ALIGNMENT : (uint32_t)tn_dtype_size(dtype);
}

/* Schemes whose sums have one order: partial sums are not added in place by whichever block comes first. */
static tn_status product_prefer(tn_env *env, const tn_cuda_product_plan *plan, int32_t which,
                                cublasLtMatmulPreference_t preference) {
  static const cublasLtMatmulPreferenceAttributes_t operands[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  const tn_cuda_libraries *l = &plan->device->backend->libraries;
  uint64_t bytes = (uint64_t)tn_cuda_product_workspace(&plan->product) - WORKSPACE_ALIGNMENT;
  uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  tn_status status = TN_LT(env, l, cublasLtMatmulPreferenceSetAttribute, preference,
                           CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
  if (status == TN_OK)
    status = TN_LT(env, l, cublasLtMatmulPreferenceSetAttribute, preference,
                   CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes);
  for (int32_t i = 0; i < 4 && status == TN_OK; i++) {
    uint32_t alignment = product_alignment(i < 2 ? plan->product.dtype : plan->product.wide, which);
    status = TN_LT(env, l, cublasLtMatmulPreferenceSetAttribute, preference, operands[i], &alignment,
                   sizeof alignment);
  }
  return status;
}

/* The number of result `rank` among those that cuBLASLt marks as usable; of others nothing is valid. -1:
 * there are not so many, and `usable` is how many there are. */
static int32_t product_find_result(const cublasLtMatmulHeuristicResult_t *found, int n, int32_t rank,
                                   int32_t *usable) {
  *usable = 0;
  for (int32_t i = 0; i < n; i++)
    if (found[i].state == CUBLAS_STATUS_SUCCESS && (*usable)++ == rank) return i;
  return -1;
}

/* cuBLASLt has several codes for a product that it does not compute, so each of them declines, but for those
 * of a lack of memory and of a faulted device. */
static tn_status product_take_algorithm(tn_env *env, tn_cuda_product_plan *plan, int32_t rank,
                                        int32_t alignment, cublasLtMatmulPreference_t preference) {
  cublasLtMatmulHeuristicResult_t found[MOST_RANKS];
  const tn_cuda_libraries *l = &plan->device->backend->libraries;
  int32_t chosen = -1, usable = 0;
  int n = 0;
  cublasStatus_t code = l->lt.cublasLtMatmulAlgoGetHeuristic(
      plan->device->lt, plan->desc, plan->a, plan->b, plan->c, plan->d, preference, MOST_RANKS, found, &n);
  if (code == CUBLAS_STATUS_SUCCESS) chosen = product_find_result(found, n, rank, &usable);
  if (code == CUBLAS_STATUS_NOT_SUPPORTED || (code == CUBLAS_STATUS_SUCCESS && chosen < 0))
    return tn_fail(env, TN_EUNSUPPORTED, NULL,
                   "cuBLASLt has %d algorithms for this product, number %d is asked for", (int)usable,
                   rank + 1);
  tn_status status = tn_cuda_check_lt(env, l, code, "cublasLtMatmulAlgoGetHeuristic");
  if (tn_cuda_is_refusal(l, status))
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "cublasLtMatmulAlgoGetHeuristic refuses this product: %s",
                   l->lt.cublasLtGetStatusString(code));
  if (status != TN_OK) return status;
  plan->algorithm[alignment] = found[chosen].algo;
  plan->has_algorithm[alignment] = true;
  return TN_OK;
}

/* The heuristic reads the alignment of the bias and of the auxiliary matrix from their pointers. */
static tn_status product_set_alignment(tn_env *env, const tn_cuda_product_plan *plan, int32_t which) {
  const void *address = (const void *)(uintptr_t)product_alignment(plan->product.wide, which);
  tn_status status = TN_OK;
  if (plan->product.epilogue & PRODUCT_BIASES)
    status = product_set(env, plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &address, sizeof address);
  if (status == TN_OK && (plan->product.epilogue & PRODUCT_AUX))
    status = product_set(env, plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &address, sizeof address);
  return status;
}

static tn_status product_choose(tn_env *env, tn_cuda_product_plan *plan, int32_t rank, int32_t which) {
  const tn_cuda_libraries *l = &plan->device->backend->libraries;
  cublasLtMatmulPreference_t preference = NULL;
  TN_TRY(TN_LT(env, l, cublasLtMatmulPreferenceCreate, &preference));
  tn_status status = product_prefer(env, plan, which, preference);
  if (status == TN_OK) status = product_set_alignment(env, plan, which);
  if (status == TN_OK) status = product_take_algorithm(env, plan, rank, which, preference);
  (void)l->lt.cublasLtMatmulPreferenceDestroy(preference);
  return status;
}

/* cuBLASLt takes the operands in the order b, a. The operands of a run are aligned, so a product without an
 * algorithm for unaligned ones is of use: auxiliary matrices take 16 bytes in every algorithm. */
tn_status tn_cuda_product_open(tn_env *env, const tn_cuda_device *device, const tn_cuda_product *product,
                               int32_t rank, tn_cuda_product_plan *plan) {
  *plan = (tn_cuda_product_plan){.device = device, .product = *product};
  tn_status status = tn_cuda_enter(env, device);
  if (status == TN_OK) status = product_describe(env, plan);
  if (status == TN_OK) status = product_add_layouts(env, plan);
  if (status != TN_OK) return status;
  cublasLtMatrixLayout_t a = plan->a;
  plan->a = plan->b;
  plan->b = a;
  status = product_choose(env, plan, rank, 0);
  if (status != TN_OK) return status;
  status = product_choose(env, plan, 0, 1);
  return status == TN_EUNSUPPORTED ? TN_OK : status;
}

void tn_cuda_product_close(tn_cuda_product_plan *plan) {
  if (plan->device == NULL) return;
  const tn_cuda_lt *lt = &plan->device->backend->libraries.lt;
  cublasLtMatrixLayout_t layouts[] = {plan->a, plan->b, plan->c, plan->d};
  for (int32_t i = 0; i < 4; i++)
    if (layouts[i] != NULL) (void)lt->cublasLtMatrixLayoutDestroy(layouts[i]);
  if (plan->desc != NULL) (void)lt->cublasLtMatmulDescDestroy(plan->desc);
}

/* ---- running ---- */

static bool product_is_aligned(const tn_cuda_matrices *x) {
  uintptr_t all = (uintptr_t)x->a | (uintptr_t)x->b | (uintptr_t)x->c | (uintptr_t)x->d | (uintptr_t)x->aux |
                  (uintptr_t)x->bias;
  return all % WIDE_ALIGNMENT == 0;
}

static tn_status product_set_pointers(tn_env *env, const tn_cuda_product_plan *plan,
                                      const tn_cuda_matrices *x) {
  tn_status status = TN_OK;
  if (x->bias != NULL)
    status = product_set(env, plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &x->bias, sizeof x->bias);
  if (status == TN_OK && x->aux != NULL)
    status = product_set(env, plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &x->aux, sizeof x->aux);
  return status;
}

tn_status tn_cuda_product_run(tn_env *env, const tn_cuda_product_plan *plan, const tn_cuda_stream *stream,
                              const tn_cuda_matrices *matrices) {
  const tn_cuda_product *p = &plan->product;
  float one = 1, beta = p->reads_c ? 1 : 0;
  double one_f64 = 1, beta_f64 = (double)beta;
  bool f64 = p->dtype == TN_F64;
  void *workspace = (void *)(uintptr_t)round_up((int64_t)(uintptr_t)matrices->workspace, WORKSPACE_ALIGNMENT);
  const void *c = p->reads_c ? matrices->c : matrices->d;
  int32_t which = product_is_aligned(matrices) ? 0 : 1;
  if (!plan->has_algorithm[which])
    return tn_fail(env, TN_EUNSUPPORTED, NULL,
                   "cuBLASLt has no algorithm for this product with an operand whose alignment is below %d "
                   "bytes; align the operands",
                   WIDE_ALIGNMENT);
  TN_TRY(tn_cuda_enter(env, plan->device));
  TN_TRY(product_set_pointers(env, plan, matrices));
  return TN_LT(env, &plan->device->backend->libraries, cublasLtMatmul, plan->device->lt, plan->desc,
               f64 ? (const void *)&one_f64 : &one, matrices->b, plan->a, matrices->a, plan->b,
               f64 ? (const void *)&beta_f64 : &beta, c, plan->c, matrices->d, plan->d,
               &plan->algorithm[which], workspace, (size_t)matrices->workspace_bytes - WORKSPACE_ALIGNMENT,
               stream->stream);
}
