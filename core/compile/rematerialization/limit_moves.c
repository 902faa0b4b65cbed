/* core/compile/rematerialization/limit_moves.c: see limit_moves.h. */
#include "core/compile/rematerialization/limit_moves.h"

#include "core/compile/kernels/catalog.h"
#include "core/compile/kernels/transfer_kernel.h"

/* The choices that moves make for a value that is kept. */
static const tn_value_choice choices[] = {
    [TN_MOVE_DISCARD] = {.discarded = true},
    [TN_MOVE_OFFLOAD] = {.offloaded = true},
    [TN_MOVE_OFFLOAD_AWAITED] = {.offloaded = true, .awaited = true},
    [TN_MOVE_OFFLOAD_LATE] = {.offloaded = true, .late = true},
    [TN_MOVE_OFFLOAD_WAITING] = {.offloaded = true, .awaited = true, .late = true}};

void tn_limit_make_move(const tn_limit_moves *l, const tn_limit_move *move) {
  tn_value_choice *choice = tn_limit_choice(l, move);
  if (move->kind == TN_MOVE_AWAIT)
    choice->awaited = true;
  else if (move->kind == TN_MOVE_FETCH_LATE)
    choice->late = true;
  else
    *choice = choices[move->kind];
}

/* ---- which moves are open ---- */

static bool can_discard(const tn_limit_moves *l, const tn_idle_value *idle, bool borders) {
  const tn_value_choice *choice = &l->rematerialization.choice[idle->value];
  if (!idle->repeatable || idle->border != borders || choice->discarded) return false;
  return choice->offloaded ? l->current.leaving[idle->value] : l->current.idle[idle->value];
}

static bool can_move_to_host(const tn_limit_moves *l, tn_val v) {
  const tn_value_choice *choice = &l->rematerialization.choice[v];
  if (!l->offload || choice->offloaded) return false;
  return choice->discarded ? l->current.remade[v] : l->current.idle[v];
}

static bool is_move_open(const tn_limit_moves *l, const tn_limit_move *move, bool borders) {
  const tn_idle_value *idle = &l->fb.idle.v[move->index];
  const tn_value_choice *choice = tn_limit_choice(l, move);
  if (l->state[move->kind][move->index] != TN_MOVE_OPEN) return false;
  switch (move->kind) {
  case TN_MOVE_DISCARD: return can_discard(l, idle, borders);
  case TN_MOVE_OFFLOAD: return can_move_to_host(l, idle->value);
  case TN_MOVE_OFFLOAD_AWAITED:
  case TN_MOVE_OFFLOAD_LATE:
  case TN_MOVE_OFFLOAD_WAITING: return borders && can_move_to_host(l, idle->value);
  case TN_MOVE_AWAIT: return choice->offloaded && !choice->awaited && l->current.leaving[idle->value];
  default: return choice->offloaded && !choice->late && l->current.back[idle->value];
  }
}

/* ---- the bytes that a move frees for each second ---- */

/* Seconds and extended bytes of a set of choices. */
typedef struct limit_cost {
  double cost_s;
  int64_t extended_bytes;
} limit_cost;

static limit_cost find_cost(tn_limit_moves *l) {
  tn_rematerialization *r = &l->rematerialization;
  tn_rematerialization_update(r);
  if (l->offload) tn_offload_times_update(&l->times);
  return (limit_cost){l->offload ? l->times.cost_s : r->cost_s, r->extended_bytes};
}

/* Whether the value is no longer at the peak, or not made again, with all that its clone needs. `before`: the
 * choice before the move. */
static bool leaves_peak(const tn_limit_moves *l, const tn_limit_move *move, const tn_value_choice *before) {
  const tn_forward_backward *fb = &l->fb;
  const tn_rematerialization *r = &l->rematerialization;
  tn_val v = fb->idle.v[move->index].value;
  bool behind = l->current.peak >= l->current.step[fb->midpoint];
  if (move->kind == TN_MOVE_DISCARD) return l->current.step[r->before[fb->maker[v]]] > l->current.peak;
  if (move->kind >= TN_MOVE_AWAIT) return true;
  if (before->discarded) return r->fetched[v] >= 0; /* else its clone runs for another value */
  return tn_offload_times_away(&l->times, v, l->current.peak_s, behind);
}

/* Copies for which compute mostly waits come after values inside of blocks. */
static bool mostly_waits(const tn_limit_moves *l, const tn_limit_move *move, double added_s) {
  const tn_device_properties *device = &l->fb.cover->catalog->target.properties;
  if (move->kind == TN_MOVE_DISCARD) return false;
  return added_s > 0.5 * tn_transfer_s(device, l->fb.bytes[l->fb.idle.v[move->index].value]);
}

/* The bytes that one more move frees at the peak for each second that it adds. One that saves time is as good
 * as one that takes none. */
static double find_rate(tn_limit_moves *l, const tn_limit_move *move, limit_cost cost, bool borders) {
  const tn_value_choice before = *tn_limit_choice(l, move);
  tn_limit_make_move(l, move);
  limit_cost after = find_cost(l);
  bool frees = l->rematerialization.possible && leaves_peak(l, move, &before);
  *tn_limit_choice(l, move) = before;
  double added_s = after.cost_s - cost.cost_s;
  if (!frees || (!borders && mostly_waits(l, move, added_s))) return 0;
  int64_t extended = after.extended_bytes - cost.extended_bytes;
  int64_t freed = l->fb.bytes[l->fb.idle.v[move->index].value] - extended;
  return (double)freed / ((added_s > 0 ? added_s : 0) + 1e-9);
}

tn_limit_move tn_limit_best_move(tn_limit_moves *l, bool borders) {
  tn_limit_move best = {.index = -1};
  double best_rate = 0;
  limit_cost cost = find_cost(l);
  for (int32_t i = 0; i < TN_MOVES * (int32_t)l->fb.idle.n; i++) {
    tn_limit_move move = {.index = i / TN_MOVES, .kind = i % TN_MOVES};
    if (!is_move_open(l, &move, borders)) continue;
    double rate = find_rate(l, &move, cost, borders);
    if (rate <= best_rate) continue;
    best_rate = rate;
    best = move;
  }
  return best;
}
