/* core/base/file/unnamed_file.c: see unnamed_file.h. O_TMPFILE makes such a file; where a file system has it
 * not, a file loses its temporary name before anything is written. */
#include "core/base/file/unnamed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/file/file.h"
#include "core/base/text/text.h"

static int unnamed_open_named(const void *handle, const char *folder) {
  tn_text path = tn_text_new(handle);
  tn_text_addf(&path, "%s/.tenon-XXXXXX", folder);
  int fd = path.failed ? -1 : mkostemp(path.v, O_CLOEXEC);
  if (path.failed) errno = ENOMEM;
  if (fd >= 0) unlink(path.v);
  int reason = errno;
  tn_text_free(&path);
  errno = reason;
  return fd;
}

static int unnamed_open(const void *handle, const char *folder) {
  int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
    fd = unnamed_open_named(handle, folder);
  return tn_descriptor_move_up(fd);
}

/* For errno. */
static tn_status unnamed_fail(const void *handle, const char *folder, size_t bytes) {
  char what[64];
  int reason = errno;
  snprintf(what, sizeof what, "the place of a file of %zu bytes", bytes);
  errno = reason;
  return tn_file_fail(handle, folder, what);
}

/* posix_fallocate returns its reason. */
static int unnamed_reserve(int fd, size_t bytes) {
  tn_file_limit limit;
  tn_file_limit_begin(&limit);
  int reason = posix_fallocate(fd, 0, (off_t)bytes);
  tn_file_limit_end(&limit, reason == EFBIG);
  errno = reason;
  return reason == 0 ? 0 : -1;
}

tn_status tn_unnamed_file_map(const void *handle, const char *folder, size_t bytes, void **address) {
  *address = NULL;
  if (bytes == 0) return TN_OK;
  void *at = MAP_FAILED;
  int fd = unnamed_open(handle, folder);
  if (fd >= 0 && unnamed_reserve(fd, bytes) == 0)
    at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  int reason = errno;
  if (fd >= 0) close(fd);
  errno = reason;
  if (at == MAP_FAILED) return unnamed_fail(handle, folder, bytes);
  *address = at;
  return TN_OK;
}

void tn_unnamed_file_unmap(void *address, size_t bytes) {
  if (address != NULL) munmap(address, bytes);
}
