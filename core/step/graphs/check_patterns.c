/* core/step/graphs/check_patterns.c: patterns of [group.NAME], [adapt], [quantize] and [run] watch_groups
 * that match nothing. Each is noted by itself, so that one run tells all of them. */
#include <string.h>

#include "core/base/text/text.h"
#include "core/step/graphs/training_graph.h"

/* "; parameters have names like 'fc1.weight'" */
static const char *patterns_example(tn_ini *ini, const tn_graph *graph) {
  for (size_t i = 0; i < graph->states.n; i++) {
    if (graph->states.v[i].what != TN_STATE_PARAM) continue;
    const char *text =
        tn_arena_printf(&ini->arena, "; parameters have names like '%s'", graph->states.v[i].path);
    return text != NULL ? text : "";
  }
  return "; the model has no parameters";
}

static bool patterns_match_state(const tn_graph *graph, const tn_words *one) {
  for (size_t i = 0; i < graph->states.n; i++) {
    int32_t what = graph->states.v[i].what;
    if ((what == TN_STATE_PARAM || what == TN_STATE_BUFFER) && tn_words_match(one, graph->states.v[i].path))
      return true;
  }
  return false;
}

static tn_status patterns_check_freeze(tn_env *env, tn_ini *ini, const tn_settings *s,
                                       const tn_graph *graph) {
  for (int32_t g = 0; g < s->n_frozen; g++)
    for (int32_t k = 0; k < s->frozen[g].patterns.n; k++) {
      const tn_words one = {&s->frozen[g].patterns.v[k], 1};
      if (patterns_match_state(graph, &one)) continue;
      TN_TRY(tn_ini_note(env, ini,
                         tn_failf(env, TN_EINVAL, "%s: [group.%s] match: '%s' matches no parameter%s",
                                  s->frozen[g].where, s->frozen[g].name, one.v[0],
                                  patterns_example(ini, graph))));
    }
  return TN_OK;
}

/* Whether the group is the first whose patterns match a parameter that is trained, or a statistic that it
 * freezes. */
static bool patterns_is_member(const tn_settings *s, int32_t group, const tn_gstate *state) {
  bool statistic = state->what == TN_STATE_BUFFER && s->groups[group].until > 0;
  if (state->what != TN_STATE_PARAM && !statistic) return false;
  if (tn_frozen_until(&s->freeze, state->path) == TN_FROZEN_FOREVER) return false;
  for (int32_t g = 0; g < group; g++)
    if (tn_words_match(&s->groups[g].patterns, state->path)) return false;
  return tn_words_match(&s->groups[group].patterns, state->path);
}

static tn_status patterns_check_group(tn_env *env, tn_ini *ini, const tn_settings *s, int32_t group,
                                      const tn_graph *graph) {
  const tn_group_setting *g = &s->groups[group];
  if (g->until > 0 && !patterns_match_state(graph, &g->patterns)) return TN_OK;     /* noted above */
  if (s->adapters.n > 0 && patterns_match_state(graph, &g->patterns)) return TN_OK; /* [adapt] freezes them */
  for (size_t i = 0; i < graph->states.n; i++)
    if (patterns_is_member(s, group, &graph->states.v[i])) return TN_OK;
  return tn_ini_note(
      env, ini,
      tn_failf(env, TN_EINVAL,
               "%s: [group.%s] match: '%s' matches no parameter%s, or only parameters of earlier groups%s",
               g->where, g->name, g->match, s->n_frozen > 0 ? " that is trained" : "",
               patterns_example(ini, graph)));
}

/* Each pattern of [phase NAME] match matches a parameter. */
static tn_status patterns_check_turn(tn_env *env, tn_ini *ini, const tn_turn_setting *turn,
                                     const tn_graph *graph) {
  for (int32_t k = 0; k < turn->patterns.n; k++) {
    const tn_words one = {&turn->patterns.v[k], 1};
    if (patterns_match_state(graph, &one)) continue;
    TN_TRY(tn_ini_note(env, ini,
                       tn_failf(env, TN_EINVAL, "%s: [phase %s] match: '%s' matches no parameter%s",
                                turn->where, turn->name, one.v[0], patterns_example(ini, graph))));
  }
  return TN_OK;
}

/* Every parameter that is trained belongs to one phase. */
static tn_status patterns_check_owner(tn_env *env, tn_ini *ini, const tn_settings *s, const char *path) {
  int32_t owner = tn_settings_find_turn(s, path);
  if (owner < 0)
    return tn_ini_note(
        env, ini,
        tn_failf(env, TN_EINVAL,
                 "%s: no [phase NAME] trains the parameter '%s'; add a pattern to the match of "
                 "a phase, or freeze it: [group.NAME] match = %s, freeze = yes",
                 s->turns[s->n_turns - 1].where, path, path));
  for (int32_t i = owner + 1; i < s->n_turns; i++)
    if (tn_words_match(&s->turns[i].patterns, path))
      return tn_ini_note(
          env, ini,
          tn_failf(env, TN_EINVAL,
                   "%s: [phase %s] match: the parameter '%s' is trained by [phase %s] as well; "
                   "expected one phase for each parameter",
                   s->turns[i].where, s->turns[i].name, path, s->turns[owner].name));
  return TN_OK;
}

static tn_status patterns_check_turns(tn_env *env, tn_ini *ini, const tn_settings *s, const tn_graph *graph) {
  if (s->turns_wrong) return TN_OK; /* a phase that is not read trains nothing */
  for (int32_t i = 0; i < s->n_turns; i++) TN_TRY(patterns_check_turn(env, ini, &s->turns[i], graph));
  for (size_t i = 0; s->n_turns > 0 && i < graph->states.n; i++) {
    const tn_gstate *state = &graph->states.v[i];
    if (state->what != TN_STATE_PARAM || state->path[0] == '@') continue;
    if (tn_frozen_until(&s->freeze, state->path) == TN_FROZEN_FOREVER) continue;
    int32_t before = ini->mistakes.n;
    TN_TRY(patterns_check_owner(env, ini, s, state->path));
    if (ini->mistakes.n > before) break; /* the others are mostly of the same kind */
  }
  return TN_OK;
}

/* ---- [adapt] ---- */

/* The layer that a parameter of an adapter belongs to, or that a weight belongs to; NULL: no layer's. */
static const char *patterns_layer(tn_ini *ini, const tn_gstate *state, size_t n) {
  return n > 0 ? tn_arena_printf(&ini->arena, "%.*s", (int)n, state->path) : NULL;
}

/* "; layers have names like 'h.0.attn.c_attn'" */
static const char *patterns_layer_example(tn_ini *ini, const tn_graph *graph) {
  size_t end = strlen(".weight");
  for (size_t i = 0; i < graph->states.n; i++) {
    const tn_gstate *state = &graph->states.v[i];
    size_t n = strlen(state->path);
    if (state->what != TN_STATE_PARAM || state->type.rank < 2 || !tn_text_ends(state->path, ".weight"))
      continue;
    const char *text =
        tn_arena_printf(&ini->arena, "; layers have names like '%.*s'", (int)(n - end), state->path);
    return text != NULL ? text : "";
  }
  return "";
}

/* Whether a layer has got an adapter by this pattern. */
static bool patterns_adapts(tn_ini *ini, const tn_settings *s, const tn_adapter *adapter, const tn_words *one,
                            const tn_graph *graph) {
  for (size_t i = 0; i < graph->states.n; i++) {
    const tn_gstate *state = &graph->states.v[i];
    const char *layer = patterns_layer(ini, state, tn_adapter_layer(state->path));
    if (layer != NULL && tn_words_match(one, layer) && tn_adapters_find(&s->adapters, layer) == adapter)
      return true;
  }
  return false;
}

static tn_status patterns_check_adapters(tn_env *env, tn_ini *ini, const tn_settings *s,
                                         const tn_graph *graph) {
  for (int32_t i = 0; i < s->adapters.n; i++)
    for (int32_t k = 0; k < s->adapters.v[i].match.n; k++) {
      const tn_adapter *a = &s->adapters.v[i];
      const tn_words one = {&a->match.v[k], 1};
      if (patterns_adapts(ini, s, a, &one, graph)) continue;
      TN_TRY(
          tn_ini_note(env, ini,
                      tn_failf(env, TN_EINVAL,
                               "%s: [%s] match: '%s' matches no linear, convolution or embedding layer, or "
                               "only layers of earlier adapters%s",
                               a->where, a->section, one.v[0], patterns_layer_example(ini, graph))));
    }
  for (int32_t k = 0; k < s->adapters.train.n; k++) {
    const tn_words one = {&s->adapters.train.v[k], 1};
    if (patterns_match_state(graph, &one)) continue;
    TN_TRY(tn_ini_note(env, ini,
                       tn_failf(env, TN_EINVAL, "%s: [%s] train: '%s' matches no parameter%s",
                                s->adapters.v[0].where, s->adapters.v[0].section, one.v[0],
                                patterns_example(ini, graph))));
  }
  return TN_OK;
}

/* ---- [quantize] ---- */

/* The length of the layer's path in front of the name of the table that is rounded; 0: the state is another.
 */
static size_t patterns_rounded_table(const tn_graph *graph, const tn_gstate *state) {
  const char *dot = strrchr(state->path, '.');
  if (dot == NULL || state->value == 0) return 0;
  for (size_t i = 0; i < graph->nodes.n; i++) {
    const tn_gnode *node = &graph->nodes.v[i];
    if (node->n_in == 1 && node->in[0] == state->value &&
        tn_text_equal(node->op->item.name, "fake_quantize_channels"))
      return (size_t)(dot - state->path);
  }
  return 0;
}

/* Whether a layer whose path matches has the range of its input, or is a table. */
static bool patterns_quantizes(tn_ini *ini, const tn_words *one, const tn_graph *graph) {
  for (size_t i = 0; i < graph->states.n; i++) {
    const tn_gstate *state = &graph->states.v[i];
    size_t n = tn_quantize_layer(state->path);
    const char *layer = patterns_layer(ini, state, n > 0 ? n : patterns_rounded_table(graph, state));
    if (layer != NULL && tn_words_match(one, layer)) return true;
  }
  return false;
}

static tn_status patterns_check_quantize(tn_env *env, tn_ini *ini, const tn_quantize *q,
                                         const tn_graph *graph) {
  for (int32_t k = 0; q->given && k < q->match.n; k++) {
    const tn_words one = {&q->match.v[k], 1};
    if (patterns_quantizes(ini, &one, graph)) continue;
    TN_TRY(
        tn_ini_note(env, ini,
                    tn_failf(env, TN_EINVAL,
                             "%s: [quantize] match: '%s' matches no linear, convolution or embedding layer%s",
                             q->where, one.v[0], patterns_layer_example(ini, graph))));
  }
  return TN_OK;
}

static tn_status patterns_check_watch(tn_env *env, tn_ini *ini, const tn_settings *s, const tn_graph *graph) {
  for (int32_t k = 0; k < s->watch_patterns.n; k++) {
    const tn_words one = {&s->watch_patterns.v[k], 1};
    if (patterns_match_state(graph, &one)) continue;
    TN_TRY(tn_ini_note(
        env, ini,
        tn_failf(env, TN_EINVAL,
                 "%s: [run] watch_groups: '%s' matches no parameter, expected blocks, parameters or "
                 "patterns%s",
                 tn_settings_where(ini, "run", "watch_groups"), one.v[0], patterns_example(ini, graph))));
  }
  return TN_OK;
}

tn_status tn_patterns_check(tn_env *env, tn_ini *ini, const tn_settings *settings, const tn_graph *graph) {
  TN_TRY(patterns_check_turns(env, ini, settings, graph));
  TN_TRY(patterns_check_watch(env, ini, settings, graph));
  TN_TRY(patterns_check_freeze(env, ini, settings, graph));
  TN_TRY(patterns_check_adapters(env, ini, settings, graph));
  TN_TRY(patterns_check_quantize(env, ini, &settings->quantize, graph));
  for (int32_t g = 0; g < settings->n_groups; g++)
    if (settings->groups[g].match != NULL && settings->groups[g].where != NULL) /* else it was not read */
      TN_TRY(patterns_check_group(env, ini, settings, g, graph));
  return TN_OK;
}
