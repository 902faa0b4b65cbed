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
 * times of their kernels (limit_moves.h). After each move the memory is planned again, and the move is undone
 * if the peak of the live bytes rose, or, where these fit, the bytes of the arena. At the end the moves that
 * the limit does not need are undone. */
#include "core/compile/rematerialization/memory_limit.h"

#include <string.h>

#include "core/compile/kernels/catalog.h"
#include "core/compile/rematerialization/limit_moves.h"

/* A search that has made moves tries those again that were rejected before, so often. */
enum { REOPENINGS = 3 };

typedef struct limit_search {
  tn_limit_moves moves;
  tn_plan_trial plans;
  tn_arena arena;
  tn_plan_summary trial;
  tn_limit_move *made; /* in their order */
  int32_t n_made;
  int32_t reopenings, made_before; /* moves that had been made at the last reopening */
} limit_search;

/* ---- the search ---- */

static tn_status try_plan(limit_search *l, tn_packing_goal goal, tn_plan_summary *summary) {
  l->plans.packing = goal;
  return tn_plan_try(&l->plans, summary);
}

/* Whether a move raised the peak of the live bytes, or, where those fit, the bytes of the arena. A value that
 * is offloaded in place of being made again was away already, so that must lower them at some step. */
static bool is_no_gain(const limit_search *l, const tn_limit_move *move, int64_t limit) {
  const tn_plan_summary *current = &l->moves.current, *trial = &l->trial;
  if (current->bound_bytes <= limit)
    return trial->bound_bytes > limit || trial->arena_bytes > current->arena_bytes;
  if (trial->bound_bytes != current->bound_bytes) return trial->bound_bytes > current->bound_bytes;
  return move->before.discarded && trial->excess >= current->excess;
}

static void swap_summaries(limit_search *l) {
  tn_plan_summary old = l->moves.current;
  l->moves.current = l->trial;
  l->trial = old;
}

/* Makes a move, unless it is no gain. */
static tn_status try_move(limit_search *l, tn_limit_move move, int64_t limit) {
  uint8_t *state = &l->moves.state[move.kind][move.index];
  move.before = *tn_limit_choice(&l->moves, &move);
  tn_limit_make_move(&l->moves, &move);
  TN_TRY(try_plan(l, (tn_packing_goal){TN_PACK_MANY, limit, true}, &l->trial));
  if (is_no_gain(l, &move, limit)) {
    *tn_limit_choice(&l->moves, &move) = move.before;
    *state = TN_MOVE_REJECTED;
    return TN_OK;
  }
  *state = TN_MOVE_MADE;
  l->made[l->n_made++] = move;
  swap_summaries(l);
  return TN_OK;
}

/* A move that was no gain may be one after others. False: none was made since the last time. */
static bool reopen_rejected(limit_search *l) {
  if (l->n_made == l->made_before || l->reopenings == REOPENINGS) return false;
  for (int32_t kind = 0; kind < TN_MOVES; kind++)
    for (size_t i = 0; i < l->moves.fb.idle.n; i++)
      if (l->moves.state[kind][i] == TN_MOVE_REJECTED) l->moves.state[kind][i] = TN_MOVE_OPEN;
  l->made_before = l->n_made;
  l->reopenings++;
  return true;
}

static tn_status move_until_it_fits(limit_search *l, int64_t limit) {
  TN_TRY(try_plan(l, (tn_packing_goal){TN_PACK_MANY, limit, true}, &l->moves.current));
  while (l->moves.current.arena_bytes > limit) {
    tn_limit_move best = tn_limit_best_move(&l->moves, false);
    if (best.index < 0) best = tn_limit_best_move(&l->moves, true);
    if (best.index >= 0)
      TN_TRY(try_move(l, best, limit));
    else if (!reopen_rejected(l))
      break;
  }
  if (l->moves.current.arena_bytes <= limit) return TN_OK;
  return try_plan(l, (tn_packing_goal){TN_PACK_MANY, limit, false}, &l->moves.current);
}

/* Undoes moves that the limit does not need, the last ones first, since they have the smallest rates. */
static tn_status undo_unneeded(limit_search *l, int64_t limit) {
  for (int32_t i = l->n_made; i-- > 0 && l->moves.current.arena_bytes <= limit;) {
    tn_value_choice *choice = tn_limit_choice(&l->moves, &l->made[i]), after = *choice;
    *choice = l->made[i].before;
    TN_TRY(try_plan(l, (tn_packing_goal){TN_PACK_FEW, limit, true}, &l->trial));
    if (l->trial.arena_bytes > limit) *choice = after;
  }
  return try_plan(l, (tn_packing_goal){TN_PACK_MANY, limit, false}, &l->moves.current);
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
  const tn_forward_backward *fb = &l->moves.fb;
  const tn_rematerialization *r = &l->moves.rematerialization;
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
    if (r->choice[v].discarded) find_reported_block(list, &n, fb->block[fb->maker[v]])->bytes += fb->bytes[v];
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
  tn_value_choice *choice;
  int64_t arena_bytes;
  double step_s;
} limit_result;

static tn_status run_search(limit_search *l, int64_t limit, limit_result *result) {
  tn_value_choice *choice = l->moves.rematerialization.choice;
  const size_t bytes = l->moves.fb.n_values * sizeof *choice;
  l->n_made = l->made_before = l->reopenings = 0;
  for (int32_t kind = 0; kind < TN_MOVES; kind++)
    memset(l->moves.state[kind], TN_MOVE_OPEN, l->moves.fb.idle.n);
  TN_TRY(move_until_it_fits(l, limit));
  TN_TRY(undo_unneeded(l, limit));
  const tn_plan_summary *current = &l->moves.current;
  *result = (limit_result){.arena_bytes = current->arena_bytes, .step_s = current->step_s};
  result->choice = tn_arena_copy(&l->arena, choice, bytes);
  memset(choice, 0, bytes);
  return result->choice != NULL ? TN_OK : TN_ENOMEM;
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
  bool offload = l->moves.offload;
  l->moves.offload = false;
  TN_TRY(run_search(l, limit, &best));
  l->moves.offload = offload;
  for (size_t i = 0; offload && i < sizeof prices / sizeof *prices; i++) {
    l->moves.times.price = prices[i];
    TN_TRY(run_search(l, limit, &other));
    if (is_better(&other, &best, limit)) best = other;
  }
  tn_rematerialization *r = &l->moves.rematerialization;
  memcpy(r->choice, best.choice, l->moves.fb.n_values * sizeof *r->choice);
  return TN_OK;
}

static tn_status create_tables(limit_search *l) {
  tn_limit_moves *m = &l->moves;
  for (int32_t kind = 0; kind < TN_MOVES; kind++) {
    m->state[kind] = tn_arena_alloc(&l->arena, m->fb.idle.n);
    if (m->state[kind] == NULL) return TN_ENOMEM;
  }
  l->made = tn_arena_alloc(&l->arena, TN_MOVES * m->fb.idle.n * sizeof *l->made);
  if (l->made == NULL) return TN_ENOMEM;
  TN_TRY(tn_rematerialization_create(&m->fb, &l->arena, &m->rematerialization));
  m->rematerialization.measured = m->offload;
  TN_TRY(tn_offload_times_create(&m->rematerialization, &l->arena, &m->times));
  TN_TRY(tn_plan_summary_create(&m->fb, &l->arena, &m->current));
  return tn_plan_summary_create(&m->fb, &l->arena, &l->trial);
}

static tn_status search_choices(limit_search *l, int64_t limit) {
  TN_TRY(create_tables(l));
  TN_TRY(search_ways(l, limit));
  tn_forward_backward_restore(&l->moves.fb);
  tn_rematerialization_update(&l->moves.rematerialization);
  TN_TRY(tn_rematerialization_apply(&l->moves.rematerialization));
  return report_blocks(l);
}

tn_status tn_pass_memory_limit(tn_cover *cover, const tn_state_map *map, const tn_slot_layout *slot,
                               int64_t limit, bool offload) {
  const tn_device_properties *device = &cover->catalog->target.properties;
  limit_search l = {.arena = tn_arena_new(cover->env)};
  l.plans = (tn_plan_trial){.env = cover->env, .map = map, .slot = slot, .fb = &l.moves.fb};
  l.plans.rematerialization = &l.moves.rematerialization;
  l.moves.offload = offload && !device->host_addressable && device->link_bytes_per_s > 0;
  cover->arena_limit = limit;
  tn_status status = tn_forward_backward_create(cover, &l.moves.fb);
  if (status == TN_OK) status = search_choices(&l, limit);
  tn_forward_backward_free(&l.moves.fb);
  tn_arena_free(&l.arena);
  return status;
}
