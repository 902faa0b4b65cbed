/* backends/shared/matmul_batch.h: the batch dimensions of a matmul, in which operands are broadcast. */
#pragma once

#include "tenon/attributes.h"
#include "tenon/plugin/op.h"

/* The dimensions of the result before its last two, with the step of each operand in elements; 0 where the
 * operand is broadcast. */
typedef struct tn_matmul_batch {
  int32_t rank;
  int64_t dims[TN_MAX_RANK], a_step[TN_MAX_RANK], b_step[TN_MAX_RANK];
  int64_t products; /* of the batch */
  int64_t rows;     /* of the result of a product */
} tn_matmul_batch;

static inline int64_t tn_matmul_batch_count(const tn_type *type) {
  int64_t n = 1;
  for (int32_t i = 0; i < type->rank - 2; i++) n *= type->dims[i];
  return n;
}

/* The steps of an operand, whose dimensions are right-aligned with those of the result. */
static inline void tn_matmul_batch_steps(const tn_type *type, int32_t rank, int64_t *steps) {
  int64_t step = type->dims[type->rank - 1] * type->dims[type->rank - 2];
  for (int32_t i = 1; i <= rank; i++) {
    int32_t axis = type->rank - 2 - i;
    int64_t dim = axis >= 0 ? type->dims[axis] : 1;
    steps[rank - i] = dim == 1 ? 0 : step;
    step *= dim;
  }
}

/* With one b for all products, the rows of all a are adjacent and form one product, of rank 0. */
static inline tn_matmul_batch tn_matmul_batch_of(const tn_node *matmul) {
  const tn_type *a = matmul->in[0], *b = matmul->in[1], *y = &matmul->out[0];
  const tn_matmul_attributes *t = matmul->attributes;
  tn_matmul_batch batch = {
      .rank = y->rank - 2, .products = tn_matmul_batch_count(y), .rows = y->dims[y->rank - 2]};
  for (int32_t i = 0; i < batch.rank; i++) batch.dims[i] = y->dims[i];
  tn_matmul_batch_steps(a, batch.rank, batch.a_step);
  tn_matmul_batch_steps(b, batch.rank, batch.b_step);
  if (tn_matmul_batch_count(b) == 1 && tn_matmul_batch_count(a) == batch.products && !t->transpose_a) {
    batch.rows *= batch.products;
    batch.products = 1;
    batch.rank = 0;
  }
  return batch;
}

/* The first elements of the operands of a product, by its number. */
static inline void tn_matmul_batch_at(const tn_matmul_batch *batch, int64_t product, int64_t *a, int64_t *b) {
  *a = *b = 0;
  for (int32_t i = batch->rank - 1; i >= 0; i--) {
    int64_t index = product % batch->dims[i];
    product /= batch->dims[i];
    *a += index * batch->a_step[i];
    *b += index * batch->b_step[i];
  }
}
