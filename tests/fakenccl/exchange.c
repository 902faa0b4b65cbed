/* tests/fakenccl/exchange.c: collectives. In each part every rank puts its elements into its slot, and takes
 * the others' when all have done so. A slot is written again when all ranks have taken its elements. */
#include <string.h>

#include "tests/fakenccl/fakenccl.h"

/* ---- comparing calls ---- */

static void exchange_arrive(fakenccl_comm *c, fakenccl_op *op) {
  op->number = ++c->begun;
  op->base = c->parts;
  op->arrived = true;
  c->me->calls[op->number % 2] = op->what;
  atomic_store(&c->me->begun, op->number);
}

static bool exchange_all_have_come(const fakenccl_comm *c, const fakenccl_op *op) {
  for (int r = 0; r < c->ranks; r++)
    if (atomic_load(&c->clique->shared->members[r].begun) < op->number) return false;
  return true;
}

static void exchange_blame(fakenccl_comm *c, const fakenccl_op *op, int other, const fakenccl_what *its) {
  char mine[256], theirs[256];
  fakenccl_describe(&op->what, mine, sizeof mine);
  fakenccl_describe(its, theirs, sizeof theirs);
  fakenccl_comm_fail_all(c, ncclInvalidUsage,
                         "collective %llu does not match: rank %d calls %s, but rank %d calls %s",
                         (unsigned long long)op->number, c->rank, mine, other, theirs);
}

static bool exchange_compare(fakenccl_comm *c, fakenccl_op *op) {
  for (int r = 0; r < c->ranks; r++) {
    fakenccl_what its = c->clique->shared->members[r].calls[op->number % 2];
    if (memcmp(&its, &op->what, sizeof its) == 0) continue;
    exchange_blame(c, op, r, &its);
    return false;
  }
  return op->compared = true;
}

/* ---- parts ---- */

/* Elements of a part; of each rank's, for a reduce_scatter. */
static uint64_t exchange_part_count(const fakenccl_comm *c, const fakenccl_op *op) {
  uint64_t count = FAKENCCL_SLOT_BYTES / fakenccl_dtype_size(op->what.dtype);
  return op->what.kind == FAKENCCL_REDUCE_SCATTER ? count / (uint64_t)c->ranks : count;
}

static char *exchange_slot(const fakenccl_comm *c, const fakenccl_op *op, int rank, uint64_t part) {
  return c->clique->shared->slots[rank][(op->base + part) % FAKENCCL_SLOTS];
}

static uint64_t exchange_length(const fakenccl_op *op, uint64_t first, uint64_t most) {
  return op->what.count - first < most ? op->what.count - first : most;
}

static void exchange_post(fakenccl_comm *c, fakenccl_op *op) {
  uint64_t most = exchange_part_count(c, op), first = op->posted * most;
  size_t size = fakenccl_dtype_size(op->what.dtype), n = exchange_length(op, first, most);
  char *slot = exchange_slot(c, op, c->rank, op->posted);
  bool scatters = op->what.kind == FAKENCCL_REDUCE_SCATTER;
  int pieces = scatters ? c->ranks : 1;
  for (int i = 0; i < pieces && op->real_from != NULL; i++)
    memcpy(slot + (size_t)i * n * size, op->real_from + ((size_t)i * op->what.count + first) * size,
           n * size);
  if (op->multiplies) fakenccl_multiply(op->what.dtype, slot, (size_t)pieces * n, op->factor);
  atomic_store(&c->me->posted, op->base + ++op->posted);
}

static void exchange_reduce(const fakenccl_comm *c, const fakenccl_op *op, size_t offset, char *to,
                            size_t n) {
  const void *from[FAKENCCL_RANKS];
  for (int r = 0; r < c->ranks; r++) from[r] = exchange_slot(c, op, r, op->taken) + offset;
  int reduction = op->what.op == FAKENCCL_PREMULSUM || op->multiplies ? ncclSum : op->what.op;
  fakenccl_reduce(op->what.dtype, reduction, c->ranks, from, to, n);
}

static void exchange_take(fakenccl_comm *c, fakenccl_op *op) {
  uint64_t most = exchange_part_count(c, op), first = op->taken * most;
  size_t size = fakenccl_dtype_size(op->what.dtype), n = exchange_length(op, first, most);
  char *to = op->real_to != NULL ? op->real_to + first * size : NULL;
  switch (op->what.kind) {
  case FAKENCCL_REDUCE:
  case FAKENCCL_ALL_REDUCE:
    if (to != NULL) exchange_reduce(c, op, 0, to, n);
    break;
  case FAKENCCL_REDUCE_SCATTER: exchange_reduce(c, op, (size_t)c->rank * n * size, to, n); break;
  case FAKENCCL_BROADCAST: memcpy(to, exchange_slot(c, op, op->what.peer, op->taken), n * size); break;
  default:
    for (int r = 0; r < c->ranks; r++)
      memcpy(to + (size_t)r * op->what.count * size, exchange_slot(c, op, r, op->taken), n * size);
  }
  atomic_store(&c->me->taken, op->base + ++op->taken);
}

static bool exchange_can_post(const fakenccl_comm *c, const fakenccl_op *op) {
  uint64_t part = op->base + op->posted;
  for (int r = 0; r < c->ranks; r++)
    if (atomic_load(&c->clique->shared->members[r].taken) + FAKENCCL_SLOTS <= part) return false;
  return op->posted < op->parts;
}

static bool exchange_can_take(const fakenccl_comm *c, const fakenccl_op *op) {
  for (int r = 0; r < c->ranks; r++)
    if (atomic_load(&c->clique->shared->members[r].posted) <= op->base + op->taken) return false;
  return op->taken < op->posted;
}

/* ---- a step ---- */

bool fakenccl_exchange_step(fakenccl_comm *c, fakenccl_op *op) {
  bool moved = !op->arrived;
  if (!op->arrived) exchange_arrive(c, op);
  if (!op->compared) {
    if (!exchange_all_have_come(c, op) || !exchange_compare(c, op)) return moved;
    uint64_t most = exchange_part_count(c, op);
    op->parts = (op->what.count + most - 1) / most;
    c->parts += op->parts;
  }
  while (exchange_can_post(c, op)) exchange_post(c, op), moved = true;
  while (exchange_can_take(c, op)) exchange_take(c, op), moved = true;
  op->done = op->taken == op->parts;
  return moved;
}
