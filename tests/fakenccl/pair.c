/* tests/fakenccl/pair.c: messages between two ranks. The sender puts one part at a time and ends when the
 * last has been taken, so a message without a receiver waits, also a short one. */
#include <string.h>

#include "tests/fakenccl/fakenccl.h"

static bool pair_sends(const fakenccl_op *op) { return op->what.kind == FAKENCCL_SEND; }

/* Messages between two ranks keep their order. */
static bool pair_is_first(const fakenccl_batch *b, const fakenccl_op *op) {
  for (const fakenccl_op *o = b->ops; o != op; o++)
    if (!o->done && o->what.kind == op->what.kind && o->what.peer == op->what.peer) return false;
  return true;
}

static size_t pair_bytes(const fakenccl_op *op, uint64_t part, uint64_t *offset) {
  uint64_t bytes = op->what.count * fakenccl_dtype_size(op->what.dtype);
  *offset = part * FAKENCCL_PAIR_BYTES;
  return bytes - *offset < FAKENCCL_PAIR_BYTES ? bytes - *offset : FAKENCCL_PAIR_BYTES;
}

static void pair_blame(fakenccl_comm *c, const fakenccl_op *op, const fakenccl_what *its) {
  char mine[256], theirs[256];
  fakenccl_describe(&op->what, mine, sizeof mine);
  fakenccl_describe(its, theirs, sizeof theirs);
  fakenccl_comm_fail_all(c, ncclInvalidUsage, "messages do not match: rank %d calls %s, but rank %d calls %s",
                         c->rank, mine, op->what.peer, theirs);
}

/* The other rank waits in a collective for this one, which waits for its part of the message. */
static void pair_look_for_deadlock(fakenccl_comm *c, const fakenccl_op *op, const _Atomic(uint64_t) *moves) {
  const fakenccl_member *other = &c->clique->shared->members[op->what.peer];
  uint64_t before = atomic_load(moves), begun = atomic_load(&other->begun);
  if (begun <= c->begun || atomic_load(&other->talks) || atomic_load(&other->begun) != begun) return;
  fakenccl_what its = other->calls[begun % 2];
  if (atomic_load(moves) == before) pair_blame(c, op, &its);
}

static bool pair_step_send(fakenccl_comm *c, fakenccl_op *op) {
  fakenccl_pair *p = &c->clique->shared->pairs[c->rank][op->what.peer];
  if (atomic_load(&p->taken) < atomic_load(&p->put)) return pair_look_for_deadlock(c, op, &p->taken), false;
  op->done = op->taken == op->parts;
  if (op->done) return true;
  uint64_t offset;
  size_t bytes = pair_bytes(op, op->taken++, &offset);
  memcpy(c->clique->shared->messages[c->rank][op->what.peer], op->real_from + offset, bytes);
  p->what = op->what;
  atomic_fetch_add(&p->put, 1);
  return true;
}

static bool pair_step_receive(fakenccl_comm *c, fakenccl_op *op) {
  fakenccl_pair *p = &c->clique->shared->pairs[op->what.peer][c->rank];
  if (atomic_load(&p->put) == atomic_load(&p->taken)) return pair_look_for_deadlock(c, op, &p->put), false;
  if (p->what.count != op->what.count || p->what.dtype != op->what.dtype)
    return pair_blame(c, op, &p->what), false;
  uint64_t offset;
  size_t bytes = pair_bytes(op, op->taken++, &offset);
  memcpy(op->real_to + offset, c->clique->shared->messages[op->what.peer][c->rank], bytes);
  atomic_fetch_add(&p->taken, 1);
  op->done = op->taken == op->parts;
  return true;
}

bool fakenccl_pair_step(fakenccl_batch *b, fakenccl_op *op) {
  if (!pair_is_first(b, op)) return false;
  if (!op->arrived) {
    uint64_t bytes = op->what.count * fakenccl_dtype_size(op->what.dtype);
    op->parts = (bytes + FAKENCCL_PAIR_BYTES - 1) / FAKENCCL_PAIR_BYTES;
    op->arrived = true;
  }
  return pair_sends(op) ? pair_step_send(b->comm, op) : pair_step_receive(b->comm, op);
}
