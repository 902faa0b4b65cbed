/* core/model/growing.c: see growing.h. */
#include "core/model/growing.h"

#include "core/model/assemble.h"

struct tn_growing {
  tn_env *env;
  tn_ini ini; /* empty: there are no blocks */
  tn_model_request request;
  tn_graph *graph;
  tn_assembly assembly;
  tn_model_scope scope;
  int32_t lines;
};

/* Marks the request as one without a configuration, so that a mistake is returned and not noted in it. */
static tn_status growing_emit(tn_build *b, void *user) {
  (void)b, (void)user;
  return TN_OK;
}

static tn_status growing_begin(tn_growing *g) {
  TN_TRY(tn_graph_create(g->env, g->request.ops, &g->graph));
  TN_TRY(tn_builder_create(g->graph, &g->assembly.builder));
  g->assembly.b = tn_builder_handle(g->assembly.builder);
  return TN_OK;
}

tn_status tn_growing_create(tn_env *env, tn_registry *registry, struct tn_op_table *ops, int64_t batch,
                            tn_growing **made) {
  tn_growing *g = *made = tn_alloc(env, sizeof *g);
  if (g == NULL) return TN_ENOMEM;
  g->env = env;
  g->ini = (tn_ini){.path = "", .folder = ".", .arena = tn_arena_new(env)};
  g->request = (tn_model_request){
      .ini = &g->ini, .registry = registry, .ops = ops, .batch = batch, .emit = growing_emit};
  g->assembly = (tn_assembly){.env = env, .request = &g->request, .arena = tn_arena_new(env)};
  g->assembly.module_paths = tn_name_index_new(env);
  g->scope = tn_scope_new(&g->assembly);
  g->scope.data = g->assembly.data = &g->scope;
  tn_status status = growing_begin(g);
  if (status == TN_OK) return TN_OK;
  tn_growing_destroy(g);
  *made = NULL;
  return status;
}

void tn_growing_destroy(tn_growing *g) {
  if (g == NULL) return;
  tn_scope_free(&g->scope);
  tn_builder_destroy(g->assembly.builder);
  tn_graph_destroy(g->graph);
  tn_vec_free(g->env, &g->assembly.modules);
  tn_name_index_free(&g->assembly.module_paths);
  tn_blocks_free(&g->assembly);
  tn_arena_free(&g->assembly.arena);
  tn_arena_free(&g->ini.arena);
  tn_release(g->env, g);
}

tn_status tn_growing_input(tn_growing *g, const char *name, const tn_type *type) {
  tn_val value = tn_model_field(&g->assembly, name, type);
  const char *kept = tn_arena_strdup(&g->assembly.arena, name);
  if (value == 0) return tn_build_status(g->assembly.b);
  if (kept == NULL) return TN_ENOMEM;
  TN_TRY(tn_scope_bind(&g->scope, kept, value, "inputs"));
  if (g->scope.has_in) return TN_OK;
  g->scope.in = g->scope.last = value;
  g->scope.has_in = true;
  return TN_OK;
}

tn_status tn_growing_line(tn_growing *g, const char *text) {
  tn_arena *arena = &g->assembly.arena;
  tn_line *line = tn_arena_alloc(arena, sizeof *line);
  const char *kept = tn_arena_strdup(arena, text);
  if (line == NULL || kept == NULL) return TN_ENOMEM;
  tn_status status = tn_syntax_line(g->env, arena, kept, "line", ++g->lines, line);
  if (status == TN_OK) status = tn_scope_run(&g->scope, line, 1);
  if (status != TN_OK) tn_builder_recover(g->assembly.b);
  return status;
}

const tn_type *tn_growing_type(const tn_growing *g, const char *name) {
  int64_t i = tn_name_index_find(&g->scope.names, name);
  if (i == TN_NAME_INDEX_NONE || g->scope.values.v[i] == 0) return NULL;
  return tn_graph_type(g->graph, g->scope.values.v[i]);
}
