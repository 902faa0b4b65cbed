/* plugins/sources/arrays/array_shape.c: the bytes of a shape. */
#include "plugins/sources/arrays/array.h"

int64_t array_bytes(const int64_t *dims, int32_t n, size_t element) {
  int64_t bytes = (int64_t)element;
  for (int32_t i = 0; i < n; i++)
    if (dims[i] < 0 || __builtin_mul_overflow(bytes, dims[i], &bytes)) return -1;
  return bytes;
}

tn_status array_check_bytes(const void *handle, const char *where, const array *a, uint64_t bytes) {
  int64_t wanted = array_bytes(a->dims, a->rank, a->element.size);
  if (wanted < 0)
    return tn_fail(handle, TN_EINVAL, NULL, "%s: its shape has more bytes than can be counted", where);
  if ((uint64_t)wanted == bytes) return TN_OK;
  return tn_fail(handle, TN_EINVAL, NULL,
                 "%s: has %llu bytes of data, but its shape and type need %lld: it is cut off or damaged",
                 where, (unsigned long long)bytes, (long long)wanted);
}
