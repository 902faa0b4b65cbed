/* plugins/observers/metrics_file.c: jsonl and csv write a line per step and epoch to a file in the run
 * folder.
 *
 * The file is written before each checkpoint. A resumed run first truncates the file after the step of the
 * checkpoint, including an incomplete last line, and writes the later steps again. After any number of
 * crashes the file equals that of an uninterrupted run, except for the times. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugins/observers/run_file.h"
#include "plugins/observers/whole_file.h"

enum { HEAD = 256 }; /* the start of a line, which has its event, epoch and step */

typedef struct metrics_file_options {
  int64_t every;
} metrics_file_options;
static const tn_option options[] = {
    TN_OPT(metrics_file_options, every, TN_OPT_INT, "1", ">= 1", "steps between lines"), TN_OPT_END};

typedef struct metrics_file {
  run_file file;
  int64_t every;
  const char *form; /* the scanf format of the start of a line: event, epoch, step */
} metrics_file;

/* ---- lines of an earlier process ---- */

/* Whether this process will write the line that starts with `head` again. */
static int is_stale(const metrics_file *m, const tn_run_info *run, const char *head) {
  char event[16];
  long long epoch, step;
  if (sscanf(head, m->form, event, &epoch, &step) != 3) return 0;
  int again = (strcmp(event, "epoch") == 0 || strcmp(event, "samples") == 0) && !run->epoch_ended;
  return step > run->first_step || (step == run->first_step && again);
}

/* Returns the offset of the first stale or incomplete line; -1 if the file cannot be read. */
static off_t end_of_valid(const metrics_file *m, const tn_run_info *run) {
  char piece[4096], head[HEAD];
  size_t in_head = 0;
  off_t line = 0, at = 0;
  for (;;) {
    ssize_t n = pread(m->file.fd, piece, sizeof piece, at);
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
  if (end < 0) return tn_fail(env, TN_EIO, NULL, "%s: cannot be read: %s", m->file.path, strerror(errno));
  if (lseek(m->file.fd, 0, SEEK_END) > end && ftruncate(m->file.fd, end) != 0)
    return tn_fail(env, TN_EIO, NULL, "%s: cannot be truncated to the step of the checkpoint: %s",
                   m->file.path, strerror(errno));
  return TN_OK;
}

/* ---- open and close ---- */

static void close_file(tn_env *env, void *self) {
  metrics_file *m = self;
  run_file_close(&m->file, env);
  tn_delete(env, m);
}

static tn_status open_file(tn_env *env, const void *given, const tn_run_info *run, const char *name,
                           const char *form, void **self) {
  metrics_file *m = tn_new(env, sizeof *m);
  *self = NULL;
  if (m == NULL) return TN_ENOMEM;
  m->every = ((const metrics_file_options *)given)->every;
  m->form = form;
  tn_status status = run_file_open(&m->file, env, run->folder, name);
  if (status == TN_OK && m->file.fd >= 0) status = metrics_file_cut(m, env, run);
  if (status == TN_OK)
    *self = m;
  else
    close_file(env, m);
  return status;
}

static int metrics_file_wanted(const metrics_file *m, const tn_event *e) {
  if (m->file.fd < 0) return 0;
  return e->kind == TN_EVENT_EPOCH_END || e->kind == TN_EVENT_WATCH ||
         (e->kind == TN_EVENT_STEP && e->step % m->every == 0);
}

static const char *event_name(const tn_event *e) {
  if (e->kind == TN_EVENT_WATCH) return "watch";
  return e->kind == TN_EVENT_STEP ? "step" : "epoch";
}

/* ---- jsonl ---- */

static tn_status add_json_number(metrics_file *m, tn_env *env, double value) {
  return isfinite(value) ? run_file_print(&m->file, env, "%.9g", value)
                         : run_file_print(&m->file, env, "null");
}

static tn_status add_json_metrics(metrics_file *m, tn_env *env, const char *title, const tn_metric *metrics,
                                  int32_t n) {
  if (n == 0) return TN_OK;
  tn_status status = run_file_print(&m->file, env, ", \"%s\": {", title);
  for (int32_t i = 0; status == TN_OK && i < n; i++) {
    status = run_file_print(&m->file, env, "%s\"%s\": ", i ? ", " : "", metrics[i].name);
    if (status == TN_OK) status = add_json_number(m, env, metrics[i].value);
  }
  return status == TN_OK ? run_file_print(&m->file, env, "}") : status;
}

/* Quotes and backslashes of the text are replaced, and so are control characters. */
static tn_status add_json_straggler(metrics_file *m, tn_env *env, const tn_event *e) {
  char text[512];
  size_t n = 0;
  for (const char *c = e->text; *c != '\0' && n < sizeof text - 1; c++)
    text[n++] = (unsigned char)*c < 0x20 || *c == '"' || *c == '\\' ? '?' : *c;
  text[n] = '\0';
  return run_file_print(&m->file, env,
                        "{\"event\": \"straggler\", \"epoch\": %lld, \"step\": %lld, \"seconds\": %.3f, "
                        "\"text\": \"%s\"}\n",
                        (long long)e->epoch + 1, (long long)e->step, e->seconds, text);
}

/* Where the observer `media` writes them, below the run folder. */
static tn_status add_json_samples(metrics_file *m, tn_env *env, const tn_event *e) {
  char path[512];
  TN_TRY(run_file_print(&m->file, env,
                        "{\"event\": \"samples\", \"epoch\": %lld, \"step\": %lld, \"seconds\": %.3f, "
                        "\"files\": [",
                        (long long)e->epoch + 1, (long long)e->step, e->seconds));
  for (int32_t i = 0; i < e->n_media; i++) {
    media_path(e, &e->media[i], path, sizeof path);
    TN_TRY(run_file_print(&m->file, env, "%s\"%s\"", i > 0 ? ", " : "", path));
  }
  return run_file_print(&m->file, env, "]}\n");
}

static tn_status add_json(metrics_file *m, tn_env *env, const tn_event *e) {
  TN_TRY(run_file_print(&m->file, env,
                        "{\"event\": \"%s\", \"epoch\": %lld, \"step\": %lld, \"seconds\": %.3f, \"per_s\": ",
                        event_name(e), (long long)e->epoch + 1, (long long)e->step, e->seconds));
  TN_TRY(add_json_number(m, env, e->samples_per_s));
  if (e->kind == TN_EVENT_WATCH) {
    TN_TRY(add_json_metrics(m, env, "watched", e->watched, e->n_watched));
    return run_file_print(&m->file, env, "}\n");
  }
  TN_TRY(run_file_print(&m->file, env, ", \"lr\": "));
  TN_TRY(add_json_number(m, env, e->lr));
  if (e->samples > 0) TN_TRY(run_file_print(&m->file, env, ", \"samples\": %lld", (long long)e->samples));
  if (e->loss_scale != 0) TN_TRY(run_file_print(&m->file, env, ", \"loss_scale\": "));
  if (e->loss_scale != 0) TN_TRY(add_json_number(m, env, e->loss_scale));
  if (e->skipped >= 0) TN_TRY(run_file_print(&m->file, env, ", \"skipped\": %lld", (long long)e->skipped));
  if (e->sparsity >= 0) TN_TRY(run_file_print(&m->file, env, ", \"sparsity\": %.6g", e->sparsity));
  TN_TRY(add_json_metrics(m, env, "train", e->train, e->n_train));
  TN_TRY(add_json_metrics(m, env, "valid", e->valid, e->n_valid));
  return run_file_print(&m->file, env, "}\n");
}

static tn_status metrics_file_on_jsonl_event(tn_env *env, void *self, const tn_event *e) {
  metrics_file *m = self;
  tn_status (*add)(metrics_file * m, tn_env * env, const tn_event *e) = add_json;
  if (e->kind == TN_EVENT_CHECKPOINT) run_file_sync(&m->file);
  if (e->kind == TN_EVENT_STRAGGLER) add = add_json_straggler;
  if (e->kind == TN_EVENT_SAMPLES) add = add_json_samples;
  bool other = add != add_json && m->file.fd >= 0;
  if (!other && !metrics_file_wanted(m, e)) return TN_OK;
  size_t before = m->file.n;
  tn_status status = add(m, env, e);
  if (status != TN_OK) m->file.n = before; /* drop the incomplete line */
  return status == TN_OK ? run_file_write(&m->file, env) : status;
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
    status = run_file_print(&m->file, env, "%s,%lld,%lld,%.3f,%.9g,%s,%s,%.9g\n", event_name(e),
                            (long long)e->epoch + 1, (long long)e->step, e->seconds, e->lr, split,
                            metrics[i].name, metrics[i].value);
  return status;
}

static tn_status metrics_file_on_csv_event(tn_env *env, void *self, const tn_event *e) {
  metrics_file *m = self;
  if (e->kind == TN_EVENT_CHECKPOINT) run_file_sync(&m->file);
  if (!metrics_file_wanted(m, e)) return TN_OK;
  size_t before = m->file.n;
  const tn_metric scale = {"loss_scale", e->loss_scale}, skipped = {"skipped", (double)e->skipped};
  if (e->kind == TN_EVENT_WATCH) {
    tn_status status = add_rows(m, env, e, "watch", e->watched, e->n_watched);
    if (status != TN_OK) m->file.n = before;
    return status == TN_OK ? run_file_write(&m->file, env) : status;
  }
  tn_status status = add_rows(m, env, e, "train", e->train, e->n_train);
  if (status == TN_OK) status = add_rows(m, env, e, "train", &scale, e->loss_scale != 0);
  if (status == TN_OK) status = add_rows(m, env, e, "train", &skipped, e->skipped >= 0);
  if (status == TN_OK) status = add_rows(m, env, e, "valid", e->valid, e->n_valid);
  if (status != TN_OK) m->file.n = before; /* drop the incomplete line */
  return status == TN_OK ? run_file_write(&m->file, env) : status;
}

static tn_status open_csv(tn_env *env, const void *given, const tn_run_info *run, void **self) {
  tn_status status = open_file(env, given, run, "metrics.csv", "%15[a-z],%lld,%lld,", self);
  metrics_file *m = *self;
  if (status != TN_OK || m->file.fd < 0 || lseek(m->file.fd, 0, SEEK_END) > 0) return status;
  status = run_file_print(&m->file, env, "event,epoch,step,seconds,lr,split,metric,value\n");
  if (status == TN_OK) return run_file_write(&m->file, env);
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
