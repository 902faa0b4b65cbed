#include "plugins/observers/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugins/observers/run_file.h"

int whole_file_make_folder(char *path) {
  for (char *c = path + 1;; c++) {
    if (*c != '/' && *c != '\0') continue;
    char end = *c;
    *c = '\0';
    if (mkdir(path, 0777) != 0 && errno != EEXIST) return 0;
    *c = end;
    if (end == '\0') return 1;
  }
}

static int whole_file_put(int fd, const char *bytes, size_t n) {
  while (n > 0) {
    ssize_t written = write(fd, bytes, n);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return 0;
    bytes += written;
    n -= (size_t)written;
  }
  return fsync(fd) == 0;
}

int whole_file_write(const char *path, const void *bytes, size_t n) {
  char temporary[WHOLE_FILE_PATH + 8];
  if (snprintf(temporary, sizeof temporary, "%s.tmp", path) >= (int)sizeof temporary)
    return errno = ENAMETOOLONG, 0;
  (void)unlink(temporary); /* of a process that was killed */
  int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd >= 0 && fd <= STDERR_FILENO) fd = run_file_move_up(fd);
  int fine = fd >= 0 && whole_file_put(fd, bytes, n), reason = errno;
  if (fd >= 0 && close(fd) != 0 && fine) fine = 0, reason = errno;
  if (fine && rename(temporary, path) == 0) return 1;
  if (fine) reason = errno;
  (void)unlink(temporary);
  errno = reason;
  return 0;
}
