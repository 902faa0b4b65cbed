/* tests/fakenccl/run.c: the work of a group of calls on its stream. It runs on the engine of the device,
 * holds the lock of the communicator, and returns FAKECUDA_PENDING where it would have to wait. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fakenccl/fakenccl.h"
#include "backends/shared/clock.h"

static const double LIVES_S = 0.02; /* the time between two looks at the other processes */

/* ---- the list of a communicator ---- */

static void run_unlink(fakenccl_batch *b) {
  fakenccl_batch **link = &b->comm->batches;
  while (*link != b) link = &(*link)->next;
  *link = b->next;
  free(b);
}

void fakenccl_batch_drop(fakenccl_batch *b) {
  fakenccl_comm *c = b->comm;
  pthread_mutex_lock(&c->lock);
  if (b->captured)
    c->captured--;
  else
    c->issued--;
  run_unlink(b);
  pthread_mutex_unlock(&c->lock);
}

void fakenccl_batch_release(void *batch) {
  fakenccl_batch *b = batch;
  fakenccl_comm *c = b->comm;
  pthread_mutex_lock(&c->lock);
  if (c->active == b) c->active = NULL; /* a fault has ended the context */
  c->captured--;
  run_unlink(b);
  pthread_mutex_unlock(&c->lock);
}

/* ---- memory ---- */

static size_t run_bytes(const fakenccl_comm *c, const fakenccl_op *op, bool result) {
  size_t n = op->what.count * fakenccl_dtype_size(op->what.dtype);
  bool root = c->rank == op->what.peer;
  switch (op->what.kind) {
  case FAKENCCL_BROADCAST: return result || root ? n : 0;
  case FAKENCCL_REDUCE: return !result || root ? n : 0;
  case FAKENCCL_ALL_GATHER: return result ? n * (size_t)c->ranks : n;
  case FAKENCCL_REDUCE_SCATTER: return result ? n : n * (size_t)c->ranks;
  case FAKENCCL_SEND: return result ? 0 : n;
  case FAKENCCL_RECV: return result ? n : 0;
  default: return n;
  }
}

static bool run_find(const fakenccl_comm *c, const void *at, size_t bytes, char **real) {
  *real = bytes > 0 ? fakenccl_driver_get()->f_fakecuda_real(c->device, at, bytes) : NULL;
  if (bytes == 0 || *real != NULL) return true;
  fakenccl_log("rank %d: a collective runs, but %zu bytes from %p are no memory of device %d any more",
               c->rank, bytes, at, c->device);
  return false;
}

static bool run_find_memory(const fakenccl_comm *c, fakenccl_op *op) {
  char *factor = NULL;
  size_t size = op->factor_from != NULL ? fakenccl_dtype_size(op->what.dtype) : 0;
  if (!run_find(c, op->from, run_bytes(c, op, false), &op->real_from) ||
      !run_find(c, op->to, run_bytes(c, op, true), &op->real_to) ||
      !run_find(c, op->factor_from, size, &factor))
    return false;
  if (factor != NULL) memcpy(op->factor, factor, size);
  return true;
}

/* The result of an aborted collective is undefined: NaN in every float type. */
static int run_spoil(fakenccl_batch *b) {
  for (int i = 0; i < b->n; i++) {
    fakenccl_op *op = &b->ops[i];
    size_t bytes = run_bytes(b->comm, op, true);
    char *to = bytes > 0 ? fakenccl_driver_get()->f_fakecuda_real(b->comm->device, op->to, bytes) : NULL;
    if (to != NULL) memset(to, 0xFF, bytes);
  }
  return 0;
}

/* ---- beginning ---- */

static bool run_has_collective(const fakenccl_batch *b, uint64_t number) {
  uint64_t n = b->comm->begun;
  for (int i = 0; i < b->n; i++)
    if (b->ops[i].what.kind < FAKENCCL_SEND && ++n == number) return true;
  return false;
}

static double run_random_s(fakenccl_comm *c, uint64_t most_us) {
  return 1e-6 * (double)(fakenccl_draw(&c->chance) % (most_us + 1));
}

/* The communicator's calls run one at a time, in the order in which they were issued. */
static bool run_has_turn(const fakenccl_batch *b) {
  const fakenccl_comm *c = b->comm;
  if (c->active == b) return true;
  return c->active == NULL && (b->captured || b->ticket == c->ended + 1);
}

static bool run_begin(fakenccl_batch *b) {
  fakenccl_comm *c = b->comm;
  bool talks = false;
  c->active = b;
  b->begun = true;
  for (int i = 0; i < b->n; i++) {
    if (!run_find_memory(c, &b->ops[i])) return false;
    talks = talks || b->ops[i].what.kind >= FAKENCCL_SEND;
  }
  atomic_store(&c->me->talks, talks);
  if (c->faults.kill != 0 && run_has_collective(b, c->faults.kill)) kill(getpid(), c->faults.signal);
  b->stalled = c->faults.stall != 0 && run_has_collective(b, c->faults.stall);
  if (c->faults.delay_us > 0) b->until = tn_monotonic_s() + run_random_s(c, c->faults.delay_us);
  return true;
}

/* ---- going on ---- */

static int run_wait(fakenccl_batch *b) {
  double now = tn_monotonic_s();
  if (now - b->checked < LIVES_S) return FAKECUDA_PENDING;
  b->checked = now;
  fakenccl_comm_look(b->comm);
  return FAKECUDA_PENDING;
}

/* Collectives run one after the other, messages at once. */
static bool run_ops(fakenccl_batch *b, bool *done) {
  bool moved = false, blocked = false;
  *done = true;
  for (int i = 0; i < b->n; i++) {
    fakenccl_op *op = &b->ops[i];
    bool collective = op->what.kind < FAKENCCL_SEND;
    if (op->done || (collective && blocked)) continue;
    moved |= collective ? fakenccl_exchange_step(b->comm, op) : fakenccl_pair_step(b, op);
    blocked |= collective && !op->done;
    *done = *done && op->done;
  }
  return moved;
}

/* The kernels of windows do so from 2.29.7 on. */
static bool run_hears_aborts(const fakenccl_batch *b) { return !b->symmetric || fakenccl_version() >= 22907; }

static int run_step(fakenccl_batch *b) {
  fakenccl_comm *c = b->comm;
  if (c->state == FAKENCCL_ABORTED) return run_hears_aborts(b) ? run_spoil(b) : FAKECUDA_PENDING;
  if (c->state == FAKENCCL_DESTROYED) {
    fakenccl_log("rank %d: a collective runs, but its communicator was destroyed", c->rank);
    return 1;
  }
  if (!run_has_turn(b)) return FAKECUDA_PENDING;
  if (!b->begun && !run_begin(b)) return 1;
  if (b->stalled || tn_monotonic_s() < b->until) return run_wait(b);
  if (b->ending) return 0;
  for (bool done = false; !done;) {
    if (atomic_load(&c->clique->shared->error) != 0) return FAKECUDA_PENDING; /* as NCCL hangs */
    if (!run_ops(b, &done)) return run_wait(b);
    fakenccl_comm_wake(c);
  }
  if (!c->faults.reorders) return 0;
  b->ending = true;
  b->until = tn_monotonic_s() + run_random_s(c, 2000);
  return FAKECUDA_PENDING;
}

/* ---- the body ---- */

static void run_reset(fakenccl_batch *b) {
  b->begun = b->stalled = b->ending = false;
  b->until = b->checked = 0;
  for (int i = 0; i < b->n; i++) {
    fakenccl_op *op = &b->ops[i];
    op->arrived = op->compared = op->done = false;
    op->parts = op->posted = op->taken = 0;
  }
}

static void run_end(fakenccl_batch *b) {
  fakenccl_comm *c = b->comm;
  if (c->active == b) c->active = NULL;
  if (b->captured) return;
  c->ended++;
  run_unlink(b);
}

int fakenccl_batch_run(void *batch, bool first) {
  fakenccl_batch *b = batch;
  fakenccl_comm *c = b->comm;
  pthread_mutex_lock(&c->lock);
  if (first) run_reset(b);
  int code = run_step(b);
  if (code != FAKECUDA_PENDING) run_end(b);
  pthread_mutex_unlock(&c->lock);
  if (code != FAKECUDA_PENDING) fakenccl_driver_get()->f_fakecuda_wake(c->device);
  return code;
}
