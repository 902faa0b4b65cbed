/* A communicator: sums of floats between synchronous devices of one process, such as those of
 * plain_backend.c. `[distributed] communicator = round_table`. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <tenon/plugin/communicator.h>

enum { MOST = 64, CHUNK = 1024 };

/* Shared by all ranks. */
typedef struct table {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int32_t ranks, here, left;
  uint64_t round, arrived[MOST]; /* rounds done; the last round at which each rank has arrived */
  const tn_collective *calls[MOST];
  char failure[128]; /* "": none */
} table;

typedef struct seat {
  table *table;
  int32_t rank;
  double timeout_s;
} seat;

/* ---- failure ---- */

/* Records the first failure. The lock must be held. */
static tn_status failed(table *t, tn_env *env) {
  return t->failure[0] ? tn_fail(env, TN_ECOMM, NULL, "%s", t->failure) : TN_OK;
}

static void fail_all(table *t, const char *format, int32_t rank) {
  if (!t->failure[0]) snprintf(t->failure, sizeof t->failure, format, (int)rank);
  pthread_cond_broadcast(&t->changed);
}

static void give_up(tn_env *env, void *communicator) {
  seat *s = communicator;
  (void)env;
  pthread_mutex_lock(&s->table->lock);
  fail_all(s->table, "rank %d has given up", s->rank);
  pthread_mutex_unlock(&s->table->lock);
}

static tn_status status(tn_env *env, void *communicator) {
  seat *s = communicator;
  pthread_mutex_lock(&s->table->lock);
  tn_status status = failed(s->table, env);
  pthread_mutex_unlock(&s->table->lock);
  return status;
}

/* ---- rounds ---- */

static int32_t missing(const table *t) {
  for (int32_t r = 0; r < t->ranks; r++)
    if (t->arrived[r] <= t->round) return r;
  return 0;
}

/* Returns when all ranks have arrived, or after the timeout. */
static tn_status meet(seat *s, tn_env *env) {
  table *t = s->table;
  struct timespec until;
  timespec_get(&until, TIME_UTC);
  until.tv_sec += (time_t)s->timeout_s + 1;
  pthread_mutex_lock(&t->lock);
  uint64_t round = t->round;
  t->arrived[s->rank] = round + 1;
  if (++t->here == t->ranks) {
    t->here = 0;
    t->round++;
    pthread_cond_broadcast(&t->changed);
  }
  while (t->round == round && !t->failure[0])
    if (pthread_cond_timedwait(&t->changed, &t->lock, &until) == ETIMEDOUT)
      fail_all(t, "rank %d did not come in time", missing(t));
  tn_status status = failed(t, env);
  pthread_mutex_unlock(&t->lock);
  return status;
}

/* ---- collectives ---- */

static tn_status compare(const seat *s, tn_env *env) {
  const tn_collective *mine = s->table->calls[s->rank], *first = s->table->calls[0];
  if (mine->count == first->count) return TN_OK;
  return tn_fail(env, TN_ECOMM, NULL, "rank %d came with %lld elements, rank 0 with %lld", (int)s->rank,
                 (long long)mine->count, (long long)first->count);
}

/* In the order of ranks, so that all ranks get the same bits in every run. */
static void sum(const table *t, int64_t at, int64_t n, float *chunk) {
  memcpy(chunk, (const float *)t->calls[0]->from + at, (size_t)n * sizeof *chunk);
  for (int32_t r = 1; r < t->ranks; r++)
    for (int64_t i = 0; i < n; i++) chunk[i] += ((const float *)t->calls[r]->from)[at + i];
}

/* All ranks read between two meetings and write after the second, so sums may be in place. */
static tn_status run(tn_env *env, void *communicator, const tn_collective *call, void *stream) {
  seat *s = communicator;
  float chunk[CHUNK];
  (void)stream;
  if (call->kind != TN_ALL_REDUCE || call->reduction != TN_REDUCTION_SUM || call->dtype != TN_F32)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "round_table sums f32 and does nothing else");
  s->table->calls[s->rank] = call;
  tn_status status = TN_OK;
  for (int64_t at = 0; status == TN_OK && at < call->count; at += CHUNK) {
    int64_t n = call->count - at < CHUNK ? call->count - at : CHUNK;
    if ((status = meet(s, env)) != TN_OK || (status = compare(s, env)) != TN_OK) break;
    sum(s->table, at, n, chunk);
    if ((status = meet(s, env)) == TN_OK) memcpy((float *)call->to + at, chunk, (size_t)n * sizeof *chunk);
  }
  return status;
}

/* ---- open, close ---- */

static tn_status identify(tn_env *env, const void *options, const tn_comm_place *place, void *identity) {
  (void)options, (void)place;
  table *t = tn_new(env, sizeof *t);
  if (t == NULL) return TN_ENOMEM;
  pthread_mutex_init(&t->lock, NULL);
  pthread_cond_init(&t->changed, NULL);
  memcpy(identity, &t, sizeof t);
  return TN_OK;
}

static void close_seat(tn_env *env, void *communicator) {
  seat *s = communicator;
  table *t = s->table;
  tn_delete(env, s);
  pthread_mutex_lock(&t->lock);
  int last = ++t->left == t->ranks;
  pthread_mutex_unlock(&t->lock);
  if (!last) return;
  pthread_cond_destroy(&t->changed);
  pthread_mutex_destroy(&t->lock);
  tn_delete(env, t);
}

static tn_status open_seat(tn_env *env, const void *options, const tn_comm_device *device,
                           const tn_comm_place *place, const void *identity, void **communicator) {
  (void)options, (void)device, *communicator = NULL;
  if (place->processes > 1) return tn_fail(env, TN_EUNSUPPORTED, NULL, "the ranks are not of one process");
  if (place->ranks > MOST)
    return tn_fail(env, TN_EINVAL, NULL, "%d ranks, expected at most %d", place->ranks, MOST);
  seat *s = tn_new(env, sizeof *s);
  if (s == NULL) return TN_ENOMEM;
  s->rank = place->rank;
  s->timeout_s = place->timeout_s;
  memcpy(&s->table, identity, sizeof s->table);
  pthread_mutex_lock(&s->table->lock);
  s->table->ranks = place->ranks;
  pthread_mutex_unlock(&s->table->lock);
  tn_status status = meet(s, env);
  if (status != TN_OK) return close_seat(env, s), status;
  *communicator = s;
  return TN_OK;
}

static const tn_communicator round_table = {
    .item = TN_ITEM_PLAIN(tn_communicator, TN_COMMUNICATOR, "round_table", "sums between threads"),
    .families = "plain",
    .identity_bytes = sizeof(table *),
    .identify = identify,
    .open = open_seat,
    .close = close_seat,
    .run = run,
    .status = status,
    .abort = give_up};

TN_PLUGIN(round_table, "1.0", "MIT", &round_table.item)
