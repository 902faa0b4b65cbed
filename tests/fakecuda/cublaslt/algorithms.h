/* tests/fakecuda/cublaslt/algorithms.h: the algorithms of the double. They differ in the order of their sums,
 * in the alignment and in the workspace that they need; each gives the same bits in every run. */
#pragma once

#include "tests/fakecuda/cublaslt/problem.h"

enum { FAKELT_WORKSPACE_ALIGNMENT = 256 };

typedef struct fakelt_algorithm {
  int32_t id;
  int32_t block;     /* products summed before their sum is added to the rest */
  int32_t splits;    /* parts of k, summed apart */
  uint32_t scheme;   /* cublasLtReductionScheme_t */
  int64_t alignment; /* of pointers, leading dimensions and strides, in bytes; 0: an element */
  int64_t scratch;   /* bytes of workspace beside partial sums */
  uint32_t tile, stages;
} fakelt_algorithm;

/* NULL, with a reason kept: `algo` is no algorithm, or one that is bound to another problem. */
const fakelt_algorithm *fakelt_bound_algorithm(const cublasLtMatmulAlgo_t *algo,
                                               const fakelt_problem *problem);
/* The quickest for these alignments (bytes; A, B, C, D) within the workspace; NULL: none fits. */
const fakelt_algorithm *fakelt_implicit_algorithm(const fakelt_problem *problem, const int64_t alignment[4],
                                                  uint64_t workspace);
/* Bytes that an operand, or bias and aux, must be aligned to. */
int64_t fakelt_alignment(const fakelt_algorithm *algorithm, int32_t type);
int64_t fakelt_aux_alignment(void);
/* Bytes of workspace. */
uint64_t fakelt_workspace(const fakelt_algorithm *algorithm, const fakelt_problem *problem);
/* The largest power of two, up to 256, that divides an address. */
int64_t fakelt_alignment_of(const void *pointer);
