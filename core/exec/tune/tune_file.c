/* core/exec/tune/tune_file.c: measurements of kernels in a text file. */
#include "core/exec/tune/tune_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file.h"

enum { LARGEST_FILE = 16 << 20 };

/* ---- reading ---- */

/* "KEY SECONDS ...": false for anything else. */
static bool read_timing(char *line, tn_timing *timing) {
  if (strspn(line, "0123456789abcdef") != 16 || line[16] != ' ') return false;
  timing->key = strtoull(line, NULL, 16);
  char *rest = line + 17, *number = strsep(&rest, " ");
  return rest != NULL && tn_text_to_float(number, &timing->seconds) && isfinite(timing->seconds) &&
         timing->seconds > 0;
}

static tn_status read_lines(tn_tune_file *f, char *text, int32_t *wrong) {
  for (char *line; (line = strsep(&text, "\n")) != NULL;) {
    tn_timing timing;
    if (*line == '\0') continue;
    if (read_timing(line, &timing))
      TN_TRY(tn_vec_push(f->env, &f->timings, timing));
    else
      ++*wrong;
  }
  return TN_OK;
}

static bool has_heading(const tn_tune_file *f, const char *text) {
  size_t n = strlen(f->heading);
  return strncmp(text, f->heading, n) == 0 && (text[n] == '\n' || text[n] == '\0');
}

static tn_status read_file(tn_tune_file *f) {
  char *text = NULL;
  size_t count = 0;
  int32_t wrong = 0;
  tn_status status = tn_file_read(f->env, f->path, LARGEST_FILE, &text, &count);
  if (status != TN_OK) return status;
  if (count > 0 && !has_heading(f, text)) { /* the first line is written with the first measurement */
    tn_logf(f->env, TN_LOG_WARN,
            "%s: does not begin with \"%s\", so its measurements of kernels are not used; "
            "remove the file to start a new one",
            f->path, f->heading);
    f->writable = false;
  } else if (count > 0) {
    status = read_lines(f, text + strlen(f->heading), &wrong);
  }
  if (wrong > 0)
    tn_logf(f->env, TN_LOG_WARN, "%s: %d lines are not measurements and were ignored", f->path, (int)wrong);
  tn_release(f->env, text);
  return status;
}

/* An unreadable file is not written either. */
static void read_once(tn_tune_file *f) {
  bool first = f->unread;
  f->unread = false;
  if (!first || !tn_file_exists(f->path) || read_file(f) == TN_OK) return;
  tn_logf(f->env, TN_LOG_WARN, "measurements of kernels are not used: %s", tn_error_text(f->env));
  tn_error_clear(f->env);
  f->writable = false;
}

tn_status tn_tune_file_open(tn_env *env, const char *folder, const char *heading, tn_tune_file *f) {
  char name[40];
  *f = (tn_tune_file){.env = env, .heading = tn_strdup(env, heading)};
  if (f->heading == NULL) return TN_ENOMEM;
  if (folder == NULL || folder[0] == '\0') return TN_OK;
  snprintf(name, sizeof name, "kernels-%016" PRIx64 ".txt", tn_hash_text(TN_HASH_START, heading));
  f->path = tn_path_join(env, folder, name);
  f->writable = f->unread = f->path != NULL;
  return f->path == NULL ? TN_ENOMEM : TN_OK;
}

void tn_tune_file_close(tn_tune_file *f) {
  tn_vec_free(f->env, &f->timings);
  tn_release(f->env, f->path);
  tn_release(f->env, f->heading);
  *f = (tn_tune_file){.env = f->env};
}

bool tn_tune_file_find(tn_tune_file *f, uint64_t key, double *seconds) {
  read_once(f);
  for (size_t i = f->timings.n; i-- > 0;)
    if (f->timings.v[i].key == key) {
      *seconds = f->timings.v[i].seconds;
      return true;
    }
  return false;
}

/* ---- writing ---- */

static tn_status open_for_append(tn_tune_file *f, int *fd) {
  char *folder = tn_path_folder(f->env, f->path);
  if (folder == NULL) return TN_ENOMEM;
  tn_status status = tn_folder_make(f->env, folder);
  tn_release(f->env, folder);
  if (status != TN_OK) return status;
  tn_open_file file;
  status = tn_file_open(f->env, f->path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, &file);
  *fd = file.fd;
  return status;
}

/* Takes back the last bytes of the file: half a line would be reported by every later run. */
static void take_back(int fd, size_t bytes) {
  struct stat info;
  off_t end = lseek(fd, 0, SEEK_CUR);
  if (fstat(fd, &info) != 0 || info.st_size != end) return; /* another process has written behind it */
  if (ftruncate(fd, end - (off_t)bytes) != 0) return;
}

static bool append_bytes(int fd, const char *bytes, size_t n) {
  size_t done = 0;
  while (done < n) {
    ssize_t written = write(fd, bytes + done, n - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    done += (size_t)written;
  }
  if (done == n) return true;
  int reason = errno;
  take_back(fd, done);
  errno = reason;
  return false;
}

static tn_status append_line(tn_tune_file *f, uint64_t key, double seconds, const char *variant) {
  int fd = -1;
  TN_TRY(open_for_append(f, &fd));
  tn_text line = tn_text_new(f->env);
  if (lseek(fd, 0, SEEK_END) == 0) tn_text_addf(&line, "%s\n", f->heading);
  tn_text_addf(&line, "%016" PRIx64 " ", key);
  tn_text_add_float(&line, seconds);
  tn_text_addf(&line, " %s\n", variant);
  size_t n = line.failed ? 0 : strlen(line.v);
  tn_status status = line.failed ? TN_ENOMEM : TN_OK;
  if (status == TN_OK && !append_bytes(fd, line.v, n)) status = tn_file_fail(f->env, f->path, "written");
  tn_text_free(&line);
  close(fd);
  return status;
}

void tn_tune_file_remember(tn_tune_file *f, uint64_t key, double seconds) {
  tn_timing timing = {key, seconds};
  read_once(f);
  if (tn_vec_push(f->env, &f->timings, timing) != TN_OK) tn_error_clear(f->env);
}

void tn_tune_file_add(tn_tune_file *f, uint64_t key, double seconds, const char *variant) {
  tn_tune_file_remember(f, key, seconds);
  if (!f->writable || append_line(f, key, seconds, variant) == TN_OK) return;
  tn_logf(f->env, TN_LOG_WARN, "measurements of kernels are not stored: %s", tn_error_text(f->env));
  tn_error_clear(f->env);
  f->writable = false;
}
