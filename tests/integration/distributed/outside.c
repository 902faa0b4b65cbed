/* A communicator of another shared object than the devices' backend. It knows a device by the interface
 * "sim.1" alone, as one for NCCL knows "cuda.1". It sums f32 in the order of ranks, and cannot be captured.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/native.h"
#include "tenon/plugin/communicator.h"

enum { MOST = 8, ARRIVED = 0, SUMMED = 1, STAGES = 2 };

typedef struct table table;

typedef struct seat {
  table *table;
  int32_t rank;
  const tn_comm_device *device;
  uint64_t begun;
  _Atomic(uint64_t) reached[STAGES]; /* the last collective of which the rank has reached the stage */
  const float *from;                 /* of the current collective */
  float *sum;
  int64_t room;
} seat;

struct table {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int32_t ranks, here, left;
  seat seats[MOST];
  atomic_bool failed;
};

typedef struct call {
  seat *seat;
  tn_collective collective;
  const tn_sim_native *native;
  uint64_t number; /* 0: not begun */
  int32_t stage;
} call;

static bool all_have_reached(const table *t, int32_t stage, uint64_t number) {
  for (int32_t r = 0; r < t->ranks; r++)
    if (atomic_load(&t->seats[r].reached[stage]) < number) return false;
  return true;
}

static tn_status begin(tn_env *env, call *c) {
  seat *s = c->seat;
  if (s->room < c->collective.count) {
    s->room = c->collective.count;
    free(s->sum);
    s->sum = malloc((size_t)s->room * sizeof *s->sum);
    if (s->sum == NULL) return tn_fail(env, TN_ENOMEM, NULL, "no memory for a sum");
  }
  s->from = c->native->real(c->collective.from);
  c->number = ++s->begun;
  atomic_store(&s->reached[ARRIVED], c->number);
  return TN_OK;
}

static void add_all(const call *c) {
  const table *t = c->seat->table;
  float *sum = c->seat->sum;
  memcpy(sum, t->seats[0].from, (size_t)c->collective.count * sizeof *sum);
  for (int32_t r = 1; r < t->ranks; r++)
    for (int64_t i = 0; i < c->collective.count; i++) sum[i] += t->seats[r].from[i];
}

/* On the engine, until the result is written: all ranks have read their operands then. */
static tn_status advance(tn_env *env, void *arg) {
  call *c = arg;
  const table *t = c->seat->table;
  if (atomic_load(&t->failed)) return tn_fail(env, TN_ECOMM, NULL, "outside: a rank has given up");
  tn_status status = c->number == 0 ? begin(env, c) : TN_OK;
  if (status != TN_OK) return status;
  if (!all_have_reached(t, c->stage, c->number)) return TN_SIM_PENDING;
  if (c->stage == ARRIVED) {
    add_all(c);
    atomic_store(&c->seat->reached[c->stage = SUMMED], c->number);
    if (!all_have_reached(t, SUMMED, c->number)) return TN_SIM_PENDING;
  }
  memcpy(c->native->real(c->collective.to), c->seat->sum, (size_t)c->collective.count * sizeof(float));
  return TN_OK;
}

static tn_status run(tn_env *env, void *communicator, const tn_collective *collective, void *stream) {
  seat *s = communicator;
  const tn_sim_native *native = s->device->native(env, s->device, stream, TN_SIM_NATIVE);
  if (collective->kind != TN_ALL_REDUCE || collective->reduction != TN_REDUCTION_SUM ||
      collective->dtype != TN_F32)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "outside sums f32 and does nothing else");
  uint64_t bytes = (uint64_t)collective->count * sizeof(float);
  tn_sim_task task = {.name = collective->name,
                      .body = advance,
                      .n_reads = 1,
                      .n_writes = 1,
                      .reads = {{collective->from, bytes}},
                      .writes = {{collective->to, bytes}}};
  call c = {.seat = s, .collective = *collective, .native = native};
  return native->push_task(env, native->stream, &task, &c, sizeof c);
}

static tn_status status(tn_env *env, void *communicator) {
  const table *t = ((seat *)communicator)->table;
  return atomic_load(&t->failed) ? tn_fail(env, TN_ECOMM, NULL, "outside: a rank has given up") : TN_OK;
}

static void give_up(tn_env *env, void *communicator) {
  (void)env;
  atomic_store(&((seat *)communicator)->table->failed, true);
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
  (void)options;
  *communicator = NULL;
  memcpy(&t, identity, sizeof t);
  const tn_sim_native *native = device->native(env, device, NULL, TN_SIM_NATIVE);
  if (place->ranks > MOST || native == NULL || native->stream != NULL || native->struct_size < sizeof *native)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "outside serves up to %d devices with sim.1", MOST);
  pthread_mutex_lock(&t->lock);
  t->ranks = place->ranks;
  t->seats[place->rank] = (seat){.table = t, .rank = place->rank, .device = device};
  t->here++;
  pthread_cond_broadcast(&t->changed);
  while (t->here < place->ranks) pthread_cond_wait(&t->changed, &t->lock);
  pthread_mutex_unlock(&t->lock);
  *communicator = &t->seats[place->rank];
  return TN_OK;
}

static void close_seat(tn_env *env, void *communicator) {
  seat *s = communicator;
  table *t = s->table;
  free(s->sum);
  pthread_mutex_lock(&t->lock);
  bool last = ++t->left == t->ranks;
  pthread_mutex_unlock(&t->lock);
  if (!last) return;
  pthread_cond_destroy(&t->changed);
  pthread_mutex_destroy(&t->lock);
  tn_delete(env, t);
}

static const tn_communicator outside = {
    .item = TN_ITEM_PLAIN(tn_communicator, TN_COMMUNICATOR, "outside", "sums by the interface sim.1"),
    .families = "sim",
    .identity_bytes = sizeof(table *),
    .identify = identify,
    .open = open_seat,
    .close = close_seat,
    .run = run,
    .status = status,
    .abort = give_up};

TN_PLUGIN(outside, "1", "MIT", &outside.item)
