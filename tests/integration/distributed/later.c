/* Synchronous devices, and communicators whose collectives run on a thread of each rank, after a random
 * delay. `later` has await; `prompt` waits in run, and is the same otherwise. Both round as a sum in the
 * order of ranks, so trainings with them have the same bits where the host awaits what it has to. */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include <tenon/plugin/backend.h>
#include <tenon/plugin/communicator.h>
#include <tenon/random.h>

enum { MOST = 4, RING = 64 };

typedef struct later_options {
  int64_t seed, delay_us, fail;
} later_options;

static const tn_option options_of[] = {
    TN_OPT(later_options, seed, TN_OPT_INT, "1", NULL, "of the delays"),
    TN_OPT(later_options, delay_us, TN_OPT_INT, "1000", ">= 0", "longest delay of a collective"),
    TN_OPT(later_options, fail, TN_OPT_INT, "0", ">= 0", "number of rank 1's collective that fails"),
    TN_OPT_END};

typedef struct table table;

typedef struct seat {
  table *table;
  later_options options;
  int32_t rank;
  bool closing;
  uint64_t begun, ended;
  tn_collective ring[RING];
  const tn_collective *call; /* of the current meeting */
  pthread_t thread;
} seat;

struct table {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int32_t ranks, opened, here, left;
  uint64_t round;
  bool failed;
  seat seats[MOST];
};

/* ---- on the threads of the ranks ---- */

/* Returns when all ranks have come, or one has failed. The lock is held. */
static bool meet(table *t) {
  uint64_t round = t->round;
  if (++t->here == t->ranks) {
    t->here = 0;
    t->round++;
    pthread_cond_broadcast(&t->changed);
  }
  while (t->round == round && !t->failed) pthread_cond_wait(&t->changed, &t->lock);
  return !t->failed;
}

static float element_of(const table *t, const tn_collective *call, int64_t i) {
  if (call->kind == TN_ALL_GATHER)
    return ((const float *)t->seats[i / call->count].call->from)[i % call->count];
  float sum = ((const float *)t->seats[0].call->from)[i];
  for (int32_t r = 1; r < t->ranks; r++) sum += ((const float *)t->seats[r].call->from)[i];
  return sum;
}

/* The results of a chunk are kept until all ranks have read their operands. */
static bool combine(seat *s, const tn_collective *call) {
  table *t = s->table;
  float chunk[1024];
  int64_t part = call->count / t->ranks, first = call->kind == TN_REDUCE_SCATTER ? s->rank * part : 0,
          n = call->kind == TN_REDUCE_SCATTER ? part
              : call->kind == TN_ALL_GATHER   ? call->count * t->ranks
                                              : call->count;
  s->call = call;
  for (int64_t at = 0; at < n; at += 1024) {
    int64_t m = n - at < 1024 ? n - at : 1024;
    if (!meet(t)) return false;
    for (int64_t i = 0; i < m; i++) chunk[i] = element_of(t, call, first + at + i);
    if (!meet(t)) return false;
    memcpy((float *)call->to + at, chunk, (size_t)m * sizeof *chunk);
  }
  return true;
}

static void pause_before(const seat *s, uint64_t number) {
  uint64_t us =
      tn_hash_mix((uint64_t)(s->options.seed * MOST + s->rank), number) % (uint64_t)(s->options.delay_us + 1);
  nanosleep(&(struct timespec){0, (long)us * 1000}, NULL);
}

static void *work(void *arg) {
  seat *s = arg;
  table *t = s->table;
  pthread_mutex_lock(&t->lock);
  while (!s->closing) {
    if (s->ended == s->begun || t->failed) {
      pthread_cond_wait(&t->changed, &t->lock);
      continue;
    }
    pthread_mutex_unlock(&t->lock);
    pause_before(s, s->ended);
    pthread_mutex_lock(&t->lock);
    bool fails = s->rank == 1 && s->ended + 1 == (uint64_t)s->options.fail;
    if (fails || !combine(s, &s->ring[s->ended % RING])) t->failed = true;
    s->ended++;
    pthread_cond_broadcast(&t->changed);
  }
  pthread_mutex_unlock(&t->lock);
  return NULL;
}

/* ---- the communicators ---- */

static tn_status answer(tn_env *env, const table *t) {
  return t->failed ? tn_fail(env, TN_ECOMM, NULL, "later: a collective has failed") : TN_OK;
}

static tn_status status(tn_env *env, void *communicator) {
  table *t = ((seat *)communicator)->table;
  pthread_mutex_lock(&t->lock);
  tn_status said = answer(env, t);
  pthread_mutex_unlock(&t->lock);
  return said;
}

static void give_up(tn_env *env, void *communicator) {
  table *t = ((seat *)communicator)->table;
  (void)env;
  pthread_mutex_lock(&t->lock);
  t->failed = true;
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->lock);
}

static tn_status await_first(tn_env *env, void *communicator, uint64_t n) {
  seat *s = communicator;
  table *t = s->table;
  pthread_mutex_lock(&t->lock);
  while (s->ended < n && s->ended < s->begun && !t->failed) pthread_cond_wait(&t->changed, &t->lock);
  tn_status said = answer(env, t);
  pthread_mutex_unlock(&t->lock);
  return said;
}

static tn_status run_later(tn_env *env, void *communicator, const tn_collective *call, void *stream) {
  seat *s = communicator;
  table *t = s->table;
  (void)stream;
  bool sums = call->kind != TN_BROADCAST && call->reduction == TN_REDUCTION_SUM && call->dtype == TN_F32;
  if (!sums) return tn_fail(env, TN_EUNSUPPORTED, NULL, "later sums and gathers f32 and does nothing else");
  pthread_mutex_lock(&t->lock);
  while (s->begun - s->ended == RING && !t->failed) pthread_cond_wait(&t->changed, &t->lock);
  tn_status said = answer(env, t);
  if (said == TN_OK) s->ring[s->begun++ % RING] = *call;
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->lock);
  return said;
}

static tn_status run_prompt(tn_env *env, void *communicator, const tn_collective *call, void *stream) {
  tn_status begun = run_later(env, communicator, call, stream);
  return begun == TN_OK ? await_first(env, communicator, ((seat *)communicator)->begun) : begun;
}

static tn_status identify(tn_env *env, const void *options, const tn_comm_place *place, void *identity) {
  table *t = tn_new(env, sizeof *t);
  (void)options, (void)place;
  if (t == NULL) return TN_ENOMEM;
  pthread_mutex_init(&t->lock, NULL);
  pthread_cond_init(&t->changed, NULL);
  memcpy(identity, &t, sizeof t);
  return TN_OK;
}

static tn_status open_seat(tn_env *env, const void *options, const tn_comm_device *device,
                           const tn_comm_place *place, const void *identity, void **communicator) {
  table *t;
  (void)device;
  memcpy(&t, identity, sizeof t);
  if (place->ranks > MOST) return tn_fail(env, TN_EUNSUPPORTED, NULL, "later serves up to %d ranks", MOST);
  seat *s = &t->seats[place->rank];
  pthread_mutex_lock(&t->lock);
  t->ranks = place->ranks;
  *s = (seat){.table = t, .options = *(const later_options *)options, .rank = place->rank};
  t->opened++;
  pthread_cond_broadcast(&t->changed);
  while (t->opened < t->ranks) pthread_cond_wait(&t->changed, &t->lock);
  pthread_mutex_unlock(&t->lock);
  if (pthread_create(&s->thread, NULL, work, s) != 0)
    return tn_fail(env, TN_EUNAVAILABLE, NULL, "later: a thread could not be started");
  *communicator = s;
  return TN_OK;
}

static void close_seat(tn_env *env, void *communicator) {
  seat *s = communicator;
  table *t = s->table;
  pthread_mutex_lock(&t->lock);
  s->closing = true;
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->lock);
  pthread_join(s->thread, NULL);
  pthread_mutex_lock(&t->lock);
  bool last = ++t->left == t->ranks;
  pthread_mutex_unlock(&t->lock);
  if (!last) return;
  pthread_cond_destroy(&t->changed);
  pthread_mutex_destroy(&t->lock);
  tn_delete(env, t);
}

#define KIND(kind, says)                                                                                     \
  static const tn_communicator kind = {                                                                      \
      .item = TN_ITEM(tn_communicator, TN_COMMUNICATOR, #kind, says, later_options, options_of),             \
      .families = "plain",                                                                                   \
      .identity_bytes = sizeof(table *),                                                                     \
      .identify = identify,                                                                                  \
      .open = open_seat,                                                                                     \
      .close = close_seat,                                                                                   \
      .run = run_##kind,                                                                                     \
      .status = status,                                                                                      \
      .abort = give_up,                                                                                      \
      .capturable = CAPTURABLE,                                                                              \
      .await = AWAIT}

#define CAPTURABLE 0
#define AWAIT      await_first
KIND(later, "sums on a thread, awaited by the host");
#undef AWAIT
#define AWAIT NULL
KIND(prompt, "sums on a thread, awaited in run");
#undef AWAIT
#undef CAPTURABLE
#define AWAIT      await_first
#define CAPTURABLE 1
#define run_both   run_later
KIND(both, "is awaited and captured, which cannot be");

/* ---- the devices ---- */

static tn_status count(tn_env *env, void *self, int32_t *n) {
  return (void)self, (void)env, *n = MOST, TN_OK;
}

static const tn_backend plain = {
    .item = TN_ITEM_PLAIN(tn_backend, TN_BACKEND, "plain", "host threads"), .accepts = "cpu", .count = count};

TN_PLUGIN(later, "1", "MIT", &plain.item, &prompt.item, &later.item, &both.item)
