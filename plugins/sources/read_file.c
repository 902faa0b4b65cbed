/* plugins/sources/read_file.c: reads files into memory. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugins/sources/sources.h"

static tn_status io_error(const void *handle, const char *path, const char *what) {
  return tn_fail(handle, TN_EIO, NULL, "%s: cannot %s: %s", path, what, strerror(errno));
}

static tn_status read_file_fail_kind(const void *handle, const char *path, mode_t mode) {
  const char *kind = S_ISDIR(mode)    ? "a folder"
                     : S_ISFIFO(mode) ? "a FIFO"
                     : S_ISSOCK(mode) ? "a socket"
                                      : "a device";
  return tn_fail(handle, TN_EINVAL, NULL, "%s: is not a file of data but %s", path, kind);
}

/* Opening a FIFO or a device may wait or have effects, so the kind is looked at before. O_NONBLOCK is for a
 * file that is replaced in between; it has no effect on regular files. */
tn_status source_open_file(const void *handle, const char *path, int *fd) {
  struct stat info;
  *fd = -1;
  if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
    return read_file_fail_kind(handle, path, info.st_mode);
  *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  return *fd >= 0 ? TN_OK : io_error(handle, path, "open");
}

/* Reads until the end of the file or until the buffer is full, since the file may change meanwhile. */
static tn_status read_file_read_all(const void *handle, const char *path, int fd, uint8_t *bytes,
                                    size_t *count) {
  size_t wanted = *count;
  *count = 0;
  while (*count < wanted) {
    ssize_t n = read(fd, bytes + *count, wanted - *count);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(handle, path, "read");
    if (n == 0) break;
    *count += (size_t)n;
  }
  return TN_OK;
}

/* An empty file gets one byte, so that its pointer is not NULL. */
static tn_status read_open_file(const void *handle, const char *path, int fd, size_t limit,
                                tn_scratch *scratch, size_t *count) {
  struct stat info;
  if (fstat(fd, &info) != 0) return io_error(handle, path, "examine");
  if (!S_ISREG(info.st_mode)) return read_file_fail_kind(handle, path, info.st_mode);
  if ((uint64_t)info.st_size > limit)
    return tn_fail(handle, TN_EINVAL, NULL, "%s: has %lld bytes, expected at most %zu", path,
                   (long long)info.st_size, limit);
  *count = (size_t)info.st_size;
  uint8_t *bytes = tn_scratch_take(handle, scratch, *count > 0 ? *count : 1);
  return bytes != NULL ? read_file_read_all(handle, path, fd, bytes, count) : TN_ENOMEM;
}

tn_status source_scan_file(const void *handle, const char *path, size_t limit, tn_scratch *scratch,
                           const uint8_t **bytes, size_t *count) {
  *bytes = NULL;
  *count = 0;
  int fd;
  TN_TRY(source_open_file(handle, path, &fd));
  tn_status status = read_open_file(handle, path, fd, limit, scratch, count);
  close(fd);
  if (status == TN_OK) *bytes = scratch->memory;
  return status;
}

tn_status source_read_file(const void *handle, const char *path, size_t limit, uint8_t **bytes,
                           size_t *count) {
  tn_scratch own = {NULL, 0};
  const uint8_t *scanned;
  tn_status status = source_scan_file(handle, path, limit, &own, &scanned, count);
  *bytes = status == TN_OK ? own.memory : NULL;
  if (status != TN_OK) tn_delete(handle, own.memory);
  return status;
}
