/* backends/shared/index_walk.h: the elements that `gather` and `scatter` name, as loops over merged
 * dimensions. `wide` is the tensor that is indexed: the operand of a gather, the result of a scatter. `reach`
 * has the dims of the elements that are named: the result of a gather, the updates of a scatter. */
#pragma once

#include "tenon/base.h"

typedef struct tn_index_walk {
  int32_t rank, axis;                              /* of the merged dimensions */
  int32_t vector;                                  /* the index has one number for each place of the axis */
  int64_t dims[TN_MAX_RANK], strides[TN_MAX_RANK]; /* of reach, and those of wide */
  int64_t reach_strides[TN_MAX_RANK], size;        /* size: of the axis of wide */
} tn_index_walk;

/* A dimension merges with the one before it if neither is the axis and reach has all of wide along it. */
static inline tn_index_walk tn_index_walk_make(const tn_type *wide, const tn_type *reach, int64_t axis,
                                               int32_t vector) {
  tn_index_walk w = {.vector = vector};
  int64_t stride = 1, reach_stride = 1, full[TN_MAX_RANK];
  if (axis < 0) axis += wide->rank;
  for (int32_t i = 0; i < wide->rank; i++) {
    int32_t mergeable = i > 0 && i != axis && i - 1 != axis && reach->dims[i] == wide->dims[i];
    if (i == axis) w.axis = w.rank;
    if (!mergeable) w.rank++;
    w.dims[w.rank - 1] = mergeable ? w.dims[w.rank - 1] * reach->dims[i] : reach->dims[i];
    full[w.rank - 1] = mergeable ? full[w.rank - 1] * wide->dims[i] : wide->dims[i];
  }
  for (int32_t i = w.rank - 1; i >= 0; i--) {
    w.strides[i] = stride;
    w.reach_strides[i] = reach_stride;
    stride *= full[i];
    reach_stride *= w.dims[i];
  }
  w.size = wide->dims[axis];
  return w;
}

/* Adds to *wide and *reach the positions of place `at` of the dimensions `from` .. `to` - 1. The axis adds
 * nothing to *wide. */
static inline void tn_index_walk_at(const tn_index_walk *w, int32_t from, int32_t to, int64_t at,
                                    int64_t *wide, int64_t *reach) {
  for (int32_t i = to - 1; i >= from; i--) {
    int64_t k = at % w->dims[i];
    at /= w->dims[i];
    *reach += k * w->reach_strides[i];
    if (i != w->axis) *wide += k * w->strides[i];
  }
}

/* The number of places of the dimensions `from` .. `to` - 1. */
static inline int64_t tn_index_walk_count(const tn_index_walk *w, int32_t from, int32_t to) {
  int64_t count = 1;
  for (int32_t i = from; i < to; i++) count *= w->dims[i];
  return count;
}
