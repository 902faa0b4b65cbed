/* core/records/runs/run_lock.c: the lock on a run folder: flock on a file in it, which the kernel
 * releases however the process ends. */
#include "core/records/runs/run_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "core/base/file/file.h"

/* ---- the text of the holder ---- */

/* The text for other processes. It informs people, so that a failure to write it is ignored. */
static void run_lock_sign(int fd) {
  char host[65] = "", since[32] = "", text[TN_LOCK_TEXT];
  struct tm parts;
  time_t now = time(NULL);
  if (gethostname(host, sizeof host - 1) != 0 || *host == '\0') snprintf(host, sizeof host, "?");
  if (localtime_r(&now, &parts) != NULL) strftime(since, sizeof since, "%Y-%m-%d %H:%M:%S", &parts);
  int n = snprintf(text, sizeof text, "process %ld on %s, since %s\n", (long)getpid(), host, since);
  if (ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0 && tn_file_write(fd, text, (size_t)n) != n)
    (void)ftruncate(fd, 0);
}

/* "process 812 on node7, since 2026-05-01 09:12:44"; between locking and signing the file is empty. */
static void run_lock_read_holder(int fd, char text[TN_LOCK_TEXT]) {
  ssize_t n = pread(fd, text, TN_LOCK_TEXT - 1, 0);
  text[n > 0 ? n : 0] = '\0';
  text[strcspn(text, "\n")] = '\0';
  if (*text == '\0') snprintf(text, TN_LOCK_TEXT, "another process");
}

/* ---- locking ---- */

static tn_status run_lock_flock(int fd) {
  int failed;
  do failed = flock(fd, LOCK_EX | LOCK_NB);
  while (failed && errno == EINTR);
  return failed == 0 ? TN_OK : errno == EWOULDBLOCK ? TN_EUNAVAILABLE : TN_EUNSUPPORTED;
}

static tn_status run_lock_fail_held(tn_run *run, const char *folder, int fd) {
  char holder[TN_LOCK_TEXT];
  run_lock_read_holder(fd, holder);
  return tn_failf(
      &run->env, TN_EUNAVAILABLE,
      "%s: is in use by %s; wait until it has ended or stop it; without --resume a new run gets a "
      "folder of its own",
      folder, holder);
}

static tn_status run_lock_open(tn_run *run, const char *folder, int *fd) {
  tn_open_file file;
  char *path = tn_path_join(&run->env, folder, TN_LOCK_NAME);
  if (path == NULL) return TN_ENOMEM;
  tn_status status = tn_file_open(&run->env, path, O_RDWR | O_CREAT | O_NOFOLLOW, &file);
  *fd = file.fd;
  tn_release(&run->env, path);
  return tn_wrap(&run->env, status, "the run folder cannot be locked");
}

/* Network file systems may have no locks. */
static void run_lock_warn(tn_run *run, const char *folder, int reason) {
  char space[128];
  tn_logf(&run->env, TN_LOG_WARN,
          "%s: its file system has no locks (%s): make sure that no other process trains in this folder",
          folder, strerror_r(reason, space, sizeof space));
}

tn_status tn_run_lock_take(tn_run *run, const char *folder) {
  int fd = -1;
  TN_TRY(run_lock_open(run, folder, &fd));
  tn_status status = run_lock_flock(fd);
  if (status == TN_EUNAVAILABLE) status = run_lock_fail_held(run, folder, fd);
  if (status == TN_EUNSUPPORTED) {
    run_lock_warn(run, folder, errno);
    close(fd);
    return TN_OK;
  }
  run->lock = status == TN_OK ? tn_alloc(&run->env, sizeof *run->lock) : NULL;
  if (run->lock == NULL) {
    close(fd);
    return status == TN_OK ? TN_ENOMEM : status;
  }
  run->lock->fd = fd;
  run_lock_sign(fd);
  return TN_OK;
}

void tn_run_lock_release(tn_run *run) {
  if (run->lock == NULL) return;
  (void)ftruncate(run->lock->fd, 0);
  (void)flock(run->lock->fd, LOCK_UN); /* a child that the application has forked keeps the open file */
  close(run->lock->fd);
  tn_release(&run->env, run->lock);
  run->lock = NULL;
}

/* A shared lock that is free is held for the moment of this call. An empty file has no
 * holder, so that a training which begins now is refused only where the process before it was killed. */
bool tn_run_lock_is_held(const void *handle, const char *folder, char holder[TN_LOCK_TEXT]) {
  char *path = tn_path_join(handle, folder, TN_LOCK_NAME);
  int fd = path ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
  tn_release(handle, path);
  if (fd < 0) return false;
  run_lock_read_holder(fd, holder);
  bool held = lseek(fd, 0, SEEK_END) > 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return held;
}
