/* core/base/file/file.c: reading and writing of whole files, folders, paths. */
#include "core/base/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/text/text.h"

/* A remedy for an errno, to be appended to the message; "" where no general advice exists. */
static const char *file_remedy(int reason) {
  switch (reason) {
  case ENOSPC:
  case EDQUOT: return "; make room there";
  case EACCES:
  case EPERM: return "; check its permissions, or name another folder";
  case EROFS: return "; its file system is read-only, name another folder";
  case ENAMETOOLONG: return "; a path has 4095 bytes at most, a name 255: name a shorter folder";
  case EFBIG: return "; the limit of file sizes is reached, see `ulimit -f`";
  case EIO: return "; the device that holds it may be failing";
  case EMFILE:
  case ENFILE: return "; too many files are open, see `ulimit -n`";
  default: return "";
  }
}

/* errno is saved first, because the calls below may overwrite it. */
tn_status tn_file_fail(const void *handle, const char *path, const char *what) {
  char space[128];
  int reason = errno;
  const char *text = strerror_r(reason, space, sizeof(space));
  return tn_failf(handle, TN_EIO, "%s: cannot be %s: %s%s", path, what, text, file_remedy(reason));
}

static const char *file_kind(mode_t mode) {
  return S_ISDIR(mode)    ? "a folder"
         : S_ISFIFO(mode) ? "a FIFO"
         : S_ISSOCK(mode) ? "a socket"
         : S_ISLNK(mode)  ? "a symbolic link"
                          : "a device";
}

static tn_status file_fail_kind(const void *handle, const char *path, mode_t mode) {
  return tn_failf(handle, TN_EINVAL, "%s: is not a regular file but %s", path, file_kind(mode));
}

int tn_descriptor_move_up(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), reason = errno;
  close(fd);
  errno = reason;
  return moved;
}

/* Opening a device or FIFO may wait or have effects, so the kind is looked at before. O_NONBLOCK is for a
 * file that is replaced in between; it has no effect on regular files. */
tn_status tn_file_open(const void *handle, const char *path, int flags, tn_open_file *file) {
  struct stat st;
  *file = (tn_open_file){.fd = -1};
  int looked = (flags & O_NOFOLLOW) != 0 ? lstat(path, &st) : stat(path, &st);
  if (looked == 0 && !S_ISREG(st.st_mode)) return file_fail_kind(handle, path, st.st_mode);
  int fd = tn_descriptor_move_up(open(path, flags | O_CLOEXEC | O_NONBLOCK, 0666));
  if (fd < 0) return tn_file_fail(handle, path, "opened");
  tn_status status = fstat(fd, &st) == 0 ? TN_OK : tn_file_fail(handle, path, "examined");
  if (status == TN_OK && !S_ISREG(st.st_mode)) status = file_fail_kind(handle, path, st.st_mode);
  if (status == TN_OK)
    *file = (tn_open_file){fd, (uint64_t)st.st_size};
  else
    close(fd);
  return status;
}

static ssize_t file_read_some(int fd, void *bytes, size_t count) {
  ssize_t n;
  do n = read(fd, bytes, count);
  while (n < 0 && errno == EINTR);
  return n;
}

/* Initial buffer size: the size of the file plus one byte, which detects its end. A file of /proc has size 0.
 */
static size_t file_first_capacity(uint64_t bytes, size_t limit) {
  size_t guess = bytes > 0 ? tn_size_add((size_t)bytes, 1) : 4096, most = tn_size_add(limit, 1);
  return guess < most ? guess : most;
}

static tn_status file_read_all(const void *handle, const tn_open_file *file, const char *path, size_t limit,
                               char **bytes, size_t *count) {
  size_t cap = file_first_capacity(file->bytes, limit), n = 0;
  char *v = tn_resize(handle, NULL, tn_size_add(cap, 1));
  while (v != NULL) {
    ssize_t got = file_read_some(file->fd, v + n, cap - n);
    if (got < 0) {
      tn_status status = tn_file_fail(handle, path, "read");
      tn_release(handle, v);
      return status;
    }
    n += (size_t)got;
    if (n > limit) {
      tn_release(handle, v);
      return tn_failf(handle, TN_EINVAL, "%s: larger than the %zu bytes that such a file may have", path,
                      limit);
    }
    if (got == 0) {
      v[n] = '\0';
      *bytes = v;
      *count = n;
      return TN_OK;
    }
    if (n < cap) continue;
    cap = tn_size_mul(cap, 2);
    char *grown = tn_resize(handle, v, tn_size_add(cap, 1));
    if (grown == NULL) tn_release(handle, v);
    v = grown;
  }
  return tn_wrap(handle, TN_ENOMEM, "%s", path);
}

tn_status tn_file_read(const void *handle, const char *path, size_t limit, char **bytes, size_t *count) {
  *bytes = NULL;
  *count = 0;
  tn_open_file file;
  TN_TRY(tn_file_open(handle, path, O_RDONLY, &file));
  tn_status status = file_read_all(handle, &file, path, limit, bytes, count);
  close(file.fd);
  return status;
}

static char *file_temporary_name(const void *handle, const char *path, int try) {
  tn_text name = tn_text_new(handle);
  tn_text_addf(&name, "%s.%ld-%d.tmp", path, (long)getpid(), try);
  return tn_text_take(&name);
}

/* O_EXCL finds a free name; the mode follows the umask, which mkstemp would not. */
static tn_status file_open_temporary(const void *handle, tn_new_file *file) {
  for (int try = 0; try < 100; try++) {
    file->temporary = file_temporary_name(handle, file->path, try);
    if (file->temporary == NULL) return TN_ENOMEM;
    file->fd = tn_descriptor_move_up(open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file->fd >= 0) return TN_OK;
    int reason = errno;
    tn_release(handle, file->temporary);
    file->temporary = NULL;
    errno = reason;
    if (reason != EEXIST) break;
  }
  return tn_file_fail(handle, file->path, "created");
}

/* The new file replaces a regular file of its name, or a link, which is replaced itself. A link to
 * something else, such as /dev/stdout, stays. */
static tn_status file_check_replaceable(const void *handle, const char *path) {
  struct stat st;
  if (stat(path, &st) != 0 || S_ISREG(st.st_mode)) return TN_OK;
  return tn_failf(handle, TN_EINVAL, "%s: is %s, which a new file cannot replace; name another file", path,
                  file_kind(st.st_mode));
}

tn_status tn_file_begin(const void *handle, const char *path, tn_new_file *file) {
  *file = (tn_new_file){.fd = -1};
  TN_TRY(file_check_replaceable(handle, path));
  file->path = tn_strdup(handle, path);
  if (file->path == NULL) return TN_ENOMEM;
  tn_status status = file_open_temporary(handle, file);
  if (status != TN_OK) tn_file_abandon(handle, file);
  return status;
}

void tn_file_limit_begin(tn_file_limit *limit) {
  sigset_t signal;
  sigemptyset(&signal);
  sigaddset(&signal, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &signal, &limit->before);
}

/* The signal is sent to the thread that has made the call, so it is pending there until it is taken. */
void tn_file_limit_end(const tn_file_limit *limit, bool exceeded) {
  static const struct timespec at_once;
  int reason = errno;
  sigset_t signal;
  sigemptyset(&signal);
  sigaddset(&signal, SIGXFSZ);
  if (exceeded && sigismember(&limit->before, SIGXFSZ) == 0) sigtimedwait(&signal, NULL, &at_once);
  pthread_sigmask(SIG_SETMASK, &limit->before, NULL);
  errno = reason;
}

ssize_t tn_file_write(int fd, const void *bytes, size_t count) {
  tn_file_limit limit;
  tn_file_limit_begin(&limit);
  ssize_t n = write(fd, bytes, count);
  tn_file_limit_end(&limit, n < 0 && errno == EFBIG);
  return n;
}

tn_status tn_file_append(const void *handle, tn_new_file *file, const void *bytes, size_t count) {
  const char *p = bytes;
  while (count > 0) {
    /* Linux writes at most 2 GiB per call; the limit of 1 GiB holds on every system. */
    ssize_t n = tn_file_write(file->fd, p, count < (1u << 30) ? count : (1u << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return tn_file_fail(handle, file->path, "written");
    if (file->sum != NULL) tn_checksum_add(file->sum, p, (size_t)n);
    p += n;
    count -= (size_t)n;
  }
  return TN_OK;
}

static tn_status file_publish(const void *handle, tn_new_file *file) {
  if (fsync(file->fd) != 0) return tn_file_fail(handle, file->path, "written to disk");
  int fd = file->fd;
  file->fd = -1;
  if (close(fd) != 0) return tn_file_fail(handle, file->path, "closed");
  if (rename(file->temporary, file->path) != 0) return tn_file_fail(handle, file->path, "put in place");
  tn_release(handle, file->temporary);
  file->temporary = NULL;
  return TN_OK;
}

static tn_status file_sync_parent(const void *handle, const char *path) {
  char *folder = tn_path_folder(handle, path);
  if (folder == NULL) return TN_ENOMEM;
  tn_status status = tn_folder_sync(handle, folder);
  tn_release(handle, folder);
  return status;
}

tn_status tn_file_commit(const void *handle, tn_new_file *file) {
  tn_status status = file_publish(handle, file);
  if (status == TN_OK) status = file_sync_parent(handle, file->path);
  tn_file_abandon(handle, file);
  return status;
}

void tn_file_abandon(const void *handle, tn_new_file *file) {
  if (file->path == NULL) return;
  if (file->fd >= 0) close(file->fd);
  if (file->temporary != NULL) unlink(file->temporary);
  tn_release(handle, file->temporary);
  tn_release(handle, file->path);
  *file = (tn_new_file){.fd = -1};
}

tn_status tn_file_write_atomic(const void *handle, const char *path, const void *bytes, size_t count) {
  tn_new_file file;
  TN_TRY(tn_file_begin(handle, path, &file));
  tn_status status = tn_file_append(handle, &file, bytes, count);
  if (status == TN_OK) return tn_file_commit(handle, &file);
  tn_file_abandon(handle, &file);
  return status;
}

tn_status tn_file_check_new(const void *handle, const char *path) {
  tn_new_file file;
  tn_status status = tn_file_begin(handle, path, &file);
  if (status == TN_OK) tn_file_abandon(handle, &file);
  return status;
}

static bool file_is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static tn_status file_make_folder(const void *handle, const char *path) {
  if (mkdir(path, 0777) == 0 || (errno == EEXIST && file_is_folder(path))) return TN_OK;
  return tn_file_fail(handle, path, "made a folder");
}

tn_status tn_folder_make(const void *handle, const char *path) {
  char *parents = tn_strdup(handle, path);
  if (parents == NULL) return TN_ENOMEM;
  tn_status status = TN_OK;
  for (char *p = parents; *p != '\0' && status == TN_OK; p++) {
    if (*p != '/' || p == parents) continue;
    *p = '\0';
    /* An existing parent folder need not be writable. */
    if (!file_is_folder(parents)) status = file_make_folder(handle, parents);
    *p = '/';
  }
  if (status == TN_OK && !file_is_folder(parents)) status = file_make_folder(handle, parents);
  tn_release(handle, parents);
  return status;
}

tn_status tn_folder_make_private(const void *handle, const char *path) {
  struct stat st;
  char *parent = tn_path_folder(handle, path);
  if (parent == NULL) return TN_ENOMEM;
  tn_status status = tn_folder_make(handle, parent);
  tn_release(handle, parent);
  if (status != TN_OK) return status;
  if (mkdir(path, 0700) != 0 && errno != EEXIST) return tn_file_fail(handle, path, "made a folder");
  if (lstat(path, &st) != 0) return tn_file_fail(handle, path, "examined");
  if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0) return TN_OK;
  errno = 0;
  return tn_failf(handle, TN_EIO,
                  "%s: is not a folder of this user alone; remove it, or "
                  "change its owner and mode",
                  path);
}

tn_status tn_folder_sync(const void *handle, const char *path) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return tn_file_fail(handle, path, "opened");
  tn_status status = TN_OK;
  /* Some file systems cannot sync a folder and return EINVAL, which is not a failure. */
  if (fsync(fd) != 0 && errno != EINVAL) status = tn_file_fail(handle, path, "written to disk");
  close(fd);
  return status;
}

bool tn_file_exists(const char *path) {
  struct stat st;
  return stat(path, &st) == 0;
}

char *tn_path_join(const void *handle, const char *folder, const char *name) {
  if (name[0] == '/' || folder[0] == '\0') return tn_strdup(handle, name);
  size_t n = strlen(folder);
  tn_text path = tn_text_new(handle);
  tn_text_addf(&path, "%s%s%s", folder, folder[n - 1] == '/' ? "" : "/", name);
  return tn_text_take(&path);
}

char *tn_path_folder(const void *handle, const char *path) {
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/') n--;
  while (n > 0 && path[n - 1] != '/') n--;
  if (n == 0) return tn_strdup(handle, ".");
  while (n > 1 && path[n - 1] == '/') n--;
  return tn_strndup(handle, path, n);
}
