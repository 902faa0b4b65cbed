/* backends/onednn/kernels/matmul.h: products of matrices, between query and prepare (matmul.c) and launch
 * (matmul_run.c). */
#pragma once

#include "backends/onednn/kernels/gemm/gemm.h"
#include "backends/shared/matmul_batch.h"

enum { TN_MATMUL_RESULTS = 3 /* of a split, at most */ };

/* The ops that a kernel fuses with the product. */
enum {
  TN_MATMUL_PLAIN,
  TN_MATMUL_RELU,
  TN_MATMUL_RELU_GRAD,
  TN_MATMUL_BIAS_GRAD,
  TN_MATMUL_ADD,
  TN_MATMUL_GELU,
  TN_MATMUL_GELU_GRAD,
  TN_MATMUL_SPLIT,
  TN_MATMUL_CAST
};

typedef struct tn_matmul_kernel {
  tn_gemm_partition partition;
  const tn_gemm_loops *loops;
  int32_t kind, approximate; /* TN_MATMUL_...; GELU's attribute */
  tn_matmul_batch batch;
  int64_t start[TN_MATMUL_RESULTS]; /* of a split: the first column of each */
} tn_matmul_kernel;

tn_status tn_matmul_launch(tn_launch *l);
/* Makes the panels of a constant B. */
tn_status tn_matmul_fold(tn_launch *l);
