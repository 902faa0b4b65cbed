/* core/train/watch.c: observers hear events on a thread of their own, from a bounded queue. */
#include "core/train/session.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { TN_WATCH_QUEUE = 256, TN_WATCH_METRICS = 32, TN_WATCH_TEXT = 512 };

/* An event with the memory that it points to. */
typedef struct tn_queued {
  tn_event event;
  tn_metric train[TN_WATCH_METRICS], valid[TN_WATCH_METRICS];
  char text[TN_WATCH_TEXT];
} tn_queued;

typedef struct tn_watcher {
  const tn_observer *kind;
  void *self;
  bool failed; /* left out from then on */
} tn_watcher;

struct tn_watch {
  tn_env env; /* of the observers' thread */
  tn_slot slot;
  const void *owner; /* memory */
  TN_VEC(tn_watcher) watchers;
  tn_run_info info;
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  tn_queued *queue;
  size_t first, count;
  int64_t dropped;
  bool done;
};

/* ---- which observers ---- */

/* Whether a list "a, -b" names an item with this sign. */
static bool listed(const char *list, const char *name, bool minus) {
  size_t length = strlen(name);
  for (const char *at = list; (at = strstr(at, name)); at += length) {
    bool starts = at == list || strchr(" ,\n-", at[-1]);
    bool ends = at[length] == '\0' || strchr(" ,\n", at[length]);
    if (starts && ends && (at > list && at[-1] == '-') == minus) return true;
  }
  return false;
}

static tn_status open_one(tn_run *run, tn_watch *watch, const tn_observer *kind) {
  tn_watcher watcher = {.kind = kind};
  const void *options = NULL;
  TN_TRY(tn_settings_item(&run->env, &run->ini, "observer", &kind->item, &options));
  tn_status status = kind->open(&run->env, options, &watch->info, &watcher.self);
  if (status != TN_OK) return tn_wrap(&run->env, status, "observer '%s'", kind->item.name);
  status = tn_vec_push(&run->env, &watch->watchers, watcher);
  if (status != TN_OK) kind->close(watcher.self, &run->env);
  return status;
}

/* Every word of [run] observers must be an observer. */
static tn_status check_list(tn_run *run, const tn_entry *entries, int32_t n, const char *list) {
  char *save = NULL, *copy = tn_arena_strdup(&run->arena, list);
  if (!copy) return TN_ENOMEM;
  for (char *word = strtok_r(copy, ",\n", &save); word; word = strtok_r(NULL, ",\n", &save)) {
    const char *name = tn_text_trim(word);
    bool found = *name == '\0';
    if (*name == '-') name++;
    for (int32_t i = 0; i < n; i++) found = found || tn_text_equal(entries[i].item->name, name);
    if (!found)
      return tn_failf(&run->env, TN_EINVAL, "%s: [run] observers: there is no observer '%s'", run->ini.path,
                      name);
  }
  return TN_OK;
}

static tn_status open_all(tn_run *run, tn_watch *watch) {
  const tn_entry *entries = NULL;
  int32_t n = 0;
  const char *list = run->settings.run.observers;
  TN_TRY(tn_registry_list(run->registry, &run->env, TN_OBSERVER, &entries, &n));
  TN_TRY(check_list(run, entries, n, list));
  for (int32_t i = 0; i < n; i++) {
    const tn_observer *kind = (const tn_observer *)entries[i].item;
    bool wanted = kind->always ? !listed(list, kind->item.name, true) : listed(list, kind->item.name, false);
    if (wanted) TN_TRY(open_one(run, watch, kind));
  }
  return TN_OK;
}

/* ---- the thread ---- */

static void deliver(tn_watch *watch, const tn_event *event) {
  for (size_t i = 0; i < watch->watchers.n; i++) {
    tn_watcher *watcher = &watch->watchers.v[i];
    if (watcher->failed || watcher->kind->event(watcher->self, &watch->env, event) == TN_OK) continue;
    watcher->failed = true;
    tn_logf(&watch->env, TN_LOG_WARN, "observer '%s' is left out from now on: %s", watcher->kind->item.name,
            tn_error_text(&watch->env));
  }
}

static void *run_thread(void *arg) {
  tn_watch *watch = arg;
  pthread_mutex_lock(&watch->mutex);
  for (;;) {
    while (watch->count == 0 && !watch->done) pthread_cond_wait(&watch->changed, &watch->mutex);
    if (watch->count == 0) break;
    tn_queued *next = &watch->queue[watch->first];
    pthread_mutex_unlock(&watch->mutex); /* the slot is ours until `first` moves */
    deliver(watch, &next->event);
    pthread_mutex_lock(&watch->mutex);
    watch->first = (watch->first + 1) % TN_WATCH_QUEUE;
    watch->count--;
    pthread_cond_broadcast(&watch->changed);
  }
  pthread_mutex_unlock(&watch->mutex);
  return NULL;
}

static void destroy(tn_watch *watch) {
  const void *owner = watch->owner;
  for (size_t i = 0; i < watch->watchers.n; i++)
    watch->watchers.v[i].kind->close(watch->watchers.v[i].self, &watch->env);
  tn_vec_free(owner, &watch->watchers);
  tn_release(owner, watch->queue);
  tn_release(owner, watch);
}

tn_status tn_watch_start(tn_run *run, const tn_run_info *info, tn_watch **out) {
  *out = NULL;
  tn_watch *watch = tn_alloc(&run->env, sizeof *watch);
  if (!watch) return TN_ENOMEM;
  tn_slot_init(&watch->env, &watch->slot, &run->env);
  watch->owner = &run->env;
  watch->info = *info;
  watch->queue = tn_alloc(&run->env, tn_size_mul(TN_WATCH_QUEUE, sizeof *watch->queue));
  tn_status status = watch->queue ? open_all(run, watch) : TN_ENOMEM;
  if (status == TN_OK) {
    pthread_mutex_init(&watch->mutex, NULL);
    pthread_cond_init(&watch->changed, NULL);
    if (pthread_create(&watch->thread, NULL, run_thread, watch) != 0) {
      pthread_mutex_destroy(&watch->mutex);
      pthread_cond_destroy(&watch->changed);
      status = tn_failf(&run->env, TN_ENOMEM, "no thread could be started for the observers");
    }
  }
  if (status == TN_OK)
    *out = watch;
  else
    destroy(watch);
  return status;
}

static void copy_event(tn_queued *to, const tn_event *event) {
  to->event = *event;
  to->event.n_train = event->n_train < TN_WATCH_METRICS ? event->n_train : TN_WATCH_METRICS;
  to->event.n_valid = event->n_valid < TN_WATCH_METRICS ? event->n_valid : TN_WATCH_METRICS;
  if (to->event.n_train > 0) memcpy(to->train, event->train, sizeof(tn_metric) * (size_t)to->event.n_train);
  if (to->event.n_valid > 0) memcpy(to->valid, event->valid, sizeof(tn_metric) * (size_t)to->event.n_valid);
  strncpy(to->text, event->text ? event->text : "", TN_WATCH_TEXT - 1);
  to->text[TN_WATCH_TEXT - 1] = '\0';
  to->event.train = to->train;
  to->event.valid = to->valid;
  to->event.text = to->text;
}

void tn_watch_post(tn_watch *watch, const tn_event *event) {
  bool may_drop = event->what == TN_EVENT_STEP || event->what == TN_EVENT_VALID_STEP;
  if (!watch) return;
  pthread_mutex_lock(&watch->mutex);
  while (watch->count == TN_WATCH_QUEUE && !may_drop) pthread_cond_wait(&watch->changed, &watch->mutex);
  if (watch->count < TN_WATCH_QUEUE) {
    copy_event(&watch->queue[(watch->first + watch->count++) % TN_WATCH_QUEUE], event);
    pthread_cond_broadcast(&watch->changed);
  } else {
    watch->dropped++;
  }
  pthread_mutex_unlock(&watch->mutex);
}

void tn_watch_stop(tn_watch *watch) {
  if (!watch) return;
  pthread_mutex_lock(&watch->mutex);
  watch->done = true;
  pthread_cond_broadcast(&watch->changed);
  pthread_mutex_unlock(&watch->mutex);
  pthread_join(watch->thread, NULL);
  pthread_mutex_destroy(&watch->mutex);
  pthread_cond_destroy(&watch->changed);
  if (watch->dropped > 0)
    tn_logf(&watch->env, TN_LOG_WARN, "%lld step events were not delivered: an observer was too slow",
            (long long)watch->dropped);
  destroy(watch);
}
