/* jsonl and csv: one line a step and an epoch in the run folder. Lines are appended whole, so a file
 * that a crash cut short loses its last line at most; a resumed run appends. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "observers.h"

typedef struct metrics_file_options {
  int64_t every;
} metrics_file_options;
static const tn_option options[] = {
    TN_OPT(metrics_file_options, every, TN_OPT_INT, "1", ">= 1", "write every so many steps"), TN_OPT_END};

typedef struct metrics_file {
  FILE *file; /* NULL: the run writes nothing */
  int64_t every;
  char path[4096];
} metrics_file;

static tn_status open_file(tn_env *env, const void *given, const tn_run_info *run, const char *name,
                           void **self) {
  metrics_file *m = tn_new(env, sizeof *m);
  if (!m) return TN_ENOMEM;
  m->every = ((const metrics_file_options *)given)->every;
  *self = m;
  if (*run->folder == '\0') return TN_OK;
  if (snprintf(m->path, sizeof m->path, "%s/%s", run->folder, name) < (int)sizeof m->path)
    m->file = fopen(m->path, "a");
  if (m->file) return TN_OK;
  tn_status status = tn_fail(env, TN_EIO, NULL, "%s: cannot be opened: %s", m->path, strerror(errno));
  tn_delete(env, m);
  *self = NULL;
  return status;
}

static void close_file(void *self, tn_env *env) {
  metrics_file *m = self;
  if (m->file) fclose(m->file);
  tn_delete(env, m);
}

static tn_status flushed(metrics_file *m, tn_env *env) {
  if (fflush(m->file) == 0) return TN_OK;
  return tn_fail(env, TN_EIO, NULL, "%s: cannot be written: %s", m->path, strerror(errno));
}

static int wanted(const metrics_file *m, const tn_event *e) {
  if (!m->file) return 0;
  return e->what == TN_EVENT_EPOCH_END || (e->what == TN_EVENT_STEP && e->step % m->every == 0);
}

/* ---- jsonl ---- */

static void write_json_number(FILE *file, double value) {
  if (isfinite(value))
    fprintf(file, "%.9g", value);
  else
    fprintf(file, "null");
}

static void write_json_metrics(FILE *file, const char *title, const tn_metric *metrics, int32_t n) {
  if (n == 0) return;
  fprintf(file, ", \"%s\": {", title);
  for (int32_t i = 0; i < n; i++) {
    fprintf(file, "%s\"%s\": ", i ? ", " : "", metrics[i].name);
    write_json_number(file, metrics[i].value);
  }
  fprintf(file, "}");
}

static tn_status hear_jsonl(void *self, tn_env *env, const tn_event *e) {
  metrics_file *m = self;
  if (!wanted(m, e)) return TN_OK;
  fprintf(m->file, "{\"event\": \"%s\", \"epoch\": %lld, \"step\": %lld, \"seconds\": %.3f, \"per_s\": ",
          e->what == TN_EVENT_STEP ? "step" : "epoch", (long long)e->epoch, (long long)e->step, e->seconds);
  write_json_number(m->file, e->samples_per_s);
  fprintf(m->file, ", \"lr\": ");
  write_json_number(m->file, e->lr);
  write_json_metrics(m->file, "train", e->train, e->n_train);
  write_json_metrics(m->file, "valid", e->valid, e->n_valid);
  fprintf(m->file, "}\n");
  return flushed(m, env);
}

static tn_status open_jsonl(tn_env *env, const void *given, const tn_run_info *run, void **self) {
  return open_file(env, given, run, "metrics.jsonl", self);
}

const tn_observer observer_jsonl = {.item = TN_ITEM(tn_observer, TN_OBSERVER, "jsonl",
                                                    "metrics.jsonl in the run folder: a JSON object a line",
                                                    metrics_file_options, options),
                                    .always = 1,
                                    .open = open_jsonl,
                                    .event = hear_jsonl,
                                    .close = close_file};

/* ---- csv: long form, so that any set of metrics fits ---- */

static void write_rows(metrics_file *m, const tn_event *e, const char *split, const tn_metric *metrics,
                       int32_t n) {
  for (int32_t i = 0; i < n; i++)
    fprintf(m->file, "%s,%lld,%lld,%.3f,%.9g,%s,%s,%.9g\n", e->what == TN_EVENT_STEP ? "step" : "epoch",
            (long long)e->epoch, (long long)e->step, e->seconds, e->lr, split, metrics[i].name,
            metrics[i].value);
}

static tn_status hear_csv(void *self, tn_env *env, const tn_event *e) {
  metrics_file *m = self;
  if (!wanted(m, e)) return TN_OK;
  write_rows(m, e, "train", e->train, e->n_train);
  write_rows(m, e, "valid", e->valid, e->n_valid);
  return flushed(m, env);
}

static tn_status open_csv(tn_env *env, const void *given, const tn_run_info *run, void **self) {
  tn_status status = open_file(env, given, run, "metrics.csv", self);
  metrics_file *m = *self;
  if (status == TN_OK && m->file && ftell(m->file) == 0)
    fprintf(m->file, "event,epoch,step,seconds,lr,split,metric,value\n");
  return status;
}

const tn_observer observer_csv = {.item = TN_ITEM(tn_observer, TN_OBSERVER, "csv",
                                                  "metrics.csv in the run folder: a value a line",
                                                  metrics_file_options, options),
                                  .always = 1,
                                  .open = open_csv,
                                  .event = hear_csv,
                                  .close = close_file};
