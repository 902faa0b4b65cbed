/* plugins/observers/tensorboard.c: writes an event file to the run folder, which `tensorboard --logdir` reads
 * while the run goes on. A resumed run writes a file of its own, which begins with a restart, so that the
 * curves have each step once. */
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "plugins/observers/event_record.h"
#include "plugins/observers/run_file.h"

typedef struct tensorboard_options {
  int64_t every;
} tensorboard_options;
static const tn_option tensorboard_rows[] = {TN_OPT(tensorboard_options, every, TN_OPT_INT, "10", ">= 1",
                                                    "steps between values of the training steps"),
                                             TN_OPT_END};

typedef struct tensorboard {
  run_file file;
  int64_t every;
} tensorboard;

/* ---- records ---- */

static double tensorboard_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static tn_status tensorboard_add(tensorboard *t, tn_env *env, const event_record *r) {
  return run_file_add(&t->file, env, r->v, r->n);
}

static tn_status tensorboard_scalar(tensorboard *t, tn_env *env, const tn_event *e, const char *group,
                                    const char *name, double value) {
  char tag[EVENT_TAG + 1];
  event_record r;
  snprintf(tag, sizeof tag, "%s%s%s", group, *group ? "/" : "", name);
  event_record_scalar(&r, tensorboard_now(), e->step, tag, value);
  return tensorboard_add(t, env, &r);
}

static tn_status tensorboard_metrics(tensorboard *t, tn_env *env, const tn_event *e, const char *group,
                                     const tn_metric *metrics, int32_t n) {
  tn_status status = TN_OK;
  for (int32_t i = 0; status == TN_OK && i < n; i++)
    status = tensorboard_scalar(t, env, e, group, metrics[i].name, metrics[i].value);
  return status;
}

static tn_status tensorboard_step(tensorboard *t, tn_env *env, const tn_event *e) {
  TN_TRY(tensorboard_metrics(t, env, e, "train", e->train, e->n_train));
  TN_TRY(tensorboard_scalar(t, env, e, "", "lr", e->lr));
  if (e->samples_per_s > 0) TN_TRY(tensorboard_scalar(t, env, e, "", "samples_per_s", e->samples_per_s));
  if (e->samples > 0) TN_TRY(tensorboard_scalar(t, env, e, "", "samples", (double)e->samples));
  if (e->loss_scale != 0) TN_TRY(tensorboard_scalar(t, env, e, "", "loss_scale", e->loss_scale));
  return TN_OK;
}

static tn_status tensorboard_epoch(tensorboard *t, tn_env *env, const tn_event *e) {
  TN_TRY(tensorboard_scalar(t, env, e, "", "epoch", (double)e->epoch + 1));
  if (e->skipped >= 0) TN_TRY(tensorboard_scalar(t, env, e, "", "skipped", (double)e->skipped));
  if (e->sparsity >= 0) TN_TRY(tensorboard_scalar(t, env, e, "", "sparsity", e->sparsity));
  TN_TRY(tensorboard_metrics(t, env, e, "epoch", e->train, e->n_train));
  return tensorboard_metrics(t, env, e, "valid", e->valid, e->n_valid);
}

/* A histogram without finite numbers has no place in a chart. */
static tn_status tensorboard_watch(tensorboard *t, tn_env *env, const tn_event *e) {
  event_record r;
  for (int32_t i = 0; i < e->n_watched; i++)
    TN_TRY(tensorboard_scalar(t, env, e, "", e->watched[i].name, e->watched[i].value));
  for (int32_t i = 0; i < e->n_histograms; i++) {
    const tn_histogram *h = &e->histograms[i];
    if (h->n == 0 || !isfinite(h->min) || !isfinite(h->max)) continue;
    event_record_histogram(&r, tensorboard_now(), e->step, h);
    TN_TRY(tensorboard_add(t, env, &r));
  }
  return TN_OK;
}

static tn_status tensorboard_samples(tensorboard *t, tn_env *env, const tn_event *e) {
  event_record r;
  unsigned char end[4];
  for (int32_t i = 0; i < e->n_media; i++) {
    event_record_media(&r, end, tensorboard_now(), e->step, &e->media[i]);
    TN_TRY(tensorboard_add(t, env, &r));
    TN_TRY(run_file_add(&t->file, env, e->media[i].data, e->media[i].bytes));
    TN_TRY(run_file_add(&t->file, env, end, sizeof end));
  }
  return TN_OK;
}

/* ---- the observer ---- */

static void tensorboard_close(tn_env *env, void *self) {
  tensorboard *t = self;
  run_file_close(&t->file, env);
  tn_delete(env, t);
}

/* The program reads the files of a folder in the order of their names, so the time comes first. */
static void tensorboard_name(char *name, size_t n) {
  char host[64] = "";
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  gethostname(host, sizeof host - 1);
  for (char *c = host; *c != '\0'; c++)
    if (*c == '/') *c = '-';
  snprintf(name, n, "events.out.tfevents.%010lld.%09ld.%s.%ld", (long long)now.tv_sec, now.tv_nsec, host,
           (long)getpid());
}

/* The step of the checkpoint was reported before it. */
static tn_status tensorboard_begin(tensorboard *t, tn_env *env, const tn_run_info *run) {
  event_record version, restart;
  event_record_version(&version, tensorboard_now());
  event_record_restart(&restart, tensorboard_now(), run->first_step > 0 ? run->first_step + 1 : 0);
  tn_status status = tensorboard_add(t, env, &version);
  if (status == TN_OK) status = tensorboard_add(t, env, &restart);
  return status == TN_OK ? run_file_write(&t->file, env) : status;
}

static tn_status tensorboard_open(tn_env *env, const void *given, const tn_run_info *run, void **self) {
  char name[256];
  tensorboard *t = tn_new(env, sizeof *t);
  *self = NULL;
  if (t == NULL) return TN_ENOMEM;
  t->every = ((const tensorboard_options *)given)->every;
  tensorboard_name(name, sizeof name);
  tn_status status = run_file_open(&t->file, env, run->folder, name);
  if (status == TN_OK && t->file.fd >= 0) status = tensorboard_begin(t, env, run);
  if (status == TN_OK)
    *self = t;
  else
    tensorboard_close(env, t);
  return status;
}

static tn_status tensorboard_on_event(tn_env *env, void *self, const tn_event *e) {
  tensorboard *t = self;
  if (t->file.fd < 0) return TN_OK;
  if (e->kind == TN_EVENT_CHECKPOINT) run_file_sync(&t->file);
  size_t before = t->file.n;
  tn_status status = TN_OK;
  if (e->kind == TN_EVENT_STEP && e->step % t->every == 0) status = tensorboard_step(t, env, e);
  if (e->kind == TN_EVENT_WATCH) status = tensorboard_watch(t, env, e);
  if (e->kind == TN_EVENT_SAMPLES) status = tensorboard_samples(t, env, e);
  if (e->kind == TN_EVENT_EPOCH_END) status = tensorboard_epoch(t, env, e);
  if (status != TN_OK) t->file.n = before; /* no part of an event */
  return status == TN_OK ? run_file_write(&t->file, env) : status;
}

const tn_observer observer_tensorboard = {.item = TN_ITEM(tn_observer, TN_OBSERVER, "tensorboard",
                                                          "an event file for TensorBoard in the run folder",
                                                          tensorboard_options, tensorboard_rows),
                                          .open = tensorboard_open,
                                          .event = tensorboard_on_event,
                                          .close = tensorboard_close};
