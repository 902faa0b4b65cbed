/* backends/cpu/kernels/storage.h: a layout (tenon/base.h) as arithmetic: which storage axes there are
 * and which logical element each position holds. */
#ifndef TN_CPU_STORAGE_H
#define TN_CPU_STORAGE_H

#include "tenon/plugin/kernel.h"

enum { TN_STORAGE_AXES = TN_MAX_RANK + TN_MAX_BLOCKS };

/* An axis counts `extent` positions; one step is `stride` positions of storage and `scale` elements of
 * logical dimension `dim`. */
typedef struct tn_storage_axis {
  int32_t dim;
  int64_t extent, stride, scale;
} tn_storage_axis;

typedef struct tn_storage {
  int32_t n;      /* axes, outermost first */
  int32_t padded; /* some positions hold no element: they are zero */
  int64_t count;  /* positions */
  tn_storage_axis axis[TN_STORAGE_AXES];
} tn_storage;

/* An unset layout is row-major. */
tn_storage tn_storage_of(const tn_type *type, const tn_layout *layout);

/* The position in storage of the element whose coordinate in `dim` is `at` and 0 elsewhere; positions
 * of several dimensions add up. */
int64_t tn_storage_offset(const tn_storage *storage, int32_t dim, int64_t at);

/* A row is the positions along the innermost axis; there are count / extent of it. Writes the
 * coordinates at which row `row` begins and returns how many of its positions, from the first on, hold
 * elements. */
int64_t tn_storage_row(const tn_storage *storage, const tn_type *type, int64_t row, int64_t *coordinates);

/* Zeroes the positions that hold no element. */
void tn_storage_clear_padding(const tn_storage *storage, const tn_type *type, void *data);

#endif
