/* core/ops/statistics.h: private to core/ops: what statistics.c and order_statistics.c share. */
#pragma once

#include "core/ops/common.h"

/* Operand 0 of a decomposition, and its axes that are reduced. */
typedef struct tn_statistic {
  tn_type x;
  bool reduced[TN_MAX_RANK];
  double count; /* elements that are reduced to one */
  int32_t keep;
  int32_t axis; /* of tn_statistic_along */
} tn_statistic;

tn_status tn_statistic_begin(tn_build *b, const tn_reduce_attributes *a, tn_statistic *s);
/* Of one axis, which stays as 1. */
tn_status tn_statistic_along(tn_build *b, int64_t axis, tn_statistic *s);
/* y, with the reduced axes as 1, in the dims and dtype of the result. */
tn_status tn_statistic_yield(tn_build *b, const tn_statistic *s, tn_val y, int32_t dtype);

void tn_statistic_cost(const tn_node *n, tn_cost *cost);

#define TN_STATISTIC_OP(name, doc, struct_, options, schema, ...)                                            \
  TN_OPS_COMPOSITE(name, doc, struct_, options, TN_CLASS_REDUCE, schema, .cost = tn_statistic_cost,          \
                   __VA_ARGS__)
