/* tests/fakecuda/cublaslt/problem.h: a product as its descriptors say it, checked: D = epilogue(alpha op(A)
 * op(B) + beta C) with D of m x n and k the length of the sums. */
#pragma once

#include <stdbool.h>
#include <cublasLt.h>

enum { FAKELT_A, FAKELT_B, FAKELT_C, FAKELT_D, FAKELT_OPERANDS };

/* A matrix in memory, before the transpose. */
typedef struct fakelt_matrix {
  int32_t type, row_major;
  int64_t rows, columns, ld, stride; /* stride: of the batch, in elements */
} fakelt_matrix;

typedef struct fakelt_problem {
  fakelt_matrix matrix[FAKELT_OPERANDS];
  int64_t m, n, k, batch;
  int32_t compute, scale, pointer_mode, transposed[2];
  uint32_t epilogue;
  int64_t bias_stride, aux_ld, aux_stride;
  void *bias, *aux;
} fakelt_problem;

/* The descriptors of a product as the entry points receive them. */
typedef struct fakelt_descriptors {
  cublasLtMatmulDesc_t desc;
  cublasLtMatrixLayout_t layout[FAKELT_OPERANDS];
} fakelt_descriptors;

/* Reads and checks; a refusal is kept by fakelt_refuse. Bytes of `problem` between its members are 0. */
cublasStatus_t fakelt_read_problem(const fakelt_descriptors *from, fakelt_problem *problem);

int64_t fakelt_type_bytes(int32_t type);
/* Bytes from the first to the last element of all matrices of the batch. */
int64_t fakelt_matrix_bytes(const fakelt_matrix *matrix, int64_t batch);

/* Parts of an epilogue. */
bool fakelt_reads_bias(uint32_t epilogue);
bool fakelt_writes_bias_gradient(uint32_t epilogue); /* of D's rows, op(A)'s rows or op(B)'s columns */
bool fakelt_has_aux(uint32_t epilogue);
bool fakelt_aux_is_mask(uint32_t epilogue);
/* Elements of the bias, or of its gradient. */
int64_t fakelt_bias_length(const fakelt_problem *problem);
int64_t fakelt_bias_bytes(const fakelt_problem *problem);
int64_t fakelt_aux_bytes(const fakelt_problem *problem);
