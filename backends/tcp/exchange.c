/* backends/tcp/exchange.c: collectives as flows between all pairs of ranks. Every rank begins with a record
 * of the call to every other one, so a collective ends on no rank before all have come to it.
 *
 * all_reduce       rank r sends part p of its operand to rank p, which reduces it in the order of ranks and
 * sends the result to all, as far as it has come. A rank sends and receives 2 (n - 1) / n operands, as few as
 * there can be. An operand of at most `direct` bytes goes to all ranks as a whole: one way instead of two.
 * reduce_scatter   the first half of it
 * all_gather       each rank sends its operand to all
 * broadcast        the root sends part p to rank p, which sends it on to all; the root's own part goes to
 * all. A small operand goes to all as a whole. */
#include <stdio.h>
#include <string.h>

#include "backends/shared/reduce.h"
#include "backends/tcp/tcp.h"

/* Sums begin when so much has come from all ranks, or the rest. */
enum { EXCHANGE_GRAIN = 64 << 10 };

/* ---- parts ---- */

static size_t exchange_part_start(const tn_tcp *t, int32_t rank) {
  int64_t n = t->call.count, ranks = t->ranks;
  return (size_t)(n / ranks * rank + n % ranks * rank / ranks) * tn_dtype_size(t->call.dtype);
}

static size_t exchange_part_bytes(const tn_tcp *t, int32_t rank) {
  return exchange_part_start(t, rank + 1) - exchange_part_start(t, rank);
}

static size_t exchange_bytes(const tn_tcp *t) { return (size_t)t->call.count * tn_dtype_size(t->call.dtype); }

/* ---- flows ---- */

/* The peer's operand, or the part of it that this rank reduces. */
static void exchange_receive_operand(tn_tcp *t, tn_tcp_peer *p) {
  tn_tcp_piece *piece = tn_tcp_flow_add(&p->in, p->ring, t->part_bytes);
  piece->ring = piece->ahead = (size_t)t->options.buffer;
  piece->limit = &t->reduced;
}

static void exchange_flow_sums(tn_tcp *t, int32_t rank) {
  const tn_collective *c = &t->call;
  tn_tcp_peer *p = &t->peers[rank];
  size_t start = t->whole ? 0 : exchange_part_start(t, rank), own = exchange_part_start(t, t->rank);
  size_t bytes = t->whole ? t->part_bytes : exchange_part_bytes(t, rank);
  tn_tcp_flow_add(&p->out, (const char *)c->from + start, bytes);
  exchange_receive_operand(t, p);
  if (t->whole || c->kind == TN_REDUCE_SCATTER) return;
  tn_tcp_flow_add(&p->out, (char *)c->to + own, t->part_bytes)->limit = &t->reduced;
  tn_tcp_flow_add(&p->in, (char *)c->to + start, bytes);
}

static void exchange_flow_gather(tn_tcp *t, int32_t rank) {
  const tn_collective *c = &t->call;
  size_t bytes = exchange_bytes(t);
  tn_tcp_flow_add(&t->peers[rank].out, c->from, bytes);
  tn_tcp_flow_add(&t->peers[rank].in, (char *)c->to + (size_t)rank * bytes, bytes);
}

/* The root's flow to a rank: the rank's part, and the root's. */
static void exchange_flow_root(tn_tcp *t, tn_tcp_flow *flow, int32_t rank, const void *memory) {
  const char *base = memory;
  tn_tcp_flow_add(flow, base + exchange_part_start(t, rank), exchange_part_bytes(t, rank));
  tn_tcp_flow_add(flow, base + exchange_part_start(t, t->call.root), exchange_part_bytes(t, t->call.root));
}

static void exchange_flow_broadcast(tn_tcp *t, int32_t rank) {
  const tn_collective *c = &t->call;
  tn_tcp_peer *p = &t->peers[rank];
  if (t->whole) {
    if (t->rank == c->root) tn_tcp_flow_add(&p->out, c->from, exchange_bytes(t));
    if (rank == c->root) tn_tcp_flow_add(&p->in, c->to, exchange_bytes(t));
  } else if (t->rank == c->root) {
    exchange_flow_root(t, &p->out, rank, c->from);
  } else if (rank == c->root) {
    exchange_flow_root(t, &p->in, t->rank, c->to);
  } else { /* the own part, as far as it has come from the root as piece 1, behind the call */
    size_t own = exchange_part_start(t, t->rank), other = exchange_part_start(t, rank);
    tn_tcp_flow_add(&p->out, (char *)c->to + own, exchange_part_bytes(t, t->rank))->limit =
        &t->peers[c->root].in.pieces[1].moved;
    tn_tcp_flow_add(&p->in, (char *)c->to + other, exchange_part_bytes(t, rank));
  }
}

static void exchange_add_flows(tn_tcp *t, int32_t rank) {
  tn_tcp_peer *p = &t->peers[rank];
  p->compared = false;
  tn_tcp_flow_start(&p->in);
  tn_tcp_flow_start(&p->out);
  tn_tcp_flow_add(&p->out, &t->announced, sizeof t->announced);
  tn_tcp_flow_add(&p->in, &p->call, sizeof p->call);
  switch (t->call.kind) {
  case TN_ALL_REDUCE:
  case TN_REDUCE_SCATTER: exchange_flow_sums(t, rank); break;
  case TN_BROADCAST: exchange_flow_broadcast(t, rank); break;
  default: exchange_flow_gather(t, rank);
  }
}

/* ---- begin ---- */

static void exchange_announce(tn_tcp *t, uint64_t number) {
  const tn_collective *c = &t->call;
  t->announced = (tn_tcp_call){.number = number,
                               .count = c->count,
                               .kind = c->kind,
                               .reduction = c->reduction,
                               .dtype = c->dtype,
                               .root = c->root};
  tn_tcp_mark(t->announced.magic);
  snprintf(t->announced.name, sizeof t->announced.name, "%s",
           c->name != NULL ? c->name : tn_collective_name(c->kind));
}

/* The own operand, where no arithmetic moves it. */
static void exchange_copy_own(const tn_tcp *t) {
  const tn_collective *c = &t->call;
  size_t bytes = exchange_bytes(t);
  char *to = (char *)c->to + (c->kind == TN_ALL_GATHER ? (size_t)t->rank * bytes : 0);
  bool copies = c->kind == TN_ALL_GATHER || (c->kind == TN_BROADCAST && t->rank == c->root);
  if (copies && to != c->from && bytes > 0) memcpy(to, c->from, bytes);
}

void tn_tcp_exchange_begin(tn_tcp *t, uint64_t number) {
  const tn_collective *c = &t->call;
  bool reduces = c->kind == TN_ALL_REDUCE || c->kind == TN_REDUCE_SCATTER;
  size_t small = (size_t)t->options.direct;
  t->whole = (c->kind == TN_ALL_REDUCE || c->kind == TN_BROADCAST) && exchange_bytes(t) <= small;
  t->reduced = 0;
  t->part_bytes = !reduces ? 0 : t->whole ? exchange_bytes(t) : exchange_part_bytes(t, t->rank);
  exchange_announce(t, number);
  for (int32_t r = 0; r < t->ranks; r++)
    if (r != t->rank) exchange_add_flows(t, r);
  exchange_copy_own(t);
}

/* ---- progress ---- */

static bool exchange_compare_calls(tn_tcp *t, int32_t rank) {
  tn_tcp_peer *p = &t->peers[rank];
  char who[TN_TCP_RANK_TEXT], theirs[TN_TCP_CALL_TEXT], mine[TN_TCP_CALL_TEXT];
  if (p->compared || p->in.at == 0) return false;
  p->compared = true;
  tn_tcp_rank_text(t, rank, who);
  if (!tn_tcp_call_valid(&p->call))
    tn_tcp_fail(t, "%s sent bytes that are no collective", who);
  else if (!tn_tcp_same_call(&p->call, &t->announced))
    tn_tcp_fail(t, "collective %llu is %s on %s, but %s on rank %d", (unsigned long long)t->announced.number,
                tn_tcp_call_text(&p->call, theirs), who, tn_tcp_call_text(&t->announced, mine), (int)t->rank);
  return true;
}

/* Bytes of the part that have come from all ranks. Piece 1 of a peer's flow, behind the call, is its operand.
 */
static size_t exchange_come(const tn_tcp *t) {
  size_t least = t->part_bytes;
  for (int32_t r = 0; r < t->ranks; r++)
    if (r != t->rank && t->peers[r].in.pieces[1].moved < least) least = t->peers[r].in.pieces[1].moved;
  return least;
}

/* In place, an operand that goes to other ranks must have left before the result takes its place. */
static bool exchange_all_sent(const tn_tcp *t) {
  for (int32_t r = 0; r < t->ranks; r++)
    if (r != t->rank && !tn_tcp_flow_done(&t->peers[r].out)) return false;
  return true;
}

/* Bytes of the part from t->reduced on, which lie without a break in all rings. */
static void exchange_reduce(tn_tcp *t, size_t bytes) {
  const tn_collective *c = &t->call;
  const void *from[TN_TCP_RANKS];
  size_t own = t->whole ? 0 : exchange_part_start(t, t->rank), ring = (size_t)t->options.buffer;
  size_t to = c->kind == TN_REDUCE_SCATTER ? 0 : own;
  for (int32_t r = 0; r < t->ranks; r++)
    from[r] = r == t->rank ? (const char *)c->from + own + t->reduced : t->peers[r].ring + t->reduced % ring;
  tn_reduce(c->dtype, c->reduction, t->ranks, from, (char *)c->to + to + t->reduced,
            (int64_t)(bytes / tn_dtype_size(c->dtype)));
  t->reduced += bytes;
}

static bool exchange_reduce_some(tn_tcp *t) {
  size_t ring = (size_t)t->options.buffer, come = exchange_come(t), bytes = come - t->reduced;
  if (bytes == 0) return false;
  size_t grain = ring / 4 < EXCHANGE_GRAIN ? ring / 4 : EXCHANGE_GRAIN;
  if (come < t->part_bytes && (t->whole || bytes < grain)) return false;
  if (t->whole && !exchange_all_sent(t)) return false;
  if (bytes > ring - t->reduced % ring) bytes = ring - t->reduced % ring;
  bytes -= bytes % tn_dtype_size(t->call.dtype);
  if (bytes == 0) return false;
  exchange_reduce(t, bytes);
  return true;
}

bool tn_tcp_exchange_advance(tn_tcp *t) {
  bool moved = false;
  for (int32_t r = 0; r < t->ranks; r++)
    if (r != t->rank) moved |= exchange_compare_calls(t, r);
  if (t->reduced < t->part_bytes && !atomic_load(&t->failure.set)) moved |= exchange_reduce_some(t);
  return moved;
}

bool tn_tcp_exchange_done(const tn_tcp *t) {
  for (int32_t r = 0; r < t->ranks; r++)
    if (r != t->rank && (!t->peers[r].compared || !tn_tcp_flow_done(&t->peers[r].in))) return false;
  return t->reduced == t->part_bytes && exchange_all_sent(t);
}
