/* core/step/update/gradients.c: differentiates the loss with respect to the trained parameters. */
#include "core/base/text/text.h"
#include "core/step/update/update_stages.h"
#include "tenon/ops.h"

/* Whether the parameter or statistic is that of another [phase NAME] than this step's. */
static bool gradients_is_of_others(const tn_settings *s, const char *path) {
  if (s->turn == NULL) return false;
  int32_t owner = tn_settings_find_turn(s, path);
  return s->turn != &s->turns[owner >= 0 ? owner : s->n_turns - 1];
}

void tn_drop_commits_of_others(tn_training_graph *t) {
  tn_graph *g = t->model->graph;
  size_t n = 0;
  for (size_t i = 0; i < g->commits.n; i++)
    if (!gradients_is_of_others(t->settings, g->commits.v[i].path)) g->commits.v[n++] = g->commits.v[i];
  g->commits.n = n;
}

static tn_status gradients_fail_without_parameters(const tn_updater *u) {
  const tn_settings *s = u->settings;
  if (s->turn != NULL)
    return tn_failf(u->env, TN_EINVAL,
                    "%s: [phase %s] match = %s: its losses depend on none of these parameters, so there is "
                    "nothing to train",
                    s->turn->where, s->turn->name, s->turn->match);
  for (int32_t i = 0; i < s->n_frozen; i++)
    if (s->frozen[i].until >= u->epoch)
      return tn_failf(
          u->env, TN_EINVAL,
          "%s: [group.%s] freeze = %s leaves no parameter that the loss depends on, so there is nothing to "
          "train in epoch %lld",
          s->frozen[i].where, s->frozen[i].name, s->frozen[i].freeze, (long long)u->epoch);
  return tn_failf(u->env, TN_EINVAL, "%s: the loss depends on no parameter, so there is nothing to train",
                  u->settings->model_where);
}

/* Differentiation may grow the table of states, and pass `precision` makes another graph. */
static const tn_gstate *gradients_copy_state(tn_arena *arena, const tn_gstate *state) {
  tn_gstate *copy = tn_arena_copy(arena, state, sizeof *state);
  if (copy == NULL) return NULL;
  copy->path = tn_arena_strdup(arena, state->path);
  copy->init = tn_arena_strdup(arena, state->init != NULL ? state->init : "");
  copy->where = tn_arena_strdup(arena, state->where != NULL ? state->where : "");
  copy->value = 0;
  return copy->path != NULL && copy->init != NULL && copy->where != NULL ? copy : NULL;
}

static tn_status gradients_collect_parameters(tn_updater *u, const tn_gstate ***states, tn_val **wrt,
                                              int32_t *n) {
  size_t most = u->graph->states.n + 1;
  *states = tn_arena_alloc(u->arena, tn_size_mul(most, sizeof **states));
  *wrt = tn_arena_alloc(u->arena, tn_size_mul(most, sizeof **wrt));
  *n = 0;
  if (*states == NULL || *wrt == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < u->graph->states.n; i++) {
    const tn_gstate *state = &u->graph->states.v[i];
    if (state->what != TN_STATE_PARAM || !state->value) continue;
    if (tn_is_frozen(&u->settings->freeze, state->path, u->epoch)) continue;
    if (gradients_is_of_others(u->settings, state->path)) continue;
    (*states)[*n] = gradients_copy_state(u->arena, state);
    if ((*states)[*n] == NULL) return TN_ENOMEM;
    (*wrt)[(*n)++] = state->value;
  }
  return TN_OK;
}

tn_status tn_updater_differentiate(tn_updater *u, tn_val loss, tn_val seed) {
  const tn_gstate **states;
  tn_val *wrt, *gradient;
  int32_t n, *order;
  TN_TRY(gradients_collect_parameters(u, &states, &wrt, &n));
  gradient = tn_arena_alloc(u->arena, tn_size_mul((size_t)n + 1, sizeof *gradient));
  order = tn_arena_alloc(u->arena, tn_size_mul((size_t)n + 1, sizeof *order));
  u->params = tn_arena_alloc(u->arena, tn_size_mul((size_t)n + 1, sizeof *u->params));
  if (gradient == NULL || order == NULL || u->params == NULL) return TN_ENOMEM;
  TN_TRY(tn_differentiate(u->b, loss, seed, wrt, n, gradient, order));
  for (int32_t k = 0; k < n; k++) {
    int32_t i = order[k];
    if (i < 0 || i >= n || !gradient[i]) continue;
    u->params[u->n_params++] =
        (tn_trained_parameter){.state = states[i],
                               .gradient = gradient[i],
                               .until = tn_frozen_until(&u->settings->freeze, states[i]->path)};
  }
  if (u->n_params == 0) return gradients_fail_without_parameters(u);
  return tn_build_status(u->b);
}
