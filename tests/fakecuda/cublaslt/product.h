/* tests/fakecuda/cublaslt/product.h: the reference code of a product, run on a stream by fakecuda_enqueue. */
#pragma once

#include "tests/fakecuda/cublaslt/algorithms.h"

/* Scalars are of the scale type: copies of the host's, or addresses in device memory. */
typedef struct fakelt_scalar {
  const void *device; /* NULL: `bits` holds the value */
  uint64_t bits;
} fakelt_scalar;

typedef struct fakelt_task {
  fakelt_problem problem;
  fakelt_algorithm algorithm;
  fakelt_scalar alpha, beta;
  const void *a, *b, *c;
  void *d, *workspace;
} fakelt_task;

/* Runs a fakelt_task; returns 0, or 1 where the host's memory is used up. */
int fakelt_run(void *task);
/* The same for products of f64. */
void fakelt_run_f64(const fakelt_task *task);

/* An element of f32, f16 or bf16 as f32, and back, rounded to nearest even. */
float fakelt_load(int32_t type, const void *base, int64_t index);
void fakelt_store(int32_t type, void *base, int64_t index, float value);

/* The epilogue of one matrix of the batch: `sums` holds the m x n sums of products, column after column. */
typedef struct fakelt_tail {
  const fakelt_task *task;
  int64_t item; /* of the batch */
  float alpha, beta;
  const float *sums;
  float *bias_gradient; /* m sums over D's columns */
} fakelt_tail;
void fakelt_finish(const fakelt_tail *tail);
