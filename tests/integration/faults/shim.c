/* tests/integration/faults/shim.c: a disk that fails once, for LD_PRELOAD. It counts the calls on files and
 * folders whose path contains TENON_FAULT_ROOT; number TENON_FAULT_AT ("3"; "3+": and all later ones) fails
 * as TENON_FAULT_KIND says: ENOSPC, EIO, EACCES; "short": half of the bytes are written; "full": half are
 * written, and the next write fails with ENOSPC. TENON_FAULT_LOG names a file that gets a line for each call.
 */
#undef _FILE_OFFSET_BITS /* each function by its name */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { MOST_FILES = 1024 };

/* Descriptors of matching files. */
static atomic_char watched[MOST_FILES];
static atomic_int calls, filled;

/* The function of the C library. */
#define NEXT(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))

static int is_watched(int fd) { return fd >= 0 && fd < MOST_FILES && watched[fd]; }

static int matches(const char *path) {
  const char *root = getenv("TENON_FAULT_ROOT");
  return root && path && strstr(path, root) != NULL;
}

static void note(int number, const char *call, const char *path) {
  const char *log = getenv("TENON_FAULT_LOG");
  char line[512];
  if (log == NULL) return;
  int fd = NEXT(open)(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  int n = snprintf(line, sizeof line, "%d %s %s\n", number, call, path);
  if (fd >= 0 && NEXT(write)(fd, line, (size_t)n) < 0) abort();
  if (fd >= 0) NEXT(close)(fd);
}

static const char *kind(void) {
  const char *word = getenv("TENON_FAULT_KIND");
  return word ? word : "EIO";
}

/* Counts a call; true: it fails. */
static int is_due(const char *call, const char *path) {
  const char *at = getenv("TENON_FAULT_AT");
  int number = atomic_fetch_add(&calls, 1) + 1, first = at ? atoi(at) : 0;
  note(number, call, path);
  return first == number || (first > 0 && first < number && strchr(at, '+') != NULL);
}

static int halves(void) { return strcmp(kind(), "short") == 0 || strcmp(kind(), "full") == 0; }

/* Fails a call that writes no bytes, with errno set. */
static int fails(const char *call, const char *path) {
  if (!is_due(call, path)) return 0;
  if (strcmp(kind(), "short") == 0) return 0;
  errno = strcmp(kind(), "EACCES") == 0 ? EACCES : strcmp(kind(), "EIO") == 0 ? EIO : ENOSPC;
  return 1;
}

#pragma GCC visibility push(default)

/* ---- files ---- */

static int opened(int fd, int match) {
  if (fd >= 0 && fd < MOST_FILES) watched[fd] = (char)match;
  return fd;
}

static mode_t mode_of(int flags, va_list args) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

/* TENON_LATE_READER: a training ends its save just before a file of NAME.new is opened. */
static void end_save(const char *path) {
  if (getenv("TENON_LATE_READER") != NULL && strstr(path, ".new/") != NULL) NEXT(unlink)(path);
}

int open(const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  mode_t mode = mode_of(flags, args);
  va_end(args);
  end_save(path);
  if (matches(path) && fails("open", path)) return -1;
  return opened(NEXT(open)(path, flags, mode), matches(path));
}

int open64(const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  mode_t mode = mode_of(flags, args);
  va_end(args);
  end_save(path);
  if (matches(path) && fails("open", path)) return -1;
  return opened(NEXT(open64)(path, flags, mode), matches(path));
}

int mkostemp(char *path, int flags) {
  if (matches(path) && fails("mkostemp", path)) return -1;
  return opened(NEXT(mkostemp)(path, flags), matches(path));
}

int mkostemp64(char *path, int flags) {
  if (matches(path) && fails("mkostemp", path)) return -1;
  return opened(NEXT(mkostemp64)(path, flags), matches(path));
}

int close(int fd) {
  int fail = is_watched(fd) && fails("close", "");
  int reason = errno;
  if (fd >= 0 && fd < MOST_FILES) watched[fd] = 0;
  int result = NEXT(close)(fd); /* the write-back fails; the descriptor is closed nevertheless */
  if (fail) errno = reason;
  return fail ? -1 : result;
}

ssize_t write(int fd, const void *bytes, size_t count) {
  if (!is_watched(fd)) return NEXT(write)(fd, bytes, count);
  if (atomic_exchange(&filled, 0)) return errno = ENOSPC, -1;
  if (!is_due("write", "")) return NEXT(write)(fd, bytes, count);
  if (halves() && count > 1) {
    atomic_store(&filled, strcmp(kind(), "full") == 0);
    return NEXT(write)(fd, bytes, count / 2);
  }
  errno = strcmp(kind(), "EACCES") == 0 ? EACCES : strcmp(kind(), "EIO") == 0 ? EIO : ENOSPC;
  return -1;
}

int fsync(int fd) { return is_watched(fd) && fails("fsync", "") ? -1 : NEXT(fsync)(fd); }
int fdatasync(int fd) { return is_watched(fd) && fails("fdatasync", "") ? -1 : NEXT(fdatasync)(fd); }
int ftruncate(int fd, off_t n) {
  return is_watched(fd) && fails("ftruncate", "") ? -1 : NEXT(ftruncate)(fd, n);
}
int ftruncate64(int fd, off64_t n) {
  return is_watched(fd) && fails("ftruncate", "") ? -1 : NEXT(ftruncate64)(fd, n);
}

/* TENON_NO_LOCKS: a file system without locks. */
int flock(int fd, int how) {
  if (getenv("TENON_NO_LOCKS") == NULL) return NEXT(flock)(fd, how);
  errno = ENOLCK;
  return -1;
}

/* TENON_NO_ROOM: a file system with 100 free bytes. */
int statvfs(const char *path, struct statvfs *room) {
  int failed = NEXT(statvfs)(path, room);
  if (getenv("TENON_NO_ROOM") == NULL) return failed;
  room->f_frsize = 1;
  room->f_bavail = 100;
  return failed;
}

int statvfs64(const char *path, struct statvfs64 *room) {
  int failed = NEXT(statvfs64)(path, room);
  if (getenv("TENON_NO_ROOM") == NULL) return failed;
  room->f_frsize = 1;
  room->f_bavail = 100;
  return failed;
}

/* ---- names ---- */

int rename(const char *from, const char *to) {
  return matches(from) && fails("rename", from) ? -1 : NEXT(rename)(from, to);
}

/* TENON_NO_EXCHANGE: a file system without renameat2. */
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
  if (getenv("TENON_NO_EXCHANGE")) return errno = EINVAL, -1;
  return matches(from) && fails("renameat2", from) ? -1 : NEXT(renameat2)(a, from, b, to, flags);
}

int mkdir(const char *path, mode_t mode) {
  return matches(path) && fails("mkdir", path) ? -1 : NEXT(mkdir)(path, mode);
}
int unlink(const char *path) { return matches(path) && fails("unlink", path) ? -1 : NEXT(unlink)(path); }
int rmdir(const char *path) { return matches(path) && fails("rmdir", path) ? -1 : NEXT(rmdir)(path); }

/* Only folders of checkpoints are opened, so only those have a descriptor. */
int unlinkat(int fd, const char *path, int flags) {
  return fails("unlinkat", path) ? -1 : NEXT(unlinkat)(fd, path, flags);
}

#pragma GCC visibility pop
