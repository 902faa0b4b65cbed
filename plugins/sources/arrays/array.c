/* plugins/sources/arrays/array.c: opens an array by the ending of its file. */
#include "plugins/sources/arrays/array.h"

#include <string.h>

/* Rows without a header, or behind `skip` bytes. */
static tn_status array_find_raw(const void *handle, const array_place *p, array *a) {
  int64_t row = array_bytes(p->raw_dims, p->raw_rank, p->raw.size);
  if (p->raw.kind == ELEMENT_NONE)
    return tn_fail(handle, TN_EINVAL, NULL,
                   "%s: is neither .npy, .npz nor .safetensors, expected the type of a row behind it, as in "
                   "%s u8[28, 28]",
                   p->path, p->path);
  if (row <= 0) return tn_fail(handle, TN_EINVAL, NULL, "%s: its rows have no bytes, or too many", p->path);
  uint64_t rest = a->file.count - (uint64_t)p->skip;
  if ((uint64_t)p->skip > a->file.count || rest % (uint64_t)row != 0)
    return tn_fail(
        handle, TN_EINVAL, NULL,
        "%s: has %zu bytes, expected %lld in front of rows of %lld; +BYTES behind the type says how "
        "many the header has",
        p->path, a->file.count, (long long)p->skip, (long long)row);
  a->data = a->file.bytes + p->skip;
  a->element = p->raw;
  a->rank = p->raw_rank + 1;
  a->dims[0] = (int64_t)(rest / (uint64_t)row);
  for (int32_t i = 0; i < p->raw_rank; i++) a->dims[i + 1] = p->raw_dims[i];
  return TN_OK;
}

static int32_t array_ends(const char *path, const char *ending) {
  size_t n = strlen(path), m = strlen(ending);
  return n >= m && strcmp(path + n - m, ending) == 0;
}

static tn_status array_find(const void *handle, const array_place *p, array *a) {
  int32_t npy = array_ends(p->path, ".npy"), npz = array_ends(p->path, ".npz"),
          tensors = array_ends(p->path, ".safetensors");
  if ((npy || npz || tensors) && (p->raw.kind != ELEMENT_NONE || p->skip > 0))
    return tn_fail(
        handle, TN_EINVAL, NULL,
        "%s: says the type of its numbers itself, expected nothing about it; `as f32[3, 8]` behind "
        "the file reads them as another type or in other dimensions",
        p->path);
  if (npy) return npy_find(handle, p->path, a->file.bytes, a->file.count, a);
  if (npz) return npz_find(handle, p, a);
  return tensors ? safetensors_find(handle, p, a) : array_find_raw(handle, p, a);
}

tn_status array_open(const void *handle, const array_place *place, array *a) {
  *a = (array){.unpacked = NULL};
  TN_TRY(mapped_open(handle, place->path, &a->file));
  tn_status status = array_find(handle, place, a);
  if (status == TN_OK && (a->rank < 1 || a->dims[0] < 1))
    status = tn_fail(handle, TN_EINVAL, NULL, "%s: has no rows, expected some in its first dimension",
                     place->path);
  if (status != TN_OK) array_close(handle, a);
  return status;
}

void array_close(const void *handle, array *a) {
  tn_delete(handle, a->unpacked);
  a->unpacked = NULL;
  mapped_close(&a->file);
}
