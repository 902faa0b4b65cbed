/* Synchronous devices and their communicator, which note in the file `order` what the host releases: m,
 * memory of a device; c, a communicator; d, a device. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tenon/plugin/backend.h>
#include <tenon/plugin/communicator.h>

enum { MOST = 4 };

static void note(char what) {
  int file = open("order", O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (file < 0 || write(file, &what, 1) != 1) abort();
  close(file);
}

/* ---- the communicator ---- */

typedef struct seat {
  struct table *table;
  int32_t rank;
} seat;

typedef struct table {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int32_t ranks, here, left;
  uint64_t round;
  int failed;
  const float *from[MOST];
  seat seats[MOST];
} table;

/* Returns when all ranks have come. */
static tn_status meet(tn_env *env, table *t) {
  pthread_mutex_lock(&t->lock);
  uint64_t round = t->round;
  if (++t->here == t->ranks) {
    t->here = 0;
    t->round++;
    pthread_cond_broadcast(&t->changed);
  }
  while (t->round == round && !t->failed) pthread_cond_wait(&t->changed, &t->lock);
  int failed = t->failed;
  pthread_mutex_unlock(&t->lock);
  return failed ? tn_fail(env, TN_ECOMM, NULL, "order: a rank has given up") : TN_OK;
}

static tn_status run(tn_env *env, void *communicator, const tn_collective *call, void *stream) {
  seat *s = communicator;
  table *t = s->table;
  (void)stream;
  if (call->kind != TN_ALL_REDUCE || call->dtype != TN_F32 || call->reduction != TN_REDUCTION_SUM)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "order sums f32 and does nothing else");
  t->from[s->rank] = call->from;
  float *sum = malloc((size_t)call->count * sizeof *sum + 1);
  tn_status met = sum != NULL ? meet(env, t) : TN_ENOMEM;
  for (int64_t i = 0; met == TN_OK && i < call->count; i++) {
    sum[i] = t->from[0][i];
    for (int32_t r = 1; r < t->ranks; r++) sum[i] += t->from[r][i];
  }
  if (met == TN_OK) met = meet(env, t);
  if (met == TN_OK) memcpy(call->to, sum, (size_t)call->count * sizeof *sum);
  free(sum);
  return met;
}

static void give_up(tn_env *env, void *communicator) {
  table *t = ((seat *)communicator)->table;
  (void)env;
  pthread_mutex_lock(&t->lock);
  t->failed = 1;
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->lock);
}

static tn_status status(tn_env *env, void *communicator) {
  table *t = ((seat *)communicator)->table;
  pthread_mutex_lock(&t->lock);
  int failed = t->failed;
  pthread_mutex_unlock(&t->lock);
  return failed ? tn_fail(env, TN_ECOMM, NULL, "order: a rank has given up") : TN_OK;
}

static tn_status identify(tn_env *env, const void *options, const tn_comm_place *place, void *identity) {
  table *t = tn_new(env, sizeof *t);
  (void)options;
  if (t == NULL) return TN_ENOMEM;
  pthread_mutex_init(&t->lock, NULL);
  pthread_cond_init(&t->changed, NULL);
  t->ranks = place->ranks;
  memcpy(identity, &t, sizeof t);
  return TN_OK;
}

static tn_status open_seat(tn_env *env, const void *options, const tn_comm_device *device,
                           const tn_comm_place *place, const void *identity, void **communicator) {
  table *t;
  (void)options, (void)device;
  memcpy(&t, identity, sizeof t);
  if (place->ranks > MOST) return tn_fail(env, TN_EUNSUPPORTED, NULL, "order serves up to %d ranks", MOST);
  t->seats[place->rank] = (seat){t, place->rank};
  *communicator = &t->seats[place->rank];
  return meet(env, t);
}

static void close_seat(tn_env *env, void *communicator) {
  table *t = ((seat *)communicator)->table;
  note('c');
  if (++t->left < t->ranks) return;
  pthread_cond_destroy(&t->changed);
  pthread_mutex_destroy(&t->lock);
  tn_delete(env, t);
}

static const tn_communicator communicator = {
    .item = TN_ITEM_PLAIN(tn_communicator, TN_COMMUNICATOR, "order", "notes when it is closed"),
    .families = "ordered",
    .identity_bytes = sizeof(table *),
    .identify = identify,
    .open = open_seat,
    .close = close_seat,
    .run = run,
    .status = status,
    .abort = give_up};

/* ---- the devices ---- */

static tn_status count(tn_env *env, void *self, int32_t *n) {
  return (void)self, (void)env, *n = MOST, TN_OK;
}

static tn_status properties(tn_env *env, void *self, int32_t index, tn_device_properties *p) {
  (void)env, (void)self, (void)index;
  p->host_addressable = 1;
  p->threads = 1;
  return TN_OK;
}

static tn_status device_open(tn_env *env, void *self, int32_t index, void **device) {
  return (void)env, (void)index, *device = self, TN_OK;
}

static void device_close(tn_env *env, void *device) {
  (void)env, (void)device;
  note('d');
}

static tn_status memory_new(tn_env *env, void *device, int32_t kind, uint64_t bytes, void **address) {
  (void)device, (void)kind;
  *address = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
  return *address != NULL ? TN_OK : tn_fail(env, TN_ENOMEM, NULL, "no memory");
}

static void memory_delete(tn_env *env, void *device, int32_t kind, void *address, uint64_t bytes) {
  (void)env, (void)device, (void)kind, (void)bytes;
  note('m');
  free(address);
}

static tn_status copy(tn_env *env, void *stream, int32_t direction, void *to, const void *from,
                      uint64_t bytes) {
  (void)env, (void)stream, (void)direction;
  return memmove(to, from, (size_t)bytes), TN_OK;
}

static tn_status fill_zero(tn_env *env, void *stream, void *address, uint64_t bytes) {
  (void)env, (void)stream;
  return memset(address, 0, (size_t)bytes), TN_OK;
}

static const tn_backend ordered = {
    .item = TN_ITEM_PLAIN(tn_backend, TN_BACKEND, "ordered", "notes when its devices are closed"),
    .accepts = "cpu",
    .count = count,
    .properties = properties,
    .device_open = device_open,
    .device_close = device_close,
    .memory_new = memory_new,
    .memory_delete = memory_delete,
    .copy = copy,
    .fill_zero = fill_zero};

TN_PLUGIN(order, "1", "MIT", &ordered.item, &communicator.item)
