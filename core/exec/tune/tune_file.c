/* core/exec/tune/tune_file.c: measurements of kernels in a text file. */
#include "core/exec/tune/tune_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file/file.h"

enum { LARGEST_FILE = 16 << 20, HOST_NAME = 65, MOST_KILLED = 1 };

/* ---- marks of measurements ---- */

/* "KEY begun PID HOST", "KEY ended PID HOST", "KEY fault PID HOST KERNEL VARIANT". */
static const char mark_begun[] = "begun", mark_ended[] = "ended", mark_fault[] = "fault";

static void read_host_name(char name[HOST_NAME]) {
  memset(name, 0, HOST_NAME);
  if (gethostname(name, HOST_NAME - 1) != 0 || *name == '\0') snprintf(name, HOST_NAME, "?");
}

/* The marks of a key, or those that one process began, are over. */
static void drop_marks(tn_tune_file *f, const tn_tune_mark *of, bool of_process) {
  size_t n = 0;
  for (size_t i = 0; i < f->marks.n; i++) {
    const tn_tune_mark *m = &f->marks.v[i];
    bool same = m->key == of->key && (!of_process || (m->pid == of->pid && m->here == of->here));
    if (!same || m->fault) f->marks.v[n++] = *m;
  }
  f->marks.n = n;
}

/* False: the line is no mark. */
static bool read_mark(tn_tune_file *f, const char *line, tn_status *status) {
  char word[8], host[HOST_NAME], own[HOST_NAME];
  tn_tune_mark mark = {0};
  if (strspn(line, "0123456789abcdef") != 16 ||
      sscanf(line + 16, " %7s %ld %64s", word, &mark.pid, host) != 3)
    return false;
  mark.key = strtoull(line, NULL, 16);
  read_host_name(own);
  mark.here = strcmp(host, own) == 0;
  mark.fault = strcmp(word, mark_fault) == 0;
  bool ended = strcmp(word, mark_ended) == 0;
  if (!ended && !mark.fault && strcmp(word, mark_begun) != 0) return false;
  if (ended)
    drop_marks(f, &mark, true);
  else
    *status = tn_vec_push(f->env, &f->marks, mark);
  return true;
}

static bool has_ended_process(const tn_tune_mark *mark) {
  return mark->here && mark->pid > 0 && kill((pid_t)mark->pid, 0) != 0 && errno == ESRCH;
}

/* ---- reading ---- */

/* "KEY SECONDS ...": false for anything else. */
static bool read_timing(char *line, tn_timing *timing) {
  timing->stored = true;
  if (strspn(line, "0123456789abcdef") != 16 || line[16] != ' ') return false;
  timing->key = strtoull(line, NULL, 16);
  char *rest = line + 17, *number = strsep(&rest, " ");
  return rest != NULL && tn_text_to_float(number, &timing->seconds) && isfinite(timing->seconds) &&
         timing->seconds > 0;
}

static tn_status read_lines(tn_tune_file *f, char *text, int32_t *wrong) {
  for (char *line; (line = strsep(&text, "\n")) != NULL;) {
    tn_timing timing;
    tn_status status = TN_OK;
    if (*line == '\0' || read_mark(f, line, &status)) {
      TN_TRY(status);
    } else if (read_timing(line, &timing)) {
      drop_marks(f, &(tn_tune_mark){.key = timing.key}, false);
      TN_TRY(tn_vec_push(f->env, &f->timings, timing));
    } else {
      ++*wrong;
    }
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
  tn_vec_free(f->env, &f->marks);
  tn_release(f->env, f->path);
  tn_release(f->env, f->heading);
  *f = (tn_tune_file){.env = f->env};
}

const tn_timing *tn_tune_file_find(tn_tune_file *f, uint64_t key) {
  read_once(f);
  for (size_t i = f->timings.n; i-- > 0;)
    if (f->timings.v[i].key == key) return &f->timings.v[i];
  return NULL;
}

bool tn_tune_file_has_marks(tn_tune_file *f) {
  read_once(f);
  return f->marks.n > 0;
}

tn_tune_mark *tn_tune_file_find_fault(tn_tune_file *f, uint64_t key) {
  int32_t killed = 0;
  read_once(f);
  for (size_t i = 0; i < f->marks.n; i++) {
    tn_tune_mark *m = &f->marks.v[i];
    if (m->key != key) continue;
    killed += has_ended_process(m);
    if (m->fault || killed > MOST_KILLED) return m;
  }
  return NULL;
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
    ssize_t written = tn_file_write(fd, bytes + done, n - done);
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

static tn_status append_line(tn_tune_file *f, const char *line) {
  int fd = -1;
  TN_TRY(open_for_append(f, &fd));
  tn_text text = tn_text_new(f->env);
  if (lseek(fd, 0, SEEK_END) == 0) tn_text_addf(&text, "%s\n", f->heading);
  tn_text_addf(&text, "%s\n", line);
  size_t n = text.failed ? 0 : strlen(text.v);
  tn_status status = text.failed ? TN_ENOMEM : TN_OK;
  if (status == TN_OK && !append_bytes(fd, text.v, n)) status = tn_file_fail(f->env, f->path, "written");
  tn_text_free(&text);
  close(fd);
  return status;
}

/* False: nothing can be stored; the first failure is logged. */
static bool store_line(tn_tune_file *f, tn_text *line) {
  read_once(f);
  if (f->writable && (line->failed ? TN_ENOMEM : append_line(f, line->v)) != TN_OK) {
    tn_logf(f->env, TN_LOG_WARN, "measurements of kernels are not stored: %s", tn_error_text(f->env));
    tn_error_clear(f->env);
    f->writable = false;
  }
  tn_text_free(line);
  return f->writable;
}

void tn_tune_file_remember(tn_tune_file *f, const tn_timing *timing) {
  read_once(f);
  if (tn_vec_push(f->env, &f->timings, *timing) != TN_OK) tn_error_clear(f->env);
}

void tn_tune_file_add(tn_tune_file *f, uint64_t key, double seconds, const char *variant) {
  tn_text line = tn_text_new(f->env);
  tn_tune_file_remember(f, &(tn_timing){key, seconds, true});
  tn_text_addf(&line, "%016" PRIx64 " ", key);
  tn_text_add_float(&line, seconds);
  tn_text_addf(&line, " %s", variant);
  (void)store_line(f, &line);
}

static bool store_mark(tn_tune_file *f, uint64_t key, const char *word, const char *variant) {
  char host[HOST_NAME];
  tn_text line = tn_text_new(f->env);
  read_host_name(host);
  tn_text_addf(&line, "%016" PRIx64 " %s %ld %s%s%s", key, word, (long)getpid(), host,
               *variant != '\0' ? " " : "", variant);
  return store_line(f, &line);
}

void tn_tune_file_begin(tn_tune_file *f, uint64_t key) { (void)store_mark(f, key, mark_begun, ""); }

void tn_tune_file_end(tn_tune_file *f, uint64_t key) { (void)store_mark(f, key, mark_ended, ""); }

bool tn_tune_file_fault(tn_tune_file *f, uint64_t key, const char *variant) {
  return store_mark(f, key, mark_fault, variant);
}
