/* core/compile/rematerialization/memory_limit.c: chooses the values that are rematerialized or offloaded, and
 * their order.
 *
 * Chen et al., "Training deep nets with sublinear memory cost" (2016), keep the borders of segments and
 * recompute everything inside; Korthikanti et al., "Reducing activation recomputation in large transformer
 * models" (2022), choose values that are large and cheap. This is a greedy search over single values: the
 * value that frees the most bytes at the peak per second of its clones is discarded next. Values inside of
 * blocks come before those on the borders of blocks, since the borders are where chains of clones end. Where
 * the device has memory of its own and the rate of its link is known, each value may also be offloaded: its
 * seconds are those for which compute waits for its copies (offload_times.h), and those of clones are the
 * times of their kernels. A copy that has come back before it is read can come later; its reader waits. After
 * each choice the memory is planned again, and the choice is undone if the peak rose. At the end the choices
 * that the limit does not need are undone. */
#include "core/compile/rematerialization/memory_limit.h"

#include <string.h>

#include "core/compile/kernels/catalog.h"
#include "core/compile/kernels/transfer_kernel.h"
#include "core/compile/rematerialization/clone_groups.h"
#include "core/compile/rematerialization/offload_times.h"
#include "core/compile/rematerialization/plan_summary.h"

/* The ways to free the memory of an idle value. */
enum { MOVE_DISCARD = 0, MOVE_OFFLOAD = 1, MOVE_FETCH_LATE = 2, MOVES = 3 };
typedef struct limit_move {
  int32_t index; /* of the idle value; -1: none */
  int32_t kind;
} limit_move;

typedef struct limit_search {
  tn_env *env;
  tn_plan_trial plans;
  tn_forward_backward fb;
  tn_rematerialization rematerialization;
  bool offload; /* values may be offloaded */
  tn_offload_times times;
  tn_arena arena;
  tn_plan_summary current, trial;
  bool *rejected[MOVES]; /* per idle value: the move raised the peak */
  limit_move *chosen;    /* in the order of their choice */
  int32_t n_chosen;
} limit_search;

/* ---- the search ---- */

static bool *move_flag(const limit_search *l, limit_move m) {
  const tn_rematerialization *r = &l->rematerialization;
  bool *const flags[MOVES] = {r->discarded, r->offloaded, r->late};
  return &flags[m.kind][l->fb.idle.v[m.index].value];
}

/* Seconds and extended bytes of a set of choices. */
typedef struct limit_cost {
  double cost_s;
  int64_t extended_bytes;
} limit_cost;

static limit_cost find_cost(limit_search *l) {
  tn_rematerialization *r = &l->rematerialization;
  tn_rematerialization_update(r);
  if (l->offload) tn_offload_times_update(&l->times);
  return (limit_cost){l->offload ? l->times.cost_s : r->cost_s, r->extended_bytes};
}

/* Whether the value is no longer live at the peak. */
static bool leaves_peak(const limit_search *l, limit_move m) {
  const tn_forward_backward *fb = &l->fb;
  const tn_rematerialization *r = &l->rematerialization;
  tn_val v = fb->idle.v[m.index].value;
  if (m.kind == MOVE_FETCH_LATE) return true;
  bool behind = l->current.peak >= l->current.step[fb->midpoint];
  if (m.kind == MOVE_OFFLOAD) return tn_offload_times_away(&l->times, v, l->current.peak_s, behind);
  return l->current.step[r->before[fb->maker[v]]] > l->current.peak;
}

/* Copies for which compute mostly waits come after values inside of blocks. */
static bool mostly_waits(const limit_search *l, limit_move m, double added_s) {
  const tn_device_properties *device = &l->fb.cover->catalog->target.properties;
  if (m.kind == MOVE_DISCARD) return false;
  return added_s > 0.5 * tn_transfer_s(device, l->fb.bytes[l->fb.idle.v[m.index].value]);
}

/* The bytes that one more move frees at the peak for each second that it adds. */
static double find_rate(limit_search *l, limit_move m, limit_cost before, bool border) {
  *move_flag(l, m) = true;
  limit_cost after = find_cost(l);
  bool frees = l->rematerialization.possible && leaves_peak(l, m);
  *move_flag(l, m) = false;
  if (!frees || (!border && mostly_waits(l, m, after.cost_s - before.cost_s))) return 0;
  int64_t extended = after.extended_bytes - before.extended_bytes;
  return (double)(l->fb.bytes[l->fb.idle.v[m.index].value] - extended) /
         (after.cost_s - before.cost_s + 1e-9);
}

static bool is_move_open(const limit_search *l, limit_move m, bool border) {
  const tn_rematerialization *r = &l->rematerialization;
  const tn_idle_value *idle = &l->fb.idle.v[m.index];
  if (l->rejected[m.kind][m.index] || *move_flag(l, m)) return false;
  if (m.kind == MOVE_FETCH_LATE) return r->offloaded[idle->value] && l->current.back[idle->value];
  if (r->discarded[idle->value] || r->offloaded[idle->value]) return false;
  if (!l->current.idle[idle->value]) return false;
  return m.kind == MOVE_OFFLOAD ? l->offload : idle->repeatable && idle->border == border;
}

/* The move with the most freed bytes per second; clones of values inside of blocks or on their borders. Index
 * -1: no move frees any. */
static limit_move find_best_move(limit_search *l, bool border) {
  limit_move best = {-1, 0};
  double best_rate = 0;
  limit_cost before = find_cost(l);
  for (int32_t i = 0; i < MOVES * (int32_t)l->fb.idle.n; i++) {
    limit_move m = {i / MOVES, i % MOVES};
    if (!is_move_open(l, m, border)) continue;
    double rate = find_rate(l, m, before, border);
    if (rate <= best_rate) continue;
    best_rate = rate;
    best = m;
  }
  return best;
}

static void swap_summaries(limit_search *l) {
  tn_plan_summary old = l->current;
  l->current = l->trial;
  l->trial = old;
}

/* Makes a move, unless that raises the peak. */
static tn_status try_move(limit_search *l, limit_move m) {
  *move_flag(l, m) = true;
  TN_TRY(tn_plan_try(&l->plans, &l->trial));
  if (l->trial.bound_bytes > l->current.bound_bytes) {
    *move_flag(l, m) = false;
    l->rejected[m.kind][m.index] = true;
    return TN_OK;
  }
  l->chosen[l->n_chosen++] = m;
  swap_summaries(l);
  return TN_OK;
}

static tn_status move_until_it_fits(limit_search *l, int64_t limit) {
  TN_TRY(tn_plan_try(&l->plans, &l->current));
  while (l->current.arena_bytes > limit) {
    limit_move best = find_best_move(l, false);
    if (best.index < 0) best = find_best_move(l, true);
    if (best.index < 0) break;
    TN_TRY(try_move(l, best));
  }
  return TN_OK;
}

/* Undoes choices that the limit does not need, the last ones first, since they have the smallest rates. */
static tn_status undo_unneeded(limit_search *l, int64_t limit) {
  for (int32_t i = l->n_chosen; i-- > 0;) {
    bool *flag = move_flag(l, l->chosen[i]);
    *flag = false;
    TN_TRY(tn_plan_try(&l->plans, &l->trial));
    *flag = l->trial.arena_bytes > (limit > l->current.arena_bytes ? limit : l->current.arena_bytes);
  }
  return TN_OK;
}

/* ---- the report ---- */

static tn_rematerialized_block *find_reported_block(tn_rematerialized_block *list, int32_t *n,
                                                    const char *block) {
  for (int32_t i = 0; i < *n; i++)
    if (tn_text_equal(list[i].block, block)) return &list[i];
  list[*n] = (tn_rematerialized_block){.block = block};
  return &list[(*n)++];
}

static tn_status report_blocks(limit_search *l) {
  const tn_forward_backward *fb = &l->fb;
  const tn_rematerialization *r = &l->rematerialization;
  tn_cover *cover = fb->cover;
  int32_t n = 0;
  tn_rematerialized_block *list = tn_arena_alloc(&cover->arena, (size_t)fb->n_groups * sizeof *list);
  if (list == NULL) return TN_ENOMEM;
  cover->rematerialized_s = 0;
  for (int32_t g = 0; g < fb->n_groups; g++) {
    if (!r->cloned[g]) continue;
    find_reported_block(list, &n, fb->block[g])->flops += fb->groups[g].cost.flops;
    cover->rematerialized_s += fb->groups[g].choice.cost_s;
  }
  for (size_t i = 0; i < fb->idle.n; i++) {
    tn_val v = fb->idle.v[i].value;
    if (r->discarded[v]) find_reported_block(list, &n, fb->block[fb->maker[v]])->bytes += fb->bytes[v];
  }
  for (int32_t i = 0; i < n; i++) {
    list[i].block = tn_arena_strdup(&cover->arena, list[i].block);
    if (list[i].block == NULL) return TN_ENOMEM;
  }
  cover->rematerialized = list;
  cover->n_rematerialized = n;
  return TN_OK;
}

/* ---- the pass ---- */

/* The choices of a search, and where they lead. */
typedef struct limit_result {
  bool *flags[MOVES];
  int64_t arena_bytes;
  double step_s;
} limit_result;

static tn_status run_search(limit_search *l, int64_t limit, limit_result *result) {
  const size_t bytes = l->fb.n_values * sizeof(bool);
  l->n_chosen = 0;
  for (int32_t kind = 0; kind < MOVES; kind++) memset(l->rejected[kind], 0, l->fb.idle.n * sizeof(bool));
  TN_TRY(move_until_it_fits(l, limit));
  TN_TRY(undo_unneeded(l, limit));
  TN_TRY(tn_plan_try(&l->plans, &l->current));
  bool *const flags[MOVES] = {l->rematerialization.discarded, l->rematerialization.offloaded,
                              l->rematerialization.late};
  *result = (limit_result){.arena_bytes = l->current.arena_bytes, .step_s = l->current.step_s};
  for (int32_t kind = 0; kind < MOVES; kind++) {
    result->flags[kind] = tn_arena_copy(&l->arena, flags[kind], bytes);
    if (result->flags[kind] == NULL) return TN_ENOMEM;
    memset(flags[kind], 0, bytes);
  }
  return TN_OK;
}

static bool is_better(const limit_result *a, const limit_result *b, int64_t limit) {
  bool fits = a->arena_bytes <= limit, other = b->arena_bytes <= limit;
  if (!fits || !other) return fits || (!other && a->arena_bytes < b->arena_bytes);
  return a->step_s < b->step_s;
}

/* With copies that cost nothing while they hide, with copies that have a price, which leaves the link to
 * values whose clones are dear, and without offloads. A search makes one move at a time, and none of them is
 * always the best. */
static tn_status search_ways(limit_search *l, int64_t limit) {
  static const double prices[] = {0, 0.1};
  limit_result best, other;
  bool offload = l->offload;
  l->offload = false;
  TN_TRY(run_search(l, limit, &best));
  l->offload = offload;
  for (size_t i = 0; offload && i < sizeof prices / sizeof *prices; i++) {
    l->times.price = prices[i];
    TN_TRY(run_search(l, limit, &other));
    if (is_better(&other, &best, limit)) best = other;
  }
  memcpy(l->rematerialization.discarded, best.flags[MOVE_DISCARD], l->fb.n_values * sizeof(bool));
  memcpy(l->rematerialization.offloaded, best.flags[MOVE_OFFLOAD], l->fb.n_values * sizeof(bool));
  memcpy(l->rematerialization.late, best.flags[MOVE_FETCH_LATE], l->fb.n_values * sizeof(bool));
  return TN_OK;
}

static tn_status search_discarded(limit_search *l, int64_t limit) {
  size_t idle = l->fb.idle.n;
  for (int32_t kind = 0; kind < MOVES; kind++) {
    l->rejected[kind] = tn_arena_alloc(&l->arena, idle * sizeof *l->rejected[kind]);
    if (l->rejected[kind] == NULL) return TN_ENOMEM;
  }
  l->chosen = tn_arena_alloc(&l->arena, MOVES * idle * sizeof *l->chosen);
  if (l->chosen == NULL) return TN_ENOMEM;
  TN_TRY(tn_rematerialization_create(&l->fb, &l->arena, &l->rematerialization));
  l->rematerialization.measured = l->offload;
  TN_TRY(tn_offload_times_create(&l->rematerialization, &l->arena, &l->times));
  TN_TRY(tn_plan_summary_create(&l->fb, &l->arena, &l->current));
  TN_TRY(tn_plan_summary_create(&l->fb, &l->arena, &l->trial));
  TN_TRY(search_ways(l, limit));
  tn_forward_backward_restore(&l->fb);
  tn_rematerialization_update(&l->rematerialization);
  TN_TRY(tn_rematerialization_apply(&l->rematerialization));
  return report_blocks(l);
}

tn_status tn_pass_memory_limit(tn_cover *cover, const tn_state_map *map, const tn_slot_layout *slot,
                               int64_t limit, bool offload) {
  const tn_device_properties *device = &cover->catalog->target.properties;
  limit_search l = {.env = cover->env, .arena = tn_arena_new(cover->env)};
  l.plans = (tn_plan_trial){cover->env, map, slot, &l.fb, &l.rematerialization};
  l.offload = offload && !device->host_addressable && device->link_bytes_per_s > 0;
  tn_status status = tn_forward_backward_create(cover, &l.fb);
  if (status == TN_OK) status = search_discarded(&l, limit);
  tn_forward_backward_free(&l.fb);
  tn_arena_free(&l.arena);
  return status;
}
