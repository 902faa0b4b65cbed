/* backends/cuda/products/product.h: products of matrices by cuBLASLt. */
#pragma once

#include "backends/cuda/objects.h"

/* d = epilogue(op(a) op(b) + c), row-major: op(a) is m x k, op(b) k x n, c and d are m x n. cuBLASLt counts
 * columns first, so it gets the transposed product, with the operands exchanged. */
typedef struct tn_cuda_product {
  int32_t dtype; /* of a and b: f16, bf16, f32, f64 */
  int32_t wide;  /* of c, d, bias and the auxiliary matrix: dtype, or f32 for f16 and bf16 */
  bool tf32;     /* operands of f32 are rounded to tf32 */
  bool transpose_a, transpose_b;
  bool reads_c;
  int64_t m, n, k;
  int64_t row_a, row_d; /* elements from one row to the next, of a, and of d; rows of b and c have no gaps */
  int64_t batch;        /* products, the operands of which are so far apart, in elements: */
  int64_t step_a, step_b, step_c, step_d; /* 0: the same operand for all */
  cublasLtEpilogue_t epilogue;            /* with a bias of n elements, or an auxiliary matrix like d */
} tn_cuda_product;

enum { TN_CUDA_ALIGNMENTS = 2 };

/* A product whose algorithms are chosen. */
typedef struct tn_cuda_product_plan {
  const tn_cuda_device *device;
  tn_cuda_product product;
  cublasLtMatmulDesc_t desc;
  cublasLtMatrixLayout_t a, b, c, d;
  /* For operands aligned to 16 bytes, and to their elements alone. cuBLASLt may have none of the latter. */
  cublasLtMatmulAlgo_t algorithm[TN_CUDA_ALIGNMENTS];
  bool has_algorithm[TN_CUDA_ALIGNMENTS];
} tn_cuda_product_plan;

/* The device addresses of a launch. */
typedef struct tn_cuda_matrices {
  const void *a, *b, *c;
  void *d;
  const void *bias; /* or the result of a bias gradient */
  const void *aux;
  void *workspace;
  int64_t workspace_bytes;
} tn_cuda_matrices;

/* Workspace that an algorithm may use: enough for the partial sums of a product whose depth is split. */
int64_t tn_cuda_product_workspace(const tn_cuda_product *product);
/* Chooses algorithm number `rank`, from 0, of those that cuBLASLt names best first. TN_EUNSUPPORTED: there
 * are not so many, or cuBLASLt refuses the product by whichever code. Close the plan in either case. */
tn_status tn_cuda_product_open(tn_env *env, const tn_cuda_device *device, const tn_cuda_product *product,
                               int32_t rank, tn_cuda_product_plan *plan);
void tn_cuda_product_close(tn_cuda_product_plan *plan);
/* Enqueues the product. TN_EUNSUPPORTED: an operand is less aligned than any algorithm takes. */
tn_status tn_cuda_product_run(tn_env *env, const tn_cuda_product_plan *plan, const tn_cuda_stream *stream,
                              const tn_cuda_matrices *matrices);
