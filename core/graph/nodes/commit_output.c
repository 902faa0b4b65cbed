/* core/graph/nodes/commit_output.c: commits of state and outputs of a graph. */
#include "core/graph/graph.h"

static tn_status output_check_value(const tn_graph *g, const char *kind, const char *name, tn_val v) {
  if (v != 0 && v < g->values.n) return TN_OK;
  return tn_failf(g->env, TN_EINVAL, "%s %s: value %u is not of this graph", kind, name, v);
}

static tn_status commit_check_predicate(const tn_graph *g, const char *path, tn_val predicate) {
  char type[TN_TYPE_TEXT];
  if (predicate == 0) return TN_OK;
  TN_TRY(output_check_value(g, "predicate of commit", path, predicate));
  const tn_type *t = tn_graph_type(g, predicate);
  if (t->dtype == TN_BOOL && t->rank == 0) return TN_OK;
  return tn_failf(g->env, TN_EINVAL, "commit %s: the predicate is %s, expected bool[]", path,
                  tn_type_format(t, type));
}

static tn_status commit_check(const tn_graph *g, const char *path, tn_val value) {
  char one[TN_TYPE_TEXT], other[TN_TYPE_TEXT];
  const tn_gstate *state = tn_graph_find_state(g, path);
  if (state == NULL) return tn_failf(g->env, TN_EINVAL, "commit %s: there is no state of this path", path);
  TN_TRY(output_check_value(g, "commit", path, value));
  if (tn_name_index_find(&g->commit_paths, path) != TN_NAME_INDEX_NONE)
    return tn_failf(g->env, TN_EINVAL, "state %s is committed twice, expected one commit in a program", path);
  if (tn_type_equal(tn_graph_type(g, value), &state->type)) return TN_OK;
  return tn_failf(g->env, TN_EINVAL, "commit %s: the value is %s, expected %s, the type of the state", path,
                  tn_type_format(tn_graph_type(g, value), one), tn_type_format(&state->type, other));
}

tn_status tn_graph_commit(tn_graph *g, const char *path, tn_val value, tn_val predicate) {
  TN_TRY(commit_check(g, path, value));
  TN_TRY(commit_check_predicate(g, path, predicate));
  tn_gcommit commit = {tn_graph_find_state(g, path)->path, value, predicate};
  TN_TRY(tn_vec_reserve(g->env, &g->commits, g->commits.n + 1));
  TN_TRY(tn_name_index_add(&g->commit_paths, commit.path));
  g->commits.v[g->commits.n++] = commit;
  return TN_OK;
}

void tn_graph_clear_ends(tn_graph *g) {
  g->outputs.n = g->commits.n = 0;
  tn_name_index_free(&g->commit_paths);
}

tn_status tn_graph_output(tn_graph *g, const char *name, tn_val value) {
  if (name == NULL) return TN_ENOMEM; /* the caller ran out of memory while making it */
  TN_TRY(output_check_value(g, "output", name, value));
  if (tn_graph_find_output(g, name) != 0)
    return tn_failf(g->env, TN_EINVAL, "output %s exists already, expected each output once", name);
  tn_goutput output = {tn_arena_strdup(&g->arena, name), value};
  return output.name != NULL ? tn_vec_push(g->env, &g->outputs, output) : TN_ENOMEM;
}

tn_val tn_graph_find_output(const tn_graph *g, const char *name) {
  for (size_t i = 0; i < g->outputs.n; i++)
    if (tn_text_equal(g->outputs.v[i].name, name)) return g->outputs.v[i].value;
  return 0;
}
