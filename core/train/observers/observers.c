/* core/train/observers/observers.c: runs observers on a thread. Events pass through a ring with one writer
 * and one reader; two semaphores are the only synchronization, so that posting a step takes no lock. */
#include "core/train/observers/observers.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/system/system.h"
#include "core/train/observers/live_report.h"
#include "core/train/observers/queued_event.h"

enum { TN_EVENT_QUEUE = 256 };

/* A training waits for a full queue for a second, and for a share of its time: a disk that pauses loses no
 * line of a log, and an observer that is always slower than the steps does not slow them. */
static const double tn_event_wait_s = 1, tn_event_wait_share = 0.01;

typedef struct tn_open_observer {
  const tn_observer *kind;
  void *self;
  bool failed; /* receives no more events */
} tn_open_observer;

struct tn_observers {
  tn_env env; /* of the observers' thread */
  tn_error_record record;
  const void *owner; /* of the memory */
  TN_VEC(tn_open_observer) open;
  tn_run_info info;
  tn_live_report report;
  pthread_t thread;
  tn_queued_event *queue;
  sem_t filled, vacant;      /* entries of the queue */
  sem_t flushed;             /* posted when the thread has reached a TN_EVENT_FLUSH */
  size_t written, delivered; /* counts so far; each is written by one thread */
  int64_t dropped;
  double waited_s;                 /* for a full queue, by events that may be dropped */
  char stop_reason[TN_EVENT_TEXT]; /* of the first observer that asked for the end; complete when `stop` is
                                      set */
  atomic_bool stop;
};

/* Internal events that no observer receives. */
enum { TN_EVENT_LAST = 0, TN_EVENT_FLUSH = -1 };

/* ---- which observers ---- */

static tn_status observers_open_one(tn_run *run, tn_observers *observers, const tn_observer *kind) {
  tn_open_observer one = {.kind = kind};
  const void *options = NULL;
  TN_TRY(tn_settings_item_options(&run->env, &run->ini, "observer", &kind->item, &options));
  tn_status status = kind->open(&run->env, options, &observers->info, &one.self);
  if (status != TN_OK) return tn_wrap(&run->env, status, "observer '%s'", kind->item.name);
  status = tn_vec_push(&run->env, &observers->open, one);
  if (status != TN_OK) kind->close(&run->env, one.self);
  return status;
}

/* "-NAME" disables an observer that is enabled by default; "NAME" enables one that is not. The library
 * prints nothing that the application or the configuration has not asked for. */
static bool observers_is_wanted(const tn_run *run, const tn_observer *kind, const tn_words *words) {
  for (int32_t i = 0; i < words->n; i++) {
    bool minus = words->v[i][0] == '-';
    if (tn_text_equal(words->v[i] + minus, kind->item.name)) return !minus;
  }
  return kind->always && (!kind->prints || run->progress);
}

static tn_status observers_open_all(tn_run *run, tn_observers *observers) {
  const tn_entry *entries = NULL;
  int32_t n = 0;
  tn_words words;
  TN_TRY(tn_words_split(&run->arena, run->settings.run.observers, &words));
  TN_TRY(tn_registry_list(run->registry, &run->env, TN_OBSERVER, &entries, &n));
  for (int32_t i = 0; i < n; i++) {
    const tn_observer *kind = (const tn_observer *)entries[i].item;
    if (observers_is_wanted(run, kind, &words)) TN_TRY(observers_open_one(run, observers, kind));
  }
  return TN_OK;
}

/* ---- the thread ---- */

/* The first reason counts. */
static void observers_keep_stop(tn_observers *observers, const tn_open_observer *one) {
  if (atomic_load(&observers->stop)) return;
  const char *text = tn_error_text(&observers->env);
  snprintf(observers->stop_reason, sizeof observers->stop_reason, "observer '%s'%s%s", one->kind->item.name,
           *text ? ": " : "", text);
  atomic_store(&observers->stop, true);
}

static void observers_deliver_to(tn_observers *observers, tn_open_observer *one, const tn_event *event) {
  if (one->failed) return;
  tn_error_clear(&observers->env); /* an earlier failure is not the reason of this one */
  tn_status status = one->kind->event(&observers->env, one->self, event);
  if (status == TN_ESTOPPED) observers_keep_stop(observers, one);
  one->failed = status != TN_OK && status != TN_ESTOPPED;
  if (one->failed)
    tn_logf(&observers->env, TN_LOG_WARN, "observer '%s' receives no more events: %s", one->kind->item.name,
            tn_error_text(&observers->env));
}

static void observers_deliver(tn_observers *observers, const tn_event *event) {
  for (size_t i = 0; i < observers->open.n; i++)
    observers_deliver_to(observers, &observers->open.v[i], event);
  tn_live_report_update(&observers->report, event);
}

static void observers_await(sem_t *semaphore) {
  while (sem_wait(semaphore) != 0 && errno == EINTR) continue;
}

static void *observers_run_thread(void *arg) {
  tn_observers *observers = arg;
  TN_THREAD_STATE;
  for (;;) {
    observers_await(&observers->filled);
    tn_queued_event *queued = &observers->queue[observers->delivered++ % TN_EVENT_QUEUE];
    const tn_event *event = &queued->event;
    if (event->kind == TN_EVENT_LAST) return NULL;
    if (event->kind == TN_EVENT_FLUSH)
      sem_post(&observers->flushed);
    else
      observers_deliver(observers, event);
    tn_queued_event_clear(observers->owner, queued);
    sem_post(&observers->vacant);
  }
}

static void observers_destroy(tn_observers *observers) {
  const void *owner = observers->owner;
  tn_live_report_stop(&observers->report);
  for (size_t i = 0; i < observers->open.n; i++)
    observers->open.v[i].kind->close(&observers->env, observers->open.v[i].self);
  sem_destroy(&observers->filled);
  sem_destroy(&observers->vacant);
  sem_destroy(&observers->flushed);
  tn_vec_free(owner, &observers->open);
  tn_release(owner, observers->queue);
  tn_release(owner, observers);
}

tn_status tn_observers_start(tn_run *run, const tn_run_info *info, tn_observers **out) {
  *out = NULL;
  tn_observers *observers = tn_alloc(&run->env, sizeof *observers);
  if (observers == NULL) return TN_ENOMEM;
  tn_error_record_init(&observers->env, &observers->record, &run->env);
  observers->owner = &run->env;
  observers->info = *info;
  if (run->settings.run.report && *info->folder)
    tn_live_report_start(&observers->report, &run->env, info->folder);
  observers->queue = tn_alloc(&run->env, tn_size_mul(TN_EVENT_QUEUE, sizeof *observers->queue));
  sem_init(&observers->filled, 0, 0);
  sem_init(&observers->vacant, 0, TN_EVENT_QUEUE);
  sem_init(&observers->flushed, 0, 0);
  tn_status status = observers->queue ? observers_open_all(run, observers) : TN_ENOMEM;
  if (status == TN_OK && tn_thread_start(&observers->thread, observers_run_thread, observers) != 0)
    status = tn_failf(&run->env, TN_ENOMEM, "no thread could be started for the observers");
  if (status == TN_OK)
    *out = observers;
  else
    observers_destroy(observers);
  return status;
}

/* False: the queue is still full after `limit_s` seconds. */
static bool observers_await_for(sem_t *semaphore, double limit_s) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  long ns = until.tv_nsec + (long)(1e9 * (limit_s - floor(limit_s)));
  until.tv_sec += (time_t)limit_s + ns / 1000000000;
  until.tv_nsec = ns % 1000000000;
  int result;
  while ((result = sem_timedwait(semaphore, &until)) != 0 && errno == EINTR) continue;
  return result == 0;
}

/* Takes a vacant entry for an event that may be dropped. False: all entries are taken. */
static bool observers_find_vacant(tn_observers *observers, double run_s) {
  if (sem_trywait(&observers->vacant) == 0) return true;
  double left_s = tn_event_wait_s + tn_event_wait_share * run_s - observers->waited_s, start_s = tn_clock_s();
  bool found = left_s > 0 && observers_await_for(&observers->vacant, fmin(left_s, tn_event_wait_s));
  observers->waited_s += tn_clock_s() - start_s;
  return found;
}

void tn_observers_post(tn_observers *observers, const tn_event *event) {
  bool may_drop = event->kind == TN_EVENT_STEP || event->kind == TN_EVENT_VALID_STEP;
  if (observers == NULL) return;
  if (!may_drop) {
    observers_await(&observers->vacant);
  } else if (!observers_find_vacant(observers, event->seconds)) {
    observers->dropped++;
    return;
  }
  tn_queued_event_set(observers->owner, &observers->queue[observers->written++ % TN_EVENT_QUEUE], event);
  sem_post(&observers->filled);
}

void tn_observers_flush(tn_observers *observers) {
  if (observers == NULL) return;
  tn_observers_post(observers, &(tn_event){.struct_size = sizeof(tn_event), .kind = TN_EVENT_FLUSH});
  observers_await(&observers->flushed);
}

const char *tn_observers_stop_reason(const tn_observers *observers) {
  return observers != NULL && atomic_load(&observers->stop) ? observers->stop_reason : NULL;
}

void tn_observers_stop(tn_observers *observers) {
  if (observers == NULL) return;
  tn_observers_post(observers, &(tn_event){.struct_size = sizeof(tn_event), .kind = TN_EVENT_LAST});
  pthread_join(observers->thread, NULL);
  if (observers->dropped > 0)
    tn_logf(&observers->env, TN_LOG_WARN, "%lld step events were not delivered: an observer was too slow",
            (long long)observers->dropped);
  observers_destroy(observers);
}
