#include "own/padding.h"

#include <string.h>

enum { AXES = TN_MAX_RANK + TN_MAX_BLOCKS };

/* An axis of storage counts `extent` positions, each `scale` elements of dimension `dim`. */
typedef struct axis {
  int32_t dim;
  int64_t extent, scale;
} axis;

/* How many elements of a dimension the blocks from `first` on cover. */
static int64_t covered(const tn_layout *layout, int32_t dim, int32_t first) {
  int64_t product = 1;
  for (int32_t i = first; i < layout->n_blocks; i++)
    if (layout->block[i].dim == dim) product *= layout->block[i].size;
  return product;
}

static int32_t axes_of(const tn_type *type, const tn_layout *layout, axis *axes) {
  for (int32_t i = 0; i < type->rank; i++) {
    int32_t dim = layout->order[i];
    int64_t block = covered(layout, dim, 0);
    axes[i] = (axis){dim, (type->dims[dim] + block - 1) / block, block};
  }
  for (int32_t i = 0; i < layout->n_blocks; i++) {
    const tn_block *b = &layout->block[i];
    axes[type->rank + i] = (axis){b->dim, b->size, covered(layout, b->dim, i + 1)};
  }
  return type->rank + layout->n_blocks;
}

bool tn_padding_is(const tn_type *type, const tn_layout *layout) {
  for (int32_t i = 0; i < layout->n_blocks; i++) {
    int32_t dim = layout->block[i].dim;
    if (type->dims[dim] % covered(layout, dim, 0) != 0) return true;
  }
  return false;
}

static bool holds_element(const tn_type *type, const axis *axes, int32_t n, int64_t at) {
  int64_t coordinates[TN_MAX_RANK] = {0};
  for (int32_t i = n - 1; i >= 0; i--) {
    coordinates[axes[i].dim] += at % axes[i].extent * axes[i].scale;
    at /= axes[i].extent;
  }
  for (int32_t i = 0; i < type->rank; i++)
    if (coordinates[i] >= type->dims[i]) return false;
  return true;
}

void tn_padding_clear(const tn_type *type, const tn_layout *layout, void *data) {
  axis axes[AXES];
  int32_t n = axes_of(type, layout, axes);
  size_t size = tn_dtype_size(type->dtype);
  int64_t count = 1;
  for (int32_t i = 0; i < n; i++) count *= axes[i].extent;
  for (int64_t at = 0; at < count; at++)
    if (!holds_element(type, axes, n, at)) memset((uint8_t *)data + (size_t)at * size, 0, size);
}
