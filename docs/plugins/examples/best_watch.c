/* An observer: keeps the lowest loss of the run in a file of its own.
 * `[run] observers = best_watch` and `[observer.best_watch] file = best.txt`. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <tenon/plugin/observer.h>

struct watch_options {
  const char *file;
};
static const tn_option options[] = {
    TN_OPT(struct watch_options, file, TN_OPT_PATH, NULL, NULL, "the file to write"), TN_OPT_END};

struct watch {
  char path[4096];
  double best;
  int heard;
};

static tn_status open_watch(tn_env *env, const void *given, const tn_run_info *run, void **self) {
  struct watch *w = tn_new(env, sizeof *w);
  (void)run;
  if (!w) return TN_ENOMEM;
  snprintf(w->path, sizeof w->path, "%s", ((const struct watch_options *)given)->file);
  *self = w;
  return TN_OK;
}

/* A failure with TN_ESTOPPED would end the run, as stop_below.c does. */
static tn_status hear(tn_env *env, void *self, const tn_event *e) {
  struct watch *w = self;
  if (e->kind == TN_EVENT_STEP && e->n_train > 0 && (!w->heard || e->train[0].value < w->best)) {
    w->best = e->train[0].value;
    w->heard = 1;
  }
  if (e->kind != TN_EVENT_RUN_END) return TN_OK;
  FILE *file = fopen(w->path, "w");
  if (!file) return tn_fail(env, TN_EIO, "file", "%s: %s", w->path, strerror(errno));
  fprintf(file, "lowest loss %.6g\n", w->best);
  return fclose(file) == 0 ? TN_OK : tn_fail(env, TN_EIO, "file", "%s: %s", w->path, strerror(errno));
}

static void close_watch(tn_env *env, void *self) { tn_delete(env, self); }

static const tn_observer best_watch = {.item = TN_ITEM(tn_observer, TN_OBSERVER, "best_watch",
                                                       "the lowest loss in a file", struct watch_options,
                                                       options),
                                       .open = open_watch,
                                       .event = hear,
                                       .close = close_watch};

TN_PLUGIN(best_watch, "1.0", "MIT", &best_watch.item)
