/* plugins/observers/metrics_file.c: jsonl and csv write a line per step and epoch to a file in the run
 * folder.
 *
 * The file is written before each checkpoint. A resumed run first truncates the file after the step of the
 * checkpoint, including an incomplete last line, and writes the later steps again. After any number of
 * crashes the file equals that of an uninterrupted run, except for the times.
 *
 * Bytes that cannot be written are kept and written before the next line, so that a disk that is full for a
 * while causes no loss. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugins/observers/observers.h"

enum {
  ROW = 4096,            /* the largest number of bytes that one call adds */
  HEAD = 256,            /* the start of a line, which has its event, epoch and step */
  MAX_PENDING = 1 << 20, /* the largest number of bytes kept for a full disk */
};

typedef struct metrics_file_options {
  int64_t every;
} metrics_file_options;
static const tn_option options[] = {
    TN_OPT(metrics_file_options, every, TN_OPT_INT, "1", ">= 1", "steps between lines"), TN_OPT_END};

typedef struct metrics_file {
  int fd; /* -1: the run has no folder */
  int64_t every;
  const char *form; /* the scanf format of the start of a line: event, epoch, step */
  char *pending;    /* bytes to be written */
  size_t n, capacity;
  int refused; /* the last write failed and was reported */
  char path[4096];
} metrics_file;

/* ---- writing ---- */

static tn_status metrics_file_make_room(metrics_file *m, tn_env *env, size_t more) {
  if (m->n + more <= m->capacity) return TN_OK;
  size_t capacity = 2 * (m->n + more);
  char *grown = tn_new(env, capacity);
  if (grown == NULL) return TN_ENOMEM;
  if (m->n > 0) memcpy(grown, m->pending, m->n);
  tn_delete(env, m->pending);
  m->pending = grown;
  m->capacity = capacity;
  return TN_OK;
}

TN_PRINTF(3, 4) static tn_status add(metrics_file *m, tn_env *env, const char *format, ...) {
  va_list args;
  tn_status status = metrics_file_make_room(m, env, ROW);
  if (status != TN_OK) return status;
  va_start(args, format);
  int n = vsnprintf(m->pending + m->n, ROW, format, args);
  va_end(args);
  if (n < 0 || n >= ROW) return tn_fail(env, TN_EINVAL, NULL, "%s: a name is too long for a line", m->path);
  m->n += (size_t)n;
  return TN_OK;
}

/* Writes the pending bytes. Returns 0 on failure, with the reason in errno and the rest pending. */
static int metrics_file_write(metrics_file *m) {
  size_t done = 0;
  int fine = 1;
  while (fine && done < m->n) {
    ssize_t n = write(m->fd, m->pending + done, m->n - done);
    if (n > 0) done += (size_t)n;
    fine = n > 0 || (n < 0 && errno == EINTR);
  }
  m->n -= done;
  memmove(m->pending, m->pending + done, m->n);
  return fine;
}

static tn_status write_pending(metrics_file *m, tn_env *env) {
  if (m->n == 0) return TN_OK;
  if (metrics_file_write(m)) {
    if (m->refused) tn_env_log(env, TN_LOG_WARN, "%s: can be written again; no line is lost", m->path);
    m->refused = 0;
    return TN_OK;
  }
  if (m->n > MAX_PENDING)
    return tn_fail(env, TN_EIO, NULL, "%s: cannot be written: %s; later lines are lost", m->path,
                   strerror(errno));
  if (!m->refused)
    tn_env_log(env, TN_LOG_WARN,
               "%s: cannot be written: %s; training continues, and the lines are kept and written later",
               m->path, strerror(errno));
  m->refused = 1;
  return TN_OK;
}

/* ---- lines of an earlier process ---- */

/* Whether this process will write the line that starts with `head` again. */
static int is_stale(const metrics_file *m, const tn_run_info *run, const char *head) {
  char event[16];
  long long epoch, step;
  if (sscanf(head, m->form, event, &epoch, &step) != 3) return 0;
  int again = strcmp(event, "epoch") == 0 && !run->epoch_ended;
  return step > run->first_step || (step == run->first_step && again);
}

/* Returns the offset of the first stale or incomplete line; -1 if the file cannot be read. */
static off_t end_of_valid(const metrics_file *m, const tn_run_info *run) {
  char piece[4096], head[HEAD];
  size_t in_head = 0;
  off_t line = 0, at = 0;
  for (;;) {
    ssize_t n = pread(m->fd, piece, sizeof piece, at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? -1 : line;
    for (ssize_t i = 0; i < n; i++) {
      if (in_head < HEAD - 1) head[in_head++] = piece[i];
      if (piece[i] != '\n') continue;
      head[in_head] = '\0';
      if (is_stale(m, run, head)) return line;
      line = at + i + 1;
      in_head = 0;
    }
    at += n;
  }
}

/* Truncates the file to its length at the checkpoint from which the run resumes. */
static tn_status metrics_file_cut(metrics_file *m, tn_env *env, const tn_run_info *run) {
  off_t end = end_of_valid(m, run);
  if (end < 0) return tn_fail(env, TN_EIO, NULL, "%s: cannot be read: %s", m->path, strerror(errno));
  if (lseek(m->fd, 0, SEEK_END) > end && ftruncate(m->fd, end) != 0)
    return tn_fail(env, TN_EIO, NULL, "%s: cannot be truncated to the step of the checkpoint: %s", m->path,
                   strerror(errno));
  return TN_OK;
}

/* ---- open and close ---- */

/* The file is cut on resuming, so a link might cut the file of another run. */
static tn_status metrics_file_fail_kind(const metrics_file *m, tn_env *env) {
  return tn_fail(env, TN_EINVAL, NULL, "%s: is a link or no regular file; remove it, or this observer",
                 m->path);
}

static tn_status open_at(metrics_file *m, tn_env *env, const tn_run_info *run, const char *name) {
  if (snprintf(m->path, sizeof m->path, "%s/%s", run->folder, name) >= (int)sizeof m->path)
    return tn_fail(env, TN_EINVAL, NULL, "%s: the path is too long", run->folder);
  m->fd = open(m->path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
  if (m->fd < 0 && errno == ELOOP) return metrics_file_fail_kind(m, env);
  if (m->fd < 0)
    return tn_fail(env, TN_EIO, NULL,
                   "%s: cannot be opened: %s; check its permissions, or remove this observer", m->path,
                   strerror(errno));
  struct stat info;
  if (fstat(m->fd, &info) != 0 || !S_ISREG(info.st_mode)) return metrics_file_fail_kind(m, env);
  return metrics_file_cut(m, env, run);
}

static void close_file(tn_env *env, void *self) {
  metrics_file *m = self;
  if (m->fd >= 0 && m->n > 0) metrics_file_write(m);
  if (m->n > 0) tn_env_log(env, TN_LOG_WARN, "%s: its last %zu bytes could not be written", m->path, m->n);
  if (m->fd >= 0 && close(m->fd) != 0)
    tn_env_log(env, TN_LOG_WARN, "%s: cannot be closed: %s; its last lines may be missing", m->path,
               strerror(errno));
  tn_delete(env, m->pending);
  tn_delete(env, m);
}

static tn_status open_file(tn_env *env, const void *given, const tn_run_info *run, const char *name,
                           const char *form, void **self) {
  metrics_file *m = tn_new(env, sizeof *m);
  *self = NULL;
  if (m == NULL) return TN_ENOMEM;
  m->every = ((const metrics_file_options *)given)->every;
  m->form = form;
  m->fd = -1;
  tn_status status = *run->folder ? open_at(m, env, run, name) : TN_OK;
  if (status == TN_OK)
    *self = m;
  else
    close_file(env, m);
  return status;
}

static int metrics_file_wanted(const metrics_file *m, const tn_event *e) {
  if (m->fd < 0) return 0;
  return e->kind == TN_EVENT_EPOCH_END || (e->kind == TN_EVENT_STEP && e->step % m->every == 0);
}

/* After a checkpoint, flushes the lines before it to the disk. Failures are ignored. */
static void sync_file(const metrics_file *m) {
  if (m->fd >= 0 && m->n == 0) (void)fdatasync(m->fd);
}

static const char *event_name(const tn_event *e) { return e->kind == TN_EVENT_STEP ? "step" : "epoch"; }

/* ---- jsonl ---- */

static tn_status add_json_number(metrics_file *m, tn_env *env, double value) {
  return isfinite(value) ? add(m, env, "%.9g", value) : add(m, env, "null");
}

static tn_status add_json_metrics(metrics_file *m, tn_env *env, const char *title, const tn_metric *metrics,
                                  int32_t n) {
  if (n == 0) return TN_OK;
  tn_status status = add(m, env, ", \"%s\": {", title);
  for (int32_t i = 0; status == TN_OK && i < n; i++) {
    status = add(m, env, "%s\"%s\": ", i ? ", " : "", metrics[i].name);
    if (status == TN_OK) status = add_json_number(m, env, metrics[i].value);
  }
  return status == TN_OK ? add(m, env, "}") : status;
}

static tn_status add_json(metrics_file *m, tn_env *env, const tn_event *e) {
  tn_status status =
      add(m, env, "{\"event\": \"%s\", \"epoch\": %lld, \"step\": %lld, \"seconds\": %.3f, \"per_s\": ",
          event_name(e), (long long)e->epoch + 1, (long long)e->step, e->seconds);
  if (status == TN_OK) status = add_json_number(m, env, e->samples_per_s);
  if (status == TN_OK) status = add(m, env, ", \"lr\": ");
  if (status == TN_OK) status = add_json_number(m, env, e->lr);
  if (status == TN_OK && e->loss_scale != 0) status = add(m, env, ", \"loss_scale\": %.9g", e->loss_scale);
  if (status == TN_OK && e->skipped >= 0) status = add(m, env, ", \"skipped\": %lld", (long long)e->skipped);
  if (status == TN_OK) status = add_json_metrics(m, env, "train", e->train, e->n_train);
  if (status == TN_OK) status = add_json_metrics(m, env, "valid", e->valid, e->n_valid);
  return status == TN_OK ? add(m, env, "}\n") : status;
}

static tn_status metrics_file_on_jsonl_event(tn_env *env, void *self, const tn_event *e) {
  metrics_file *m = self;
  if (e->kind == TN_EVENT_CHECKPOINT) sync_file(m);
  if (!metrics_file_wanted(m, e)) return TN_OK;
  size_t before = m->n;
  tn_status status = add_json(m, env, e);
  if (status != TN_OK) m->n = before; /* drop the incomplete line */
  return status == TN_OK ? write_pending(m, env) : status;
}

static tn_status open_jsonl(tn_env *env, const void *given, const tn_run_info *run, void **self) {
  return open_file(env, given, run, "metrics.jsonl",
                   "{\"event\": \"%15[a-z]\", \"epoch\": %lld, \"step\": %lld,", self);
}

const tn_observer observer_jsonl = {.item =
                                        TN_ITEM(tn_observer, TN_OBSERVER, "jsonl",
                                                "metrics.jsonl in the run folder, one JSON object per line",
                                                metrics_file_options, options),
                                    .always = 1,
                                    .open = open_jsonl,
                                    .event = metrics_file_on_jsonl_event,
                                    .close = close_file};

/* ---- csv: one line per value, for any set of metrics ---- */

static tn_status add_rows(metrics_file *m, tn_env *env, const tn_event *e, const char *split,
                          const tn_metric *metrics, int32_t n) {
  tn_status status = TN_OK;
  for (int32_t i = 0; status == TN_OK && i < n; i++)
    status = add(m, env, "%s,%lld,%lld,%.3f,%.9g,%s,%s,%.9g\n", event_name(e), (long long)e->epoch + 1,
                 (long long)e->step, e->seconds, e->lr, split, metrics[i].name, metrics[i].value);
  return status;
}

static tn_status metrics_file_on_csv_event(tn_env *env, void *self, const tn_event *e) {
  metrics_file *m = self;
  if (e->kind == TN_EVENT_CHECKPOINT) sync_file(m);
  if (!metrics_file_wanted(m, e)) return TN_OK;
  size_t before = m->n;
  const tn_metric scale = {"loss_scale", e->loss_scale}, skipped = {"skipped", (double)e->skipped};
  tn_status status = add_rows(m, env, e, "train", e->train, e->n_train);
  if (status == TN_OK) status = add_rows(m, env, e, "train", &scale, e->loss_scale != 0);
  if (status == TN_OK) status = add_rows(m, env, e, "train", &skipped, e->skipped >= 0);
  if (status == TN_OK) status = add_rows(m, env, e, "valid", e->valid, e->n_valid);
  if (status != TN_OK) m->n = before; /* drop the incomplete line */
  return status == TN_OK ? write_pending(m, env) : status;
}

static tn_status open_csv(tn_env *env, const void *given, const tn_run_info *run, void **self) {
  tn_status status = open_file(env, given, run, "metrics.csv", "%15[a-z],%lld,%lld,", self);
  metrics_file *m = *self;
  if (status != TN_OK || m->fd < 0 || lseek(m->fd, 0, SEEK_END) > 0) return status;
  status = add(m, env, "event,epoch,step,seconds,lr,split,metric,value\n");
  if (status == TN_OK) return write_pending(m, env);
  close_file(env, m);
  *self = NULL;
  return status;
}

const tn_observer observer_csv = {.item = TN_ITEM(tn_observer, TN_OBSERVER, "csv",
                                                  "metrics.csv in the run folder, one value per line",
                                                  metrics_file_options, options),
                                  .always = 1,
                                  .open = open_csv,
                                  .event = metrics_file_on_csv_event,
                                  .close = close_file};
