/* core/formats/input.c: random-access reads, and checks that the readers share. */
#include "core/formats/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include "core/base/file/file.h"

tn_status tn_input_open(const void *handle, const char *path, tn_input *input) {
  tn_open_file file;
  *input = (tn_input){.fd = -1};
  TN_TRY(tn_file_open(handle, path, O_RDONLY, &file));
  *input = (tn_input){.fd = file.fd, .path = tn_strdup(handle, path), .bytes = file.bytes};
  if (input->path != NULL) return TN_OK;
  tn_input_close(handle, input);
  return TN_ENOMEM;
}

void tn_input_close(const void *handle, tn_input *input) {
  if (input->fd >= 0) close(input->fd);
  tn_release(handle, input->path);
  *input = (tn_input){.fd = -1};
}

tn_status tn_input_read(const tn_input *input, const void *handle, uint64_t offset, void *to, size_t count) {
  char *p = to;
  while (count > 0) {
    ssize_t n = pread(input->fd, p, count < (1u << 30) ? count : (1u << 30), (off_t)offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return tn_file_fail(handle, input->path, "read");
    if (n == 0)
      return tn_failf(handle, TN_EIO, "%s: ended at byte %llu while it was read", input->path,
                      (unsigned long long)offset);
    p += n;
    offset += (uint64_t)n;
    count -= (size_t)n;
  }
  return TN_OK;
}

bool tn_checked_bytes(const int64_t *dims, int32_t rank, size_t element, int64_t *bytes) {
  int64_t product = 1;
  bool overflow = rank < 0 || rank > TN_MAX_RANK, empty = false;
  for (int32_t i = 0; i < rank && !overflow; i++) {
    overflow = dims[i] < 0;
    if (dims[i] == 0) empty = true;
    if (dims[i] != 0) overflow |= __builtin_mul_overflow(product, dims[i], &product);
  }
  overflow |= __builtin_mul_overflow(product, (int64_t)element, &product);
  *bytes = empty ? 0 : product;
  return !overflow;
}

tn_status tn_check_bools(const void *handle, const char *path, const char *name, const void *bytes,
                         size_t count) {
  const unsigned char *v = bytes;
  for (size_t i = 0; i < count; i++)
    if (v[i] > 1)
      return tn_failf(handle, TN_EINVAL,
                      "%s%s%.100s: element %zu is %u, expected 0 or 1, as its type is bool", path,
                      name[0] != '\0' ? ": " : "", name, i, v[i]);
  return TN_OK;
}
