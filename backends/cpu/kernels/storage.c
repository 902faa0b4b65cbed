#include "kernels/storage.h"

#include <string.h>

/* How many elements of a dimension the blocks from `first` on cover. */
static int64_t block_product(const tn_layout *layout, int32_t dim, int32_t first) {
  int64_t product = 1;
  for (int32_t i = first; i < layout->n_blocks; i++)
    if (layout->block[i].dim == dim) product *= layout->block[i].size;
  return product;
}

tn_storage tn_storage_of(const tn_type *type, const tn_layout *layout) {
  tn_layout plain = tn_layout_row_major(type->rank);
  if (!layout->set) layout = &plain;
  tn_storage s = {.n = type->rank + layout->n_blocks, .count = 1};
  for (int32_t i = 0; i < type->rank; i++) {
    int32_t dim = layout->order[i];
    int64_t block = block_product(layout, dim, 0), blocks = (type->dims[dim] + block - 1) / block;
    s.axis[i] = (tn_storage_axis){.dim = dim, .extent = blocks, .scale = block};
    if (blocks * block != type->dims[dim]) s.padded = 1;
  }
  for (int32_t i = 0; i < layout->n_blocks; i++) {
    tn_block b = layout->block[i];
    s.axis[type->rank + i] =
        (tn_storage_axis){.dim = b.dim, .extent = b.size, .scale = block_product(layout, b.dim, i + 1)};
  }
  for (int32_t i = s.n - 1; i >= 0; i--) {
    s.axis[i].stride = s.count;
    s.count *= s.axis[i].extent;
  }
  return s;
}

int64_t tn_storage_offset(const tn_storage *storage, int32_t dim, int64_t at) {
  int64_t offset = 0;
  for (int32_t i = 0; i < storage->n; i++) {
    const tn_storage_axis *a = &storage->axis[i];
    if (a->dim == dim) offset += at / a->scale % a->extent * a->stride;
  }
  return offset;
}

/* Whether position `at` holds an element. */
static int32_t holds(const tn_storage *storage, const tn_type *type, int64_t at) {
  int64_t coordinate[TN_MAX_RANK] = {0};
  for (int32_t i = 0; i < storage->n; i++) {
    const tn_storage_axis *a = &storage->axis[i];
    coordinate[a->dim] += at / a->stride % a->extent * a->scale;
  }
  for (int32_t i = 0; i < type->rank; i++)
    if (coordinate[i] >= type->dims[i]) return 0;
  return 1;
}

void tn_storage_clear_padding(const tn_storage *storage, const tn_type *type, void *data) {
  size_t size = tn_dtype_size(type->dtype);
  if (!storage->padded) return;
  for (int64_t at = 0; at < storage->count; at++)
    if (!holds(storage, type, at)) memset((uint8_t *)data + (size_t)at * size, 0, size);
}
