/* core/tokenizer/batch.c: many texts on several threads. Neighbouring texts form portions, which the threads
 * take in turn; the ids of the portions are joined in their order, so that the result does not depend on the
 * number of threads. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/base/system/system.h"
#include "core/base/thread_state.h"
#include "core/tokenizer/calls.h"
#include "core/tokenizer/tokenizer.h"

enum { PORTION_BYTES = 1 << 18, MOST_THREADS = 256 };

typedef struct batch_portion {
  size_t first, end; /* texts */
  tn_token_ids ids;
  tn_status status;
  size_t failed; /* the text that failed */
  char message[512];
} batch_portion;

typedef struct batch {
  const tn_tokenizer *t;
  const tn_token_text *texts;
  size_t *ends; /* within the portion, at first */
  uint32_t flags;
  TN_VEC(batch_portion) portions;
  atomic_size_t next;
  atomic_bool stopped; /* a portion failed; those behind it are not begun */
} batch;

static tn_status batch_divide(const void *handle, batch *b, size_t n) {
  size_t bytes = 0, first = 0;
  for (size_t i = 0; i < n; i++) {
    bytes += b->texts[i].bytes;
    if (bytes < PORTION_BYTES && i + 1 < n) continue;
    TN_TRY(tn_vec_push(handle, &b->portions, ((batch_portion){.first = first, .end = i + 1})));
    first = i + 1;
    bytes = 0;
  }
  return TN_OK;
}

static void batch_encode(batch *b, batch_portion *p) {
  tn_env env;
  tn_error_record record;
  tn_error_record_init(&env, &record, &b->t->env);
  for (size_t i = p->first; i < p->end && p->status == TN_OK; i++) {
    p->status = tn_host_tokenizer_encode(&env, b->t, b->texts[i].text, b->texts[i].bytes, b->flags, &p->ids);
    p->failed = i;
    b->ends[i] = p->ids.n;
  }
  if (p->status == TN_OK) return;
  snprintf(p->message, sizeof p->message, "%s", tn_error_text(&env));
  atomic_store(&b->stopped, true);
}

static void *batch_work(void *arg) {
  TN_THREAD_STATE;
  batch *b = arg;
  size_t i;
  while (!atomic_load(&b->stopped) && (i = atomic_fetch_add(&b->next, 1)) < b->portions.n)
    batch_encode(b, &b->portions.v[i]);
  return NULL;
}

/* The caller's thread works as well. Threads that cannot be started are missed only. */
static void batch_run(batch *b, int32_t threads) {
  pthread_t started[MOST_THREADS];
  int32_t n = 0;
  if ((size_t)threads > b->portions.n) threads = (int32_t)b->portions.n;
  while (n + 1 < threads && n < MOST_THREADS && tn_thread_start(&started[n], batch_work, b) == 0) n++;
  batch_work(b);
  for (int32_t i = 0; i < n; i++) pthread_join(started[i], NULL);
}

/* Portions are taken in their order, so that the first text which fails is always found. */
static tn_status batch_join(const void *handle, batch *b, tn_token_ids *ids) {
  for (size_t k = 0; k < b->portions.n; k++) {
    const batch_portion *p = &b->portions.v[k];
    if (p->status != TN_OK) return tn_failf(handle, p->status, "text %zu: %s", p->failed + 1, p->message);
    TN_TRY(tn_vec_reserve_(handle, (void **)&ids->v, &ids->room, ids->n + p->ids.n, sizeof *ids->v));
    if (p->ids.n > 0) memcpy(ids->v + ids->n, p->ids.v, p->ids.n * sizeof *ids->v);
    for (size_t i = p->first; i < p->end; i++) b->ends[i] += ids->n;
    ids->n += p->ids.n;
  }
  return TN_OK;
}

tn_status tn_host_tokenizer_encode_all(const void *handle, const tn_tokenizer *t, const tn_token_text *texts,
                                       size_t n, uint32_t flags, int32_t threads, tn_token_ids *ids,
                                       size_t *ends) {
  batch b = {.t = t, .texts = texts, .ends = ends, .flags = flags};
  tn_status status = batch_divide(handle, &b, n);
  if (status == TN_OK) {
    batch_run(&b, threads > 0 ? threads : tn_cpu_count());
    status = batch_join(handle, &b, ids);
  }
  for (size_t k = 0; k < b.portions.n; k++) tn_release(&t->env, b.portions.v[k].ids.v);
  tn_vec_free(handle, &b.portions);
  return status;
}
