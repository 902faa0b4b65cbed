/* core/step/update/averages.c: averages of parameters and running statistics: in the update, in programs
 * that read them, and at the ends of epochs. */
#include "core/step/update/averages.h"

#include <string.h>

#include "core/graph/input_state.h"
#include "core/step/graphs/low_precision_copies.h"
#include "core/step/update/update_stages.h"
#include "tenon/ops.h"

#define SUFFIX ".average"

/* ---- names ---- */

static tn_status averages_find(const tn_state_map *map, const char *path, size_t length, const char *suffix,
                               const tn_placement **found) {
  char *name = tn_alloc(map->env, length + strlen(suffix) + 1);
  if (name == NULL) return TN_ENOMEM;
  memcpy(name, path, length);
  memcpy(name + length, suffix, strlen(suffix) + 1);
  *found = tn_state_map_find(map, name);
  tn_release(map->env, name);
  return TN_OK;
}

static bool averages_has(const tn_placement *state) {
  return state->path[0] != '@' && (state->what == TN_STATE_PARAM || state->what == TN_STATE_BUFFER);
}

tn_status tn_average_of(const tn_state_map *map, const tn_placement *state, const tn_placement **average) {
  *average = NULL;
  if (!averages_has(state)) return TN_OK;
  TN_TRY(averages_find(map, state->path, strlen(state->path), SUFFIX, average));
  if (*average != NULL && (*average)->what != TN_STATE_OPTIMIZER) *average = NULL;
  return TN_OK;
}

tn_status tn_averaged_state(const tn_state_map *map, const tn_placement *average,
                            const tn_placement **state) {
  size_t n = strlen(average->path), suffix = strlen(SUFFIX);
  *state = NULL;
  if (average->what != TN_STATE_OPTIMIZER || average->path[0] == '@' || n <= suffix ||
      strcmp(average->path + n - suffix, SUFFIX) != 0)
    return TN_OK;
  TN_TRY(averages_find(map, average->path, n - suffix, "", state));
  if (*state != NULL && !averages_has(*state)) *state = NULL;
  return TN_OK;
}

/* ---- in the update ---- */

/* The decay of this update, an f32 scalar, which the update before committed; 0 in the first one, so that the
 * initial values leave no trace. As a state it is one operand of each launch that moves an average. */
static tn_val averages_decay(tn_updater *u) {
  tn_type scalar = {TN_F32, 0, {0}};
  const char *path = tn_updater_own(u, TN_AVERAGE_DECAY, "");
  tn_val decay = path != NULL ? tn_graph_state(u->graph, path, &scalar, TN_STATE_HOST, "zeros", "") : 0;
  if (decay == 0) tn_builder_fail(u->b, u->env->record->code);
  return decay;
}

/* [optimizer] ema, of the next update where it has a schedule. */
static tn_val averages_greatest_decay(tn_updater *u) {
  tn_type scalar = {TN_F32, 0, {0}};
  if (tn_settings_schedule_of(u->settings, TN_SCHEDULES_EMA) == NULL)
    return tn_scalar(u->b, TN_F32, u->settings->optimizer.ema);
  tn_val decay = tn_graph_input(u->graph, "control.ema", &scalar);
  if (decay == 0) tn_builder_fail(u->b, u->env->record->code);
  return decay;
}

/* min(ema, (1 + n) / (10 + n)) for the next update, n with this one. */
static tn_status averages_commit_decay(tn_updater *u) {
  tn_build *b = u->b;
  const char *path = tn_updater_own(u, TN_AVERAGE_DECAY, "");
  averages_decay(u); /* registers the state */
  tn_val n = tn_to_dtype(b, tn_build_counter(b, TN_UPDATES), TN_F32);
  tn_val warm = tn_div(b, tn_affine(b, n, 1, 1), tn_affine(b, n, 1, 10));
  tn_val next = tn_minimum(b, warm, averages_greatest_decay(u));
  TN_TRY(tn_build_status(b));
  return path != NULL ? tn_graph_commit(u->graph, path, next, 0) : TN_ENOMEM;
}

/* value + decay * (average - value), which is `value` itself where the decay is 0. */
static tn_status averages_commit(tn_updater *u, tn_val average, tn_val value) {
  tn_build *b = u->b;
  const tn_state_attributes *a = tn_graph_maker(u->graph, average)->attributes;
  tn_val decay = tn_to_dtype(b, averages_decay(u), tn_val_type(b, value)->dtype);
  tn_val next = tn_add(b, value, tn_mul(b, decay, tn_sub(b, average, value)));
  TN_TRY(tn_build_status(b));
  return tn_graph_commit(u->graph, a->path, next, 0);
}

tn_status tn_updater_average(tn_updater *u, tn_val next) {
  if (!tn_settings_take_average(u->settings)) return TN_OK;
  tn_type type = *tn_val_type(u->b, next);
  tn_val average = u->one ? tn_updater_parameter_state(u->b, u, "average", &type, "zeros")
                          : tn_updater_flat_state(u->b, u, "average", &type, "zeros");
  TN_TRY(tn_build_status(u->b));
  return u->settings->optimizer.ema > 0 ? averages_commit(u, average, next) : TN_OK;
}

static tn_status averages_of_commit(tn_updater *u, tn_gcommit commit) {
  const tn_gstate *found = tn_graph_find_state(u->graph, commit.path);
  if (found == NULL || found->what != TN_STATE_BUFFER || !tn_dtype_is_float(found->type.dtype)) return TN_OK;
  tn_type type = found->type;
  const char *path = tn_arena_printf(u->arena, "%s" SUFFIX, commit.path);
  if (path == NULL) return TN_ENOMEM;
  tn_val average = tn_graph_state(u->graph, path, &type, TN_STATE_OPTIMIZER, "", "");
  if (average == 0) return u->env->record->code;
  return u->settings->optimizer.ema > 0 ? averages_commit(u, average, commit.value) : TN_OK;
}

tn_status tn_updater_average_statistics(tn_updater *u) {
  size_t n = tn_settings_take_average(u->settings) ? u->graph->commits.n : 0;
  for (size_t i = 0; i < n; i++) TN_TRY(averages_of_commit(u, u->graph->commits.v[i]));
  return u->settings->optimizer.ema > 0 ? averages_commit_decay(u) : TN_OK;
}

/* ---- in programs without an update ---- */

/* The path at which a graph reads the average of a state, or of its low-precision copy, or NULL.
 */
static tn_status averages_path(const tn_state_map *map, tn_arena *arena, const tn_state_attributes *a,
                               const char **path) {
  bool copy = a->what + 1 == TN_STATE_DERIVED;
  const char *of = copy ? tn_low_precision_source(arena, a->path) : a->path;
  const tn_placement *state = of != NULL ? tn_state_map_find(map, of) : NULL, *average = NULL;
  *path = NULL;
  if (of == NULL) return TN_ENOMEM;
  if (state == NULL) return TN_OK;
  TN_TRY(tn_average_of(map, state, &average));
  if (average == NULL) return TN_OK;
  *path = copy ? tn_low_precision_path(arena, average->path, a->type.dtype) : average->path;
  return *path != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status averages_rewrite_node(tn_rewrite *r, const tn_gnode *node, void *context) {
  tn_graph *to = tn_builder_graph(r->b);
  const tn_state_attributes *a = node->attributes;
  const char *path = NULL;
  if (node->op == &tn_op_state) TN_TRY(averages_path(context, &to->arena, a, &path));
  if (path == NULL) return tn_rewrite_copy(r, node);
  r->map[node->first_out] = tn_graph_state(to, path, &a->type, a->what + 1, "", node->where);
  return r->map[node->first_out] != 0 ? TN_OK : to->env->record->code;
}

tn_status tn_read_averages(const tn_state_map *map, tn_graph **graph) {
  tn_graph *to = NULL;
  TN_TRY(tn_graph_rewrite(*graph, averages_rewrite_node, (void *)(uintptr_t)map, &to));
  tn_graph_destroy(*graph);
  *graph = to;
  return TN_OK;
}

/* ---- at the ends of epochs ---- */

/* Shared by all means: the number of moments in them, and whether they change. */
typedef struct tn_mean_pass {
  tn_graph *graph;
  tn_build *b;
  const tn_state_map *map;
  tn_val goal, applied; /* 0: the states are copied */
} tn_mean_pass;

static tn_val mean_count(tn_mean_pass *m, const char *path, int32_t what) {
  tn_type scalar = {TN_I64, 0, {0}};
  tn_val count = tn_graph_state(m->graph, path, &scalar, what, what == TN_STATE_HOST ? "zeros" : "", "");
  if (count == 0) tn_builder_fail(m->b, m->graph->env->record->code);
  return count;
}

/* A mean that has the moment already stays as it is; before the first one it follows the states. */
static tn_status mean_count_moments(tn_mean_pass *m) {
  tn_val count = mean_count(m, TN_AVERAGE_COUNT, TN_STATE_HOST);
  m->goal = mean_count(m, TN_AVERAGE_GOAL, TN_STATE_SCRATCH);
  tn_val none = tn_lt(m->b, m->goal, tn_scalar(m->b, TN_I64, 1));
  m->applied = tn_or(m->b, none, tn_ne(m->b, m->goal, count));
  TN_TRY(tn_build_status(m->b));
  return tn_graph_commit(m->graph, TN_AVERAGE_COUNT, m->goal, m->applied);
}

/* average + (value - average) / goal, torch's swa_utils; the first moment is a copy. */
static tn_val mean_next(tn_mean_pass *m, tn_val value, tn_val average) {
  tn_build *b = m->b;
  int32_t dtype = tn_val_type(b, value)->dtype;
  if (m->goal == 0) return value;
  tn_val step = tn_div(b, tn_sub(b, value, average), tn_to_dtype(b, m->goal, dtype));
  return tn_where(b, tn_le(b, m->goal, tn_scalar(b, TN_I64, 1)), value, tn_add(b, average, step));
}

static tn_status mean_add_state(tn_mean_pass *m, const tn_placement *s) {
  const tn_placement *a;
  TN_TRY(tn_average_of(m->map, s, &a));
  if (a == NULL) return TN_OK;
  if (tn_state_map_shards(m->map, s) > 1) { /* a rank has a part of the region: all its states at once */
    bool first = tn_state_map_at(m->map, m->map->regions.v[s->region].name, 0) == s;
    if (!first) return TN_OK;
    a = &m->map->regions.v[a->region].whole;
    s = &m->map->regions.v[s->region].whole;
  }
  tn_val value = tn_graph_state(m->graph, s->path, &s->type, s->what, "", ""), average = 0;
  if (value != 0) average = tn_graph_state(m->graph, a->path, &a->type, a->what, "", "");
  if (average == 0) return m->graph->env->record->code;
  tn_val next = mean_next(m, value, average);
  TN_TRY(tn_build_status(m->b));
  return tn_graph_commit(m->graph, a->path, next, m->applied);
}

static tn_status mean_emit(tn_mean_pass *m, const tn_settings *settings) {
  if (settings->optimizer.swa_from > 0) TN_TRY(mean_count_moments(m));
  for (size_t i = 0; i < m->map->states.n; i++) TN_TRY(mean_add_state(m, &m->map->states.v[i]));
  return TN_OK;
}

tn_status tn_mean_graph(tn_env *env, struct tn_op_table *ops, const tn_settings *settings,
                        const tn_state_map *map, tn_graph **out) {
  tn_graph *graph = NULL;
  tn_builder *builder = NULL;
  *out = NULL;
  if (!tn_settings_average(settings)) return TN_OK;
  TN_TRY(tn_graph_create(env, ops, &graph));
  tn_status status = tn_builder_create(graph, &builder);
  tn_mean_pass m = {.graph = graph, .map = map};
  if (status == TN_OK) {
    m.b = tn_builder_handle(builder);
    status = mean_emit(&m, settings);
  }
  tn_builder_destroy(builder);
  if (status == TN_OK)
    *out = graph;
  else
    tn_graph_destroy(graph);
  return status;
}
