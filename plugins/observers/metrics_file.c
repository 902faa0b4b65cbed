/* jsonl and csv: lines about steps and epochs in the run folder. The file is written ahead of each
 * checkpoint, and a run that goes on from one first cuts the lines of later steps, whole
 * and half ones: those steps are taken again and written again. So after any crash and any number of them the
 * file reads as if nothing had happened, but for the seconds.
 *
 * Bytes that cannot be written are kept and written before the next line, so a disk that is full for a while
 * loses nothing. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugins/observers/observers.h"

enum {
  ROW = 4096,             /* the longest piece that is added at once */
  HEAD = 256,             /* as much of a line as tells its event, epoch and step */
  MOST_PENDING = 1 << 20, /* bytes that wait for a disk */
};

typedef struct metrics_file_options {
  int64_t every;
} metrics_file_options;
static const tn_option options[] = {
    TN_OPT(metrics_file_options, every, TN_OPT_INT, "1", ">= 1", "write every so many steps"), TN_OPT_END};

typedef struct metrics_file {
  int fd; /* -1: the run writes nothing */
  int64_t every;
  const char *form; /* of a line's start: event, epoch, step */
  char *pending;    /* to be written */
  size_t n, capacity;
  int refused; /* the last write failed, and that was said */
  char path[4096];
} metrics_file;

/* ---- writing ---- */

static tn_status metrics_file_make_room(metrics_file *m, tn_env *env, size_t more) {
  if (m->n + more <= m->capacity) return TN_OK;
  size_t capacity = 2 * (m->n + more);
  char *grown = tn_new(env, capacity);
  if (!grown) return TN_ENOMEM;
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

/* Writes as much as the system takes; errno says why the rest was not. */
static int write_some(metrics_file *m) {
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
  if (write_some(m)) {
    if (m->refused) tn_env_log(env, TN_LOG_WARN, "%s: is being written again, nothing was lost", m->path);
    m->refused = 0;
    return TN_OK;
  }
  if (m->n > MOST_PENDING)
    return tn_fail(env, TN_EIO, NULL, "%s: cannot be written: %s; its lines from here on are lost", m->path,
                   strerror(errno));
  if (!m->refused)
    tn_env_log(env, TN_LOG_WARN,
               "%s: cannot be written: %s; training goes on, and its lines are kept and tried again", m->path,
               strerror(errno));
  m->refused = 1;
  return TN_OK;
}

/* ---- what an earlier process wrote ---- */

/* Whether a line, of which `head` is the start, tells of what this process will tell again. */
static int is_stale(const metrics_file *m, const tn_run_info *run, const char *head) {
  char event[16];
  long long epoch, step;
  if (sscanf(head, m->form, event, &epoch, &step) != 3) return 0;
  int again = strcmp(event, "epoch") == 0 && !run->epoch_ended;
  return step > run->first_step || (step == run->first_step && again);
}

/* Reads the file as pieces of lines: where the first stale or half line begins; -1: it cannot be read. */
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

/* Leaves the file as it was when the checkpoint was made from which the run goes on. */
static tn_status metrics_file_cut(metrics_file *m, tn_env *env, const tn_run_info *run) {
  off_t end = end_of_valid(m, run);
  if (end < 0) return tn_fail(env, TN_EIO, NULL, "%s: cannot be read: %s", m->path, strerror(errno));
  if (lseek(m->fd, 0, SEEK_END) > end && ftruncate(m->fd, end) != 0)
    return tn_fail(env, TN_EIO, NULL, "%s: cannot be cut to the step of the checkpoint: %s", m->path,
                   strerror(errno));
  return TN_OK;
}

/* ---- life ---- */

static tn_status open_at(metrics_file *m, tn_env *env, const tn_run_info *run, const char *name) {
  if (snprintf(m->path, sizeof m->path, "%s/%s", run->folder, name) >= (int)sizeof m->path)
    return tn_fail(env, TN_EINVAL, NULL, "%s: too long a path", run->folder);
  m->fd = open(m->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (m->fd < 0)
    return tn_fail(env, TN_EIO, NULL,
                   "%s: cannot be opened: %s; see to its permissions, or leave it out with observers",
                   m->path, strerror(errno));
  return metrics_file_cut(m, env, run);
}

static void close_file(tn_env *env, void *self) {
  metrics_file *m = self;
  if (m->fd >= 0 && m->n > 0) write_some(m);
  if (m->n > 0) tn_env_log(env, TN_LOG_WARN, "%s: its last %zu bytes could not be written", m->path, m->n);
  if (m->fd >= 0 && close(m->fd) != 0)
    tn_env_log(env, TN_LOG_WARN, "%s: cannot be closed: %s; its end may be missing", m->path,
               strerror(errno));
  tn_delete(env, m->pending);
  tn_delete(env, m);
}

static tn_status open_file(tn_env *env, const void *given, const tn_run_info *run, const char *name,
                           const char *form, void **self) {
  metrics_file *m = tn_new(env, sizeof *m);
  *self = NULL;
  if (!m) return TN_ENOMEM;
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

/* A checkpoint is on disk: so should be what led to it. That it could not be made so is no reason to stop. */
static void sync_file(const metrics_file *m) {
  if (m->fd >= 0 && m->n == 0) (void)fdatasync(m->fd);
}

static const char *word_of(const tn_event *e) { return e->kind == TN_EVENT_STEP ? "step" : "epoch"; }

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
      add(m, env,
          "{\"event\": \"%s\", \"epoch\": %lld, \"step\": %lld, \"seconds\": %.3f, \"per_s\": ", word_of(e),
          (long long)e->epoch, (long long)e->step, e->seconds);
  if (status == TN_OK) status = add_json_number(m, env, e->samples_per_s);
  if (status == TN_OK) status = add(m, env, ", \"lr\": ");
  if (status == TN_OK) status = add_json_number(m, env, e->lr);
  if (status == TN_OK && e->loss_scale != 0) status = add(m, env, ", \"loss_scale\": %.9g", e->loss_scale);
  if (status == TN_OK && e->skipped >= 0) status = add(m, env, ", \"skipped\": %lld", (long long)e->skipped);
  if (status == TN_OK) status = add_json_metrics(m, env, "train", e->train, e->n_train);
  if (status == TN_OK) status = add_json_metrics(m, env, "valid", e->valid, e->n_valid);
  return status == TN_OK ? add(m, env, "}\n") : status;
}

static tn_status hear_jsonl(tn_env *env, void *self, const tn_event *e) {
  metrics_file *m = self;
  if (e->kind == TN_EVENT_CHECKPOINT) sync_file(m);
  if (!metrics_file_wanted(m, e)) return TN_OK;
  size_t before = m->n;
  tn_status status = add_json(m, env, e);
  if (status != TN_OK) m->n = before; /* no half lines */
  return status == TN_OK ? write_pending(m, env) : status;
}

static tn_status open_jsonl(tn_env *env, const void *given, const tn_run_info *run, void **self) {
  return open_file(env, given, run, "metrics.jsonl",
                   "{\"event\": \"%15[a-z]\", \"epoch\": %lld, \"step\": %lld,", self);
}

const tn_observer observer_jsonl = {.item = TN_ITEM(tn_observer, TN_OBSERVER, "jsonl",
                                                    "metrics.jsonl in the run folder: a JSON object a line",
                                                    metrics_file_options, options),
                                    .always = 1,
                                    .open = open_jsonl,
                                    .event = hear_jsonl,
                                    .close = close_file};

/* ---- csv: long form, so that any set of metrics fits ---- */

static tn_status add_rows(metrics_file *m, tn_env *env, const tn_event *e, const char *split,
                          const tn_metric *metrics, int32_t n) {
  tn_status status = TN_OK;
  for (int32_t i = 0; status == TN_OK && i < n; i++)
    status = add(m, env, "%s,%lld,%lld,%.3f,%.9g,%s,%s,%.9g\n", word_of(e), (long long)e->epoch,
                 (long long)e->step, e->seconds, e->lr, split, metrics[i].name, metrics[i].value);
  return status;
}

static tn_status hear_csv(tn_env *env, void *self, const tn_event *e) {
  metrics_file *m = self;
  if (e->kind == TN_EVENT_CHECKPOINT) sync_file(m);
  if (!metrics_file_wanted(m, e)) return TN_OK;
  size_t before = m->n;
  const tn_metric scale = {"loss_scale", e->loss_scale}, skipped = {"skipped", (double)e->skipped};
  tn_status status = add_rows(m, env, e, "train", e->train, e->n_train);
  if (status == TN_OK) status = add_rows(m, env, e, "train", &scale, e->loss_scale != 0);
  if (status == TN_OK) status = add_rows(m, env, e, "train", &skipped, e->skipped >= 0);
  if (status == TN_OK) status = add_rows(m, env, e, "valid", e->valid, e->n_valid);
  if (status != TN_OK) m->n = before; /* no half lines */
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
                                                  "metrics.csv in the run folder: a value a line",
                                                  metrics_file_options, options),
                                  .always = 1,
                                  .open = open_csv,
                                  .event = hear_csv,
                                  .close = close_file};
