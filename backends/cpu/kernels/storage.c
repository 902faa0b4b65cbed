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

int64_t tn_storage_row(const tn_storage *storage, const tn_type *type, int64_t row, int64_t *coordinates) {
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

void tn_storage_clear_padding(const tn_storage *storage, const tn_type *type, void *data) {
  if (!storage->padded || storage->count == 0) return;
  size_t size = tn_dtype_size(type->dtype);
  int64_t extent = storage->axis[storage->n - 1].extent, coordinates[TN_MAX_RANK];
  for (int64_t row = 0; row < storage->count / extent; row++) {
    int64_t held = tn_storage_row(storage, type, row, coordinates);
    memset((uint8_t *)data + (size_t)(row * extent + held) * size, 0, (size_t)(extent - held) * size);
  }
}
