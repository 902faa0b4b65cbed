/* core/base/timeline.c: an array of spans under a lock. Spans are far apart, a launch or a part of a batch
 * each, and only while a profile is taken. */
#include "core/base/timeline.h"

#include <pthread.h>

#include "core/base/vec.h"

enum { MOST_SPANS = 1 << 20 };

struct tn_timeline {
  tn_env env; /* threads add spans, so the memory has a record of its own */
  tn_error_record record;
  const void *owner;
  pthread_mutex_t lock;
  bool open;
  TN_VEC(tn_span) spans;
  int64_t lost;
};

tn_timeline *tn_timeline_new(const void *handle) {
  tn_timeline *t = tn_alloc(handle, sizeof *t);
  if (t == NULL) return NULL;
  tn_error_record_init(&t->env, &t->record, handle);
  t->owner = handle;
  pthread_mutex_init(&t->lock, NULL);
  return t;
}

void tn_timeline_free(tn_timeline *t) {
  if (t == NULL) return;
  tn_vec_free(&t->env, &t->spans);
  pthread_mutex_destroy(&t->lock);
  tn_release(t->owner, t);
}

void tn_timeline_open(tn_timeline *t, bool open) {
  pthread_mutex_lock(&t->lock);
  t->open = open;
  pthread_mutex_unlock(&t->lock);
}

void tn_timeline_add(tn_timeline *t, const tn_span *span) {
  pthread_mutex_lock(&t->lock);
  if (t->open && (t->spans.n == MOST_SPANS || tn_vec_push(&t->env, &t->spans, *span) != TN_OK)) t->lost++;
  pthread_mutex_unlock(&t->lock);
}

const tn_span *tn_timeline_spans(tn_timeline *t, size_t *n, int64_t *lost) {
  pthread_mutex_lock(&t->lock);
  *n = t->spans.n;
  *lost = t->lost;
  pthread_mutex_unlock(&t->lock);
  return t->spans.v;
}

void tn_timeline_clear(tn_timeline *t) {
  pthread_mutex_lock(&t->lock);
  t->spans.n = 0;
  t->lost = 0;
  pthread_mutex_unlock(&t->lock);
}
