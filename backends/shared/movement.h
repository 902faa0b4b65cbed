/* backends/shared/movement.h: ops that move elements as strided copies, one for each operand. */
#pragma once

#include "tenon/plugin/kernel.h"

/* A copy of an array of `dims` between strides in elements, outermost dimension of the result first.
 * Dimensions of one index are left out, and adjacent ones are merged where both sides allow it, so the rank
 * is small; it is at least 1. */
typedef struct tn_movement {
  int32_t rank;
  int64_t dims[TN_MAX_RANK], to[TN_MAX_RANK], from[TN_MAX_RANK];
  int64_t to_first, from_first; /* the elements at which it begins */
} tn_movement;

tn_movement tn_movement_make(int32_t rank, const int64_t *dims, const int64_t *to, const int64_t *from);

tn_movement tn_movement_of_transpose(const tn_node *transpose);
tn_movement tn_movement_of_slice(const tn_node *slice);
/* The rest of the result is zeros. */
tn_movement tn_movement_of_pad(const tn_node *pad);
/* An operand of type `type` that begins at index `before` of dimension `axis` of the result. */
tn_movement tn_movement_beside(const tn_type *type, const tn_type *result, int32_t axis, int64_t before);

/* The dimension along which a concat joins, from 0. */
int32_t tn_movement_axis(const tn_node *concat);
