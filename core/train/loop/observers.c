/* core/train/loop/observers.c: observers hear events on a thread of their own. Between the two threads stands
 * a ring with one writer and one reader, whose only synchronization is two semaphores: posting a step
 * takes no lock. */
#include "core/train/run.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
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
  tn_error_record record;
  const void *owner; /* memory */
  TN_VEC(tn_watcher) watchers;
  tn_run_info info;
  pthread_t thread;
  tn_queued *queue;
  sem_t filled, vacant;  /* places of the queue */
  sem_t flushed;         /* the thread has come to a TN_EVENT_FLUSH */
  size_t written, heard; /* events so far, each number of one thread's own */
  int64_t dropped;
};

/* What tn_watch_stop and tn_watch_flush send, and no observer hears. */
enum { TN_EVENT_LAST = 0, TN_EVENT_FLUSH = -1 };

/* ---- which observers ---- */

static tn_status open_one(tn_run *run, tn_watch *watch, const tn_observer *kind) {
  tn_watcher watcher = {.kind = kind};
  const void *options = NULL;
  TN_TRY(tn_settings_item(&run->env, &run->ini, "observer", &kind->item, &options));
  tn_status status = kind->open(&run->env, options, &watch->info, &watcher.self);
  if (status != TN_OK) return tn_wrap(&run->env, status, "observer '%s'", kind->item.name);
  status = tn_vec_push(&run->env, &watch->watchers, watcher);
  if (status != TN_OK) kind->close(&run->env, watcher.self);
  return status;
}

/* Every word of [run] observers must be an observer, or one with a minus in front. */
static tn_status check_words(tn_run *run, const tn_entry *entries, int32_t n, const tn_words *words) {
  const char **names = tn_arena_alloc(&run->arena, tn_size_mul((size_t)n + 1, sizeof *names));
  if (!names) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) names[i] = entries[i].item->name;
  const tn_words known = {names, n};
  for (int32_t i = 0; i < words->n; i++) {
    const char *word = words->v[i] + (*words->v[i] == '-');
    if (tn_words_hold(&known, word)) continue;
    const char *nearest = tn_text_nearest(word, names, (size_t)n);
    tn_section *section = tn_ini_section(&run->ini, "run");
    return tn_failf(&run->env, TN_EINVAL, "%s: [run] observers: there is no observer '%s'%s%s%s",
                    tn_key_where(&run->ini, section, tn_section_key(section, "observers")), word,
                    nearest ? ", did you mean '" : "; `tenon inspect` lists them", nearest ? nearest : "",
                    nearest ? "'?" : "");
  }
  return TN_OK;
}

/* "-NAME" leaves one out that always takes part, "NAME" takes one in that does not. */
static bool is_wanted(const tn_observer *kind, const tn_words *words) {
  for (int32_t i = 0; i < words->n; i++) {
    bool minus = words->v[i][0] == '-';
    if (tn_text_equal(words->v[i] + minus, kind->item.name)) return !minus;
  }
  return kind->always != 0;
}

static tn_status open_all(tn_run *run, tn_watch *watch) {
  const tn_entry *entries = NULL;
  int32_t n = 0;
  tn_words words;
  TN_TRY(tn_words_split(&run->arena, run->settings.run.observers, &words));
  TN_TRY(tn_registry_list(run->registry, &run->env, TN_OBSERVER, &entries, &n));
  TN_TRY(check_words(run, entries, n, &words));
  for (int32_t i = 0; i < n; i++) {
    const tn_observer *kind = (const tn_observer *)entries[i].item;
    if (is_wanted(kind, &words)) TN_TRY(open_one(run, watch, kind));
  }
  return TN_OK;
}

/* ---- the thread ---- */

static void deliver(tn_watch *watch, const tn_event *event) {
  for (size_t i = 0; i < watch->watchers.n; i++) {
    tn_watcher *watcher = &watch->watchers.v[i];
    if (watcher->failed || watcher->kind->event(&watch->env, watcher->self, event) == TN_OK) continue;
    watcher->failed = true;
    tn_logf(&watch->env, TN_LOG_WARN, "observer '%s' is left out from now on: %s", watcher->kind->item.name,
            tn_error_text(&watch->env));
  }
}

static void await(sem_t *semaphore) {
  while (sem_wait(semaphore) != 0 && errno == EINTR) continue;
}

static void *run_thread(void *arg) {
  tn_watch *watch = arg;
  for (;;) {
    await(&watch->filled);
    const tn_event *event = &watch->queue[watch->heard++ % TN_WATCH_QUEUE].event;
    if (event->kind == TN_EVENT_LAST) return NULL;
    if (event->kind == TN_EVENT_FLUSH)
      sem_post(&watch->flushed);
    else
      deliver(watch, event);
    sem_post(&watch->vacant);
  }
}

static void destroy(tn_watch *watch) {
  const void *owner = watch->owner;
  for (size_t i = 0; i < watch->watchers.n; i++)
    watch->watchers.v[i].kind->close(&watch->env, watch->watchers.v[i].self);
  sem_destroy(&watch->filled);
  sem_destroy(&watch->vacant);
  sem_destroy(&watch->flushed);
  tn_vec_free(owner, &watch->watchers);
  tn_release(owner, watch->queue);
  tn_release(owner, watch);
}

tn_status tn_watch_start(tn_run *run, const tn_run_info *info, tn_watch **out) {
  *out = NULL;
  tn_watch *watch = tn_alloc(&run->env, sizeof *watch);
  if (!watch) return TN_ENOMEM;
  tn_error_record_init(&watch->env, &watch->record, &run->env);
  watch->owner = &run->env;
  watch->info = *info;
  watch->queue = tn_alloc(&run->env, tn_size_mul(TN_WATCH_QUEUE, sizeof *watch->queue));
  sem_init(&watch->filled, 0, 0);
  sem_init(&watch->vacant, 0, TN_WATCH_QUEUE);
  sem_init(&watch->flushed, 0, 0);
  tn_status status = watch->queue ? open_all(run, watch) : TN_ENOMEM;
  if (status == TN_OK && pthread_create(&watch->thread, NULL, run_thread, watch) != 0)
    status = tn_failf(&run->env, TN_ENOMEM, "no thread could be started for the observers");
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
  bool may_drop = event->kind == TN_EVENT_STEP || event->kind == TN_EVENT_VALID_STEP;
  if (!watch) return;
  if (!may_drop) {
    await(&watch->vacant);
  } else if (sem_trywait(&watch->vacant) != 0) {
    watch->dropped++;
    return;
  }
  copy_event(&watch->queue[watch->written++ % TN_WATCH_QUEUE], event);
  sem_post(&watch->filled);
}

void tn_watch_flush(tn_watch *watch) {
  if (!watch) return;
  tn_watch_post(watch, &(tn_event){.struct_size = sizeof(tn_event), .kind = TN_EVENT_FLUSH});
  await(&watch->flushed);
}

void tn_watch_stop(tn_watch *watch) {
  if (!watch) return;
  tn_watch_post(watch, &(tn_event){.struct_size = sizeof(tn_event), .kind = TN_EVENT_LAST});
  pthread_join(watch->thread, NULL);
  if (watch->dropped > 0)
    tn_logf(&watch->env, TN_LOG_WARN, "%lld step events were not delivered: an observer was too slow",
            (long long)watch->dropped);
  destroy(watch);
}
