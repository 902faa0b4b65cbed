/* core/step/update/prune_graph.c: the program that chooses the weights to be zero: those of the least
 * magnitude, of each parameter or of all, or of each few neighbours. Weights of equal magnitude at the limit
 * are pruned together. */
#include "core/step/update/averages.h"
#include "core/step/update/pruning.h"
#include "tenon/ops.h"

/* A parameter with its mask. */
typedef struct prune_weight {
  const tn_placement *param, *mask;
  tn_val value, magnitude, pruned; /* pruned: bool */
} prune_weight;

typedef struct prune_pass {
  tn_graph *graph;
  tn_build *b;
  const tn_state_map *map;
  const tn_prune_setting *setting;
  tn_val goal;
  TN_VEC(prune_weight) weights;
} prune_pass;

static tn_val prune_state(prune_pass *p, const char *path, const tn_type *type, int32_t what,
                          const char *init) {
  tn_val v = tn_graph_state(p->graph, path, type, what, init, "");
  if (v == 0) tn_builder_fail(p->b, p->graph->env->record->code);
  return v;
}

static tn_status prune_find_weights(prune_pass *p) {
  for (size_t i = 0; i < p->map->states.n; i++) {
    const tn_placement *s = &p->map->states.v[i];
    if (s->what != TN_STATE_PARAM || s->path[0] == '@') continue;
    const char *name = tn_arena_printf(&p->graph->arena, "%s.pruned", s->path);
    if (name == NULL) return TN_ENOMEM;
    prune_weight w = {.param = s, .mask = tn_state_map_find(p->map, name)};
    if (w.mask == NULL || !tn_prune_matches(p->setting, s->path, &s->type)) continue;
    w.value = prune_state(p, s->path, &s->type, s->what, "");
    w.magnitude = tn_abs(p->b, w.value);
    TN_TRY(tn_vec_push(p->graph->env, &p->weights, w));
  }
  return tn_build_status(p->b);
}

static tn_val prune_flat(tn_build *b, tn_val v) {
  const int64_t count = tn_type_count(tn_val_type(b, v));
  return tn_reshape(b, v, 1, &count);
}

/* The greatest of the round(goal n) least numbers; -1 where that rounds to 0. */
static tn_val prune_limit(prune_pass *p, tn_val numbers) {
  tn_build *b = p->b;
  const int64_t n = tn_val_dim(b, numbers, 0), one = 1;
  tn_val count = tn_round(b, tn_affine(b, p->goal, (double)n, 0));
  tn_val index = tn_maximum(b, tn_affine(b, count, 1, -1), tn_scalar(b, TN_F32, 0));
  tn_val at = tn_reshape(b, tn_to_dtype(b, index, TN_I32), 1, &one);
  tn_val found = tn_gather(b, tn_sort(b, numbers, 0, 0), at, 0);
  tn_val limit = tn_reshape(b, found, 0, NULL);
  return tn_where(b, tn_lt(b, count, tn_scalar(b, TN_F32, 1)), tn_scalar(b, TN_F32, -1), limit);
}

static void prune_below(prune_pass *p, prune_weight *w, tn_val limit) {
  w->pruned = tn_le(p->b, w->magnitude, limit);
}

static tn_status prune_each(prune_pass *p) {
  for (size_t i = 0; i < p->weights.n; i++) {
    prune_weight *w = &p->weights.v[i];
    prune_below(p, w, prune_limit(p, prune_flat(p->b, w->magnitude)));
  }
  return TN_OK;
}

static tn_status prune_all(prune_pass *p) {
  tn_val *all = tn_arena_alloc(&p->graph->arena, p->weights.n * sizeof *all);
  if (all == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < p->weights.n; i++) all[i] = prune_flat(p->b, p->weights.v[i].magnitude);
  tn_val limit = prune_limit(p, tn_concat(p->b, (int64_t)p->weights.n, all, 0));
  for (size_t i = 0; i < p->weights.n; i++) prune_below(p, &p->weights.v[i], limit);
  return TN_OK;
}

/* Of m neighbours along the last dimension, n stay: those with less than n in front of them, which are
 * greater, or as great and earlier. */
static void prune_neighbours(prune_pass *p, prune_weight *w) {
  tn_build *b = p->b;
  const tn_type type = *tn_val_type(b, w->value);
  const int64_t m = p->setting->of, groups = tn_type_count(&type) / m, last = 2;
  const tn_type places = {TN_I32, 3, {1, m, m}};
  const int64_t own_dims[] = {groups, m, 1}, other_dims[] = {groups, 1, m};
  tn_val own = tn_reshape(b, w->magnitude, 3, own_dims), other = tn_reshape(b, w->magnitude, 3, other_dims);
  tn_val earlier = tn_lt(b, tn_iota(b, &places, 2), tn_iota(b, &places, 1));
  tn_val front = tn_or(b, tn_gt(b, other, own), tn_and(b, tn_eq(b, other, own), earlier));
  tn_val rank = tn_reduce_sum(b, tn_to_dtype(b, front, TN_F32), 1, &last, 0);
  tn_val behind = tn_ge(b, rank, tn_scalar(b, TN_F32, (double)p->setting->keep));
  w->pruned = tn_reshape(b, behind, type.rank, type.dims);
}

static tn_status prune_choose(prune_pass *p) {
  if (p->setting->of == 0) return p->setting->section.scope == TN_PRUNE_GLOBAL ? prune_all(p) : prune_each(p);
  for (size_t i = 0; i < p->weights.n; i++) prune_neighbours(p, &p->weights.v[i]);
  return TN_OK;
}

/* ---- commits ---- */

static tn_status prune_clear(prune_pass *p, const char *path, tn_val value, tn_val pruned) {
  tn_val zero = tn_scalar(p->b, tn_val_type(p->b, value)->dtype, 0);
  tn_val next = tn_where(p->b, pruned, zero, value);
  TN_TRY(tn_build_status(p->b));
  return tn_graph_commit(p->graph, path, next, 0);
}

static tn_status prune_commit_weight(prune_pass *p, const prune_weight *w) {
  const tn_placement *average;
  prune_state(p, w->mask->path, &w->mask->type, w->mask->what, "");
  tn_val mask = tn_to_dtype(p->b, w->pruned, TN_F32);
  TN_TRY(tn_build_status(p->b));
  TN_TRY(tn_graph_commit(p->graph, w->mask->path, mask, 0));
  TN_TRY(prune_clear(p, w->param->path, w->value, w->pruned));
  TN_TRY(tn_average_of(p->map, w->param, &average));
  if (average == NULL) return TN_OK;
  return prune_clear(p, average->path, prune_state(p, average->path, &average->type, average->what, ""),
                     w->pruned);
}

/* The share of zeros over all weights. */
static tn_status prune_commit_share(prune_pass *p) {
  const tn_type scalar = {TN_F32, 0, {0}};
  tn_val sum = 0;
  double count = 0;
  for (size_t i = 0; i < p->weights.n; i++) {
    const prune_weight *w = &p->weights.v[i];
    tn_val own = tn_reduce_sum(p->b, tn_to_dtype(p->b, w->pruned, TN_F32), 0, NULL, 0);
    sum = sum != 0 ? tn_add(p->b, sum, own) : own;
    count += (double)tn_type_count(&w->param->type);
  }
  prune_state(p, TN_PRUNE_MADE, &scalar, TN_STATE_HOST, "zeros");
  tn_val share = tn_affine(p->b, sum, 1 / count, 0);
  TN_TRY(tn_build_status(p->b));
  return tn_graph_commit(p->graph, TN_PRUNE_MADE, share, 0);
}

static tn_status prune_emit(prune_pass *p) {
  const tn_type scalar = {TN_F32, 0, {0}};
  TN_TRY(prune_find_weights(p));
  if (p->weights.n == 0)
    return tn_failf(p->graph->env, TN_EINVAL,
                    "%s: [prune] match = %s: no trained parameter of two dimensions or more has such a name",
                    p->setting->where, p->setting->section.match);
  p->goal = prune_state(p, TN_PRUNE_GOAL, &scalar, TN_STATE_SCRATCH, "");
  TN_TRY(prune_choose(p));
  for (size_t i = 0; i < p->weights.n; i++) TN_TRY(prune_commit_weight(p, &p->weights.v[i]));
  return prune_commit_share(p);
}

tn_status tn_prune_graph(tn_env *env, struct tn_op_table *ops, const tn_settings *settings,
                         const tn_state_map *map, tn_graph **out) {
  prune_pass p = {.map = map, .setting = &settings->prune};
  tn_builder *builder = NULL;
  *out = NULL;
  if (!settings->prune.given) return TN_OK;
  TN_TRY(tn_graph_create(env, ops, &p.graph));
  tn_status status = tn_builder_create(p.graph, &builder);
  if (status == TN_OK) {
    p.b = tn_builder_handle(builder);
    status = prune_emit(&p);
  }
  tn_builder_destroy(builder);
  tn_vec_free(env, &p.weights);
  if (status == TN_OK)
    *out = p.graph;
  else
    tn_graph_destroy(p.graph);
  return status;
}
