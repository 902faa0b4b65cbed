/* core/compile/rematerialization/memory_limit.c: what is bought with recomputation, and in which order.
 *
 * Chen et al., "Training deep nets with sublinear memory cost" (2016), keep the borders of segments and make
 * everything inside again; Korthikanti et al., "Reducing activation recomputation in large transformer
 * models" (2022), choose the values that are large and cheap. Here values are bought one by one, the one that
 * frees most at the peak per second of its clones first, and what lies inside of blocks before what lies on
 * their borders, since a chain of clones must end somewhere. After each the plan is made anew and the
 * purchase kept only if the peak did not rise. What turns out not to be needed is given back. */
#include "core/compile/rematerialization/memory_limit.h"

#include "core/compile/rematerialization/clone_groups.h"

/* What a plan says about the values of the first half. */
typedef struct outlook {
  int64_t arena_bytes, bound_bytes;
  int32_t peak;  /* the step with most bytes alive */
  int32_t *step; /* per group of the halves */
  bool *idle;    /* per value: alive at the peak, between the halves' uses */
} outlook;

typedef struct buying {
  tn_env *env;
  const tn_state_map *map;
  tn_halves halves;
  tn_again again;
  tn_arena arena;
  outlook now, trial;
  bool *refused;   /* per kept value */
  int32_t *bought; /* kept values in the order in which they were bought */
  int32_t n_bought;
} buying;

/* ---- looking ---- */

/* Buffers of the arena, and workspaces, at each step. */
static tn_status find_peak(const tn_plan *plan, outlook *look) {
  int64_t *change = tn_alloc(plan->env, (plan->order.n + 1) * sizeof *change), live = 0, most = -1;
  if (change == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < plan->buffers.n; i++) {
    const tn_buffer *b = &plan->buffers.v[i];
    if (b->parent >= 0 || b->fixed || b->first > b->last) continue;
    change[b->first] += b->bytes;
    change[b->last + 1] -= b->bytes;
  }
  for (size_t s = 0; s < plan->order.n; s++) {
    int64_t workspace = plan->cover->groups.v[plan->order.v[s]].choice.workspace_bytes;
    live += change[s];
    if (live + workspace <= most) continue;
    most = live + workspace;
    look->peak = (int32_t)s;
  }
  tn_release(plan->env, change);
  return TN_OK;
}

/* At the peak a value is idle if the first half has used it by then, and the second half has not. */
static void find_idle(const buying *b, const tn_plan *plan, outlook *look) {
  const tn_halves *h = &b->halves;
  for (size_t v = 0; v < h->n_values; v++) look->idle[v] = true;
  for (int32_t s = 0; s < (int32_t)plan->order.n; s++) {
    int32_t group = plan->order.v[s];
    const tn_group *g = &plan->cover->groups.v[group];
    bool first_half = group <= h->turn; /* clones stand behind the turn */
    if (first_half ? s < look->peak : s > look->peak) continue;
    for (int32_t k = 0; k < g->n_in; k++)
      if (g->in[k] < h->n_values) look->idle[h->base[g->in[k]]] = false;
    for (int32_t k = 0; k < g->n_out; k++)
      if (g->out[k] < h->n_values) look->idle[g->out[k]] = false;
  }
}

static tn_status find_steps(const buying *b, const tn_plan *plan, outlook *look) {
  const tn_halves *h = &b->halves;
  int32_t *step = tn_alloc(plan->env, plan->cover->groups.n * sizeof *step);
  if (step == NULL) return TN_ENOMEM;
  for (size_t s = 0; s < plan->order.n; s++) step[plan->order.v[s]] = (int32_t)s;
  for (int32_t g = 0; g < h->n_groups; g++) look->step[g] = step[b->again.moved[g]];
  tn_release(plan->env, step);
  return TN_OK;
}

/* Applies what has been given up, plans, and looks at the plan. The cover is left with what the plan added.
 */
static tn_status look_at(buying *b, outlook *look) {
  tn_plan plan = {.env = b->env, .cover = b->halves.cover, .map = b->map, .arena = tn_arena_new(b->env)};
  tn_halves_restore(&b->halves);
  tn_again_follow(&b->again);
  tn_status status = tn_again_apply(&b->again);
  if (status == TN_OK) status = tn_plan_make(&plan);
  if (status == TN_OK) status = find_peak(&plan, look);
  if (status == TN_OK) status = find_steps(b, &plan, look);
  if (status == TN_OK) {
    find_idle(b, &plan, look);
    look->arena_bytes = plan.arena_bytes;
    look->bound_bytes = plan.bound_bytes;
  }
  tn_plan_free(&plan);
  return status;
}

/* ---- buying ---- */

/* Bytes that giving up one more value would free at the peak. */
static double gain_of(buying *b, const tn_kept *kept, int64_t longer_bytes) {
  const tn_halves *h = &b->halves;
  const tn_again *a = &b->again;
  if (!a->possible || b->now.step[a->at[h->maker[kept->value]]] <= b->now.peak) return 0;
  return (double)(h->bytes[kept->value] - (a->longer_bytes - longer_bytes));
}

/* The best offer inside of blocks, or on their borders; -1: none frees anything. */
static int32_t best_offer(buying *b, bool border) {
  const tn_halves *h = &b->halves;
  tn_again *a = &b->again;
  int32_t best = -1;
  double best_rate = 0;
  tn_again_follow(a);
  double cost_s = a->cost_s;
  int64_t longer_bytes = a->longer_bytes;
  for (size_t i = 0; i < h->kept.n; i++) {
    const tn_kept *kept = &h->kept.v[i];
    if (b->refused[i] || a->given_up[kept->value] || kept->border != border || !b->now.idle[kept->value])
      continue;
    a->given_up[kept->value] = true;
    tn_again_follow(a);
    a->given_up[kept->value] = false;
    double rate = gain_of(b, kept, longer_bytes) / (a->cost_s - cost_s + 1e-9);
    if (rate <= best_rate) continue;
    best_rate = rate;
    best = (int32_t)i;
  }
  return best;
}

static void swap_outlooks(buying *b) {
  outlook old = b->now;
  b->now = b->trial;
  b->trial = old;
}

static tn_status buy(buying *b, int32_t offer) {
  tn_val value = b->halves.kept.v[offer].value;
  b->again.given_up[value] = true;
  TN_TRY(look_at(b, &b->trial));
  if (b->trial.bound_bytes > b->now.bound_bytes) {
    b->again.given_up[value] = false;
    b->refused[offer] = true;
    return TN_OK;
  }
  b->bought[b->n_bought++] = offer;
  swap_outlooks(b);
  return TN_OK;
}

static tn_status buy_until_it_fits(buying *b, int64_t limit) {
  TN_TRY(look_at(b, &b->now));
  while (b->now.arena_bytes > limit) {
    int32_t offer = best_offer(b, false);
    if (offer < 0) offer = best_offer(b, true);
    if (offer < 0) break;
    TN_TRY(buy(b, offer));
  }
  return TN_OK;
}

/* The last purchases were the least rewarding. */
static tn_status give_back(buying *b, int64_t limit) {
  for (int32_t i = b->n_bought; i-- > 0;) {
    tn_val value = b->halves.kept.v[b->bought[i]].value;
    b->again.given_up[value] = false;
    TN_TRY(look_at(b, &b->trial));
    if (b->trial.arena_bytes > (limit > b->now.arena_bytes ? limit : b->now.arena_bytes))
      b->again.given_up[value] = true;
  }
  return TN_OK;
}

/* ---- what it came to ---- */

static tn_recomputed *entry_of(tn_recomputed *list, int32_t *n, const char *block) {
  for (int32_t i = 0; i < *n; i++)
    if (tn_text_equal(list[i].block, block)) return &list[i];
  list[*n] = (tn_recomputed){.block = block};
  return &list[(*n)++];
}

static tn_status list_blocks(buying *b) {
  const tn_halves *h = &b->halves;
  tn_cover *cover = h->cover;
  int32_t n = 0;
  tn_recomputed *list = tn_arena_alloc(&cover->arena, (size_t)h->n_groups * sizeof *list);
  if (list == NULL) return TN_ENOMEM;
  for (int32_t g = 0; g < h->n_groups; g++)
    if (b->again.cloned[g]) entry_of(list, &n, h->block[g])->flops += h->groups[g].cost.flops;
  for (size_t i = 0; i < h->kept.n; i++) {
    tn_val v = h->kept.v[i].value;
    if (b->again.given_up[v]) entry_of(list, &n, h->block[h->maker[v]])->bytes += h->bytes[v];
  }
  for (int32_t i = 0; i < n; i++) {
    list[i].block = tn_arena_strdup(&cover->arena, list[i].block);
    if (list[i].block == NULL) return TN_ENOMEM;
  }
  cover->recomputed = list;
  cover->n_recomputed = n;
  return TN_OK;
}

static tn_status make_outlook(buying *b, outlook *look) {
  look->step = tn_arena_alloc(&b->arena, (size_t)b->halves.n_groups * sizeof *look->step);
  look->idle = tn_arena_alloc(&b->arena, b->halves.n_values * sizeof *look->idle);
  return look->step != NULL && look->idle != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status run(buying *b, int64_t limit) {
  size_t kept = b->halves.kept.n;
  b->refused = tn_arena_alloc(&b->arena, kept * sizeof *b->refused);
  b->bought = tn_arena_alloc(&b->arena, kept * sizeof *b->bought);
  if (b->refused == NULL || b->bought == NULL) return TN_ENOMEM;
  TN_TRY(tn_again_create(&b->halves, &b->arena, &b->again));
  TN_TRY(make_outlook(b, &b->now));
  TN_TRY(make_outlook(b, &b->trial));
  TN_TRY(buy_until_it_fits(b, limit));
  TN_TRY(give_back(b, limit));
  tn_halves_restore(&b->halves);
  tn_again_follow(&b->again);
  TN_TRY(tn_again_apply(&b->again));
  return list_blocks(b);
}

tn_status tn_pass_limit(tn_env *env, tn_cover *cover, const tn_state_map *map, int64_t limit) {
  buying b = {.env = env, .map = map, .arena = tn_arena_new(env)};
  tn_status status = tn_halves_create(cover, &b.halves);
  if (status == TN_OK) status = run(&b, limit);
  tn_halves_free(&b.halves);
  tn_arena_free(&b.arena);
  return status;
}
