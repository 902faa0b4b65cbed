/* backends/cuda/kernels/reduce.h: the ops that reduce, for kernels with and without an epilogue. */
#pragma once

#include "backends/cuda/kernels/reduce_plan.h"

typedef struct tn_cuda_reduce_op {
  const char *op, *accumulator; /* the template of device/reduce.cuh */
  int32_t words;                /* of an accumulator */
  bool floats, extreme;
} tn_cuda_reduce_op;

/* NULL: the op is no reduction. */
const tn_cuda_reduce_op *tn_cuda_reduce_op_of(const char *op);
/* The reduction of a match of one node, whose operand lies as the variant says (image_layouts.h). False where
 * the operand has no such layout. */
bool tn_cuda_reduce_make(const tn_match *match, int32_t variant, tn_cuda_reduction *reduction);
/* TN_EUNSUPPORTED: the elements of q->match, of one node, or their number. */
tn_status tn_cuda_reduce_check(tn_query *q, const tn_cuda_reduction *reduction);
