/* core/exec/stored_copy.c: copies elements between storage in a layout and row-major memory. */
#include "core/exec/stored_copy.h"

#include <string.h>

#include "tenon/plugin/storage.h"

/* Copies n elements between contiguous storage and a row-major tensor with `step` elements between them. */
static void copy_strided(void *stored, void *plain, int64_t n, int64_t step, size_t size, bool store) {
  for (int64_t k = 0; k < n; k++) {
    char *at_stored = (char *)stored + (size_t)k * size,
         *at_plain = (char *)plain + (size_t)(k * step) * size;
    memcpy(store ? at_stored : at_plain, store ? at_plain : at_stored, size);
  }
}

static void copy_rows(const tn_type *type, const tn_storage *storage, void *stored, void *plain, bool store) {
  const tn_storage_axis *inner = &storage->axis[storage->n - 1];
  size_t size = tn_dtype_size(type->dtype);
  int64_t stride[TN_MAX_RANK], at[TN_MAX_RANK], count = 1;
  for (int32_t i = type->rank; i-- > 0; count *= type->dims[i]) stride[i] = count;
  for (int64_t row = 0; row < storage->count / inner->extent; row++) {
    int64_t held = tn_storage_row(storage, type, row, at), first = 0;
    for (int32_t i = 0; i < type->rank; i++) first += at[i] * stride[i];
    copy_strided((char *)stored + (size_t)(row * inner->extent) * size, (char *)plain + (size_t)first * size,
                 held, stride[inner->dim] * inner->scale, size, store);
  }
}

void tn_stored_copy(const tn_type *type, const tn_layout *layout, void *stored, void *plain, bool store) {
  size_t bytes = tn_type_bytes(type);
  if (bytes == 0) return;
  if (layout->set && !tn_layout_is_row_major(layout, type->rank)) {
    tn_storage storage = tn_storage_of(type, layout);
    copy_rows(type, &storage, stored, plain, store);
    return;
  }
  memcpy(store ? stored : plain, store ? plain : stored, bytes);
}
