#include "plugins/observers/run_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PENDING = 1 << 20 }; /* the largest number of bytes kept for a full disk */

/* ---- open and close ---- */

/* A file is cut on resuming, so a link might cut the file of another run. */
static tn_status run_file_fail_kind(const run_file *f, tn_env *env) {
  return tn_fail(env, TN_EINVAL, NULL, "%s: is a link or no regular file; remove it, or this observer",
                 f->path);
}

/* A remedy for the reason; an observer may always be left out. */
static const char *run_file_remedy(int reason) {
  switch (reason) {
  case EACCES:
  case EPERM: return "check its permissions";
  case EMFILE:
  case ENFILE: return "raise the limit of open files, see `ulimit -n`";
  case ENOSPC:
  case EDQUOT: return "make room there";
  case ENAMETOOLONG: return "name a shorter folder";
  case EROFS: return "name a folder that can be written";
  default: return "see whether its folder is there";
  }
}

int run_file_move_up(int fd) {
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), reason = errno;
  close(fd);
  errno = reason;
  return moved;
}

tn_status run_file_open(run_file *f, tn_env *env, const char *folder, const char *name) {
  *f = (run_file){.fd = -1};
  if (*folder == '\0') return TN_OK;
  if (snprintf(f->path, sizeof f->path, "%s/%s", folder, name) >= (int)sizeof f->path)
    return tn_fail(env, TN_EINVAL, NULL, "%s: the path is too long", folder);
  f->fd = open(f->path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
  if (f->fd >= 0 && f->fd <= STDERR_FILENO) f->fd = run_file_move_up(f->fd);
  if (f->fd < 0 && errno == ELOOP) return run_file_fail_kind(f, env);
  if (f->fd < 0)
    return tn_fail(env, TN_EIO, NULL, "%s: cannot be opened: %s; %s, or remove this observer", f->path,
                   strerror(errno), run_file_remedy(errno));
  struct stat info;
  if (fstat(f->fd, &info) != 0 || !S_ISREG(info.st_mode)) return run_file_fail_kind(f, env);
  return TN_OK;
}

/* Returns 0 on failure, with the reason in errno and the rest pending. */
static int run_file_write_pending(run_file *f) {
  size_t done = 0;
  int fine = 1;
  while (fine && done < f->n) {
    ssize_t n = write(f->fd, f->pending + done, f->n - done);
    if (n > 0) done += (size_t)n;
    fine = n > 0 || (n < 0 && errno == EINTR);
  }
  f->n -= done;
  memmove(f->pending, f->pending + done, f->n);
  return fine;
}

void run_file_close(run_file *f, tn_env *env) {
  if (f->fd >= 0 && f->n > 0) run_file_write_pending(f);
  if (f->n > 0) tn_env_log(env, TN_LOG_WARN, "%s: its last %zu bytes could not be written", f->path, f->n);
  if (f->fd >= 0 && close(f->fd) != 0)
    tn_env_log(env, TN_LOG_WARN, "%s: cannot be closed: %s; its last lines may be missing", f->path,
               strerror(errno));
  tn_delete(env, f->pending);
  *f = (run_file){.fd = -1};
}

/* ---- append ---- */

static tn_status run_file_make_room(run_file *f, tn_env *env, size_t more) {
  if (f->n + more <= f->capacity) return TN_OK;
  size_t capacity = 2 * (f->n + more);
  char *grown = tn_new(env, capacity);
  if (grown == NULL) return TN_ENOMEM;
  if (f->n > 0) memcpy(grown, f->pending, f->n);
  tn_delete(env, f->pending);
  f->pending = grown;
  f->capacity = capacity;
  return TN_OK;
}

tn_status run_file_add(run_file *f, tn_env *env, const void *bytes, size_t n) {
  TN_TRY(run_file_make_room(f, env, n + RUN_FILE_LINE));
  memcpy(f->pending + f->n, bytes, n);
  f->n += n;
  return TN_OK;
}

tn_status run_file_print(run_file *f, tn_env *env, const char *format, ...) {
  va_list args;
  TN_TRY(run_file_make_room(f, env, RUN_FILE_LINE));
  va_start(args, format);
  int n = vsnprintf(f->pending + f->n, RUN_FILE_LINE, format, args);
  va_end(args);
  if (n < 0 || n >= RUN_FILE_LINE)
    return tn_fail(env, TN_EINVAL, NULL, "%s: a name is too long for a line", f->path);
  f->n += (size_t)n;
  return TN_OK;
}

/* ---- write ---- */

tn_status run_file_write(run_file *f, tn_env *env) {
  if (f->n == 0) return TN_OK;
  if (run_file_write_pending(f)) {
    if (f->refused) tn_env_log(env, TN_LOG_WARN, "%s: can be written again; no line is lost", f->path);
    f->refused = 0;
    return TN_OK;
  }
  if (f->n > MAX_PENDING)
    return tn_fail(env, TN_EIO, NULL, "%s: cannot be written: %s; later lines are lost", f->path,
                   strerror(errno));
  if (!f->refused)
    tn_env_log(env, TN_LOG_WARN,
               "%s: cannot be written: %s; training continues, and the lines are kept and written later",
               f->path, strerror(errno));
  f->refused = 1;
  return TN_OK;
}

void run_file_sync(const run_file *f) {
  if (f->fd >= 0 && f->n == 0) (void)fdatasync(f->fd);
}
