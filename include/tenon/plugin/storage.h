/* tenon/plugin/storage.h: the storage axes of a layout (tenon/base.h), and the logical element at each
 * position, for kernels and backends that read memory on the host. Pure functions of their arguments. */
#ifndef TENON_PLUGIN_STORAGE_H
#define TENON_PLUGIN_STORAGE_H

#include <string.h>

#include "tenon/plugin/kernel.h"

TN_BEGIN_C

enum { TN_STORAGE_AXES = TN_MAX_RANK + TN_MAX_BLOCKS };

/* An axis counts `extent` positions; one step is `stride` positions of storage and `scale` elements of
 * logical dimension `dim`. */
typedef struct tn_storage_axis {
  int32_t dim;
  int64_t extent, stride, scale;
} tn_storage_axis;

typedef struct tn_storage {
  int32_t n;      /* axes, outermost first */
  int32_t padded; /* 1: some positions hold no element; they are zero */
  int64_t count;  /* positions */
  tn_storage_axis axis[TN_STORAGE_AXES];
} tn_storage;

/* Number of elements of a dimension that the blocks from `first` on cover. */
static inline int64_t tn_storage_covered(const tn_layout *layout, int32_t dim, int32_t first) {
  int64_t product = 1;
  for (int32_t i = first; i < layout->n_blocks; i++)
    if (layout->block[i].dim == dim) product *= layout->block[i].size;
  return product;
}

/* The storage of a type in a layout; an unset layout is row-major. */
static inline tn_storage tn_storage_of(const tn_type *type, const tn_layout *layout) {
  tn_layout plain = tn_layout_row_major(type->rank);
  tn_storage s;
  if (!layout->set) layout = &plain;
  memset(&s, 0, sizeof s);
  s.n = type->rank + layout->n_blocks;
  s.count = 1;
  for (int32_t i = 0; i < type->rank; i++) {
    tn_storage_axis *a = &s.axis[i];
    a->dim = layout->order[i];
    a->scale = tn_storage_covered(layout, a->dim, 0);
    a->extent = (type->dims[a->dim] + a->scale - 1) / a->scale;
    if (a->extent * a->scale != type->dims[a->dim]) s.padded = 1;
  }
  for (int32_t i = 0; i < layout->n_blocks; i++) {
    tn_storage_axis *a = &s.axis[type->rank + i];
    a->dim = layout->block[i].dim;
    a->extent = layout->block[i].size;
    a->scale = tn_storage_covered(layout, a->dim, i + 1);
  }
  for (int32_t i = s.n - 1; i >= 0; i--) {
    s.axis[i].stride = s.count;
    s.count *= s.axis[i].extent;
  }
  return s;
}

/* Position of the element with coordinate `at` in `dim` and 0 in the other dimensions. The position of an
 * element is the sum over its dimensions. */
static inline int64_t tn_storage_offset(const tn_storage *storage, int32_t dim, int64_t at) {
  int64_t offset = 0;
  for (int32_t i = 0; i < storage->n; i++) {
    const tn_storage_axis *a = &storage->axis[i];
    if (a->dim == dim) offset += at / a->scale % a->extent * a->stride;
  }
  return offset;
}

/* 1 where two storages of one type have every element at the same position. */
static inline int32_t tn_storage_same(const tn_storage *a, const tn_storage *b) {
  int32_t same = a->n == b->n;
  for (int32_t i = 0; same && i < a->n; i++)
    same = a->axis[i].dim == b->axis[i].dim && a->axis[i].extent == b->axis[i].extent &&
           a->axis[i].scale == b->axis[i].scale;
  return same;
}

/* A row is the positions along the innermost axis; a storage has count / extent rows. Writes the coordinates
 * of the first element of row `row` (TN_MAX_RANK of them) and returns the number of positions, from the first
 * on, that hold elements. The storage has at least one axis. */
static inline int64_t tn_storage_row(const tn_storage *storage, const tn_type *type, int64_t row,
                                     int64_t *coordinates) {
  const tn_storage_axis *inner = &storage->axis[storage->n - 1];
  memset(coordinates, 0, TN_MAX_RANK * sizeof *coordinates);
  for (int32_t i = storage->n - 2; i >= 0; i--) {
    const tn_storage_axis *a = &storage->axis[i];
    coordinates[a->dim] += row % a->extent * a->scale;
    row /= a->extent;
  }
  for (int32_t i = 0; i < type->rank; i++)
    if (coordinates[i] >= type->dims[i]) return 0;
  int64_t left = (type->dims[inner->dim] - coordinates[inner->dim] + inner->scale - 1) / inner->scale;
  return left < inner->extent ? left : inner->extent;
}

/* Zeroes the positions that hold no element. */
static inline void tn_storage_clear_padding(const tn_storage *storage, const tn_type *type, void *data) {
  if (!storage->padded || storage->count == 0) return;
  size_t size = tn_dtype_size(type->dtype);
  int64_t extent = storage->axis[storage->n - 1].extent, coordinates[TN_MAX_RANK];
  for (int64_t row = 0; row < storage->count / extent; row++) {
    int64_t held = tn_storage_row(storage, type, row, coordinates);
    memset((uint8_t *)data + (size_t)(row * extent + held) * size, 0, (size_t)(extent - held) * size);
  }
}

TN_END_C
#endif
