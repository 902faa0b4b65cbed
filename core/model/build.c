/* core/model/build.c: builds the graph of [model]: inputs, layers, losses and metrics. */
#include "core/model/from_function.h"

#include <string.h>

static tn_status model_bind_fields(tn_model_scope *scope, const tn_signature_field *fields, int32_t n) {
  tn_assembly *a = scope->assembly;
  for (int32_t i = 0; i < n; i++) {
    if (tn_name_index_find(&scope->names, fields[i].name) != TN_NAME_INDEX_NONE && a->reads_targets) continue;
    tn_val value = tn_model_field(a, fields[i].name, &fields[i].type);
    if (value == 0) return tn_build_status(a->b);
    const char *name = tn_arena_strdup(&a->arena, fields[i].name);
    if (name == NULL) return TN_ENOMEM;
    TN_TRY(tn_scope_bind(scope, name, value, a->request->ini->path));
  }
  return TN_OK;
}

static tn_status model_build_layers(tn_model_scope *scope, tn_section *section) {
  tn_assembly *a = scope->assembly;
  tn_key *key = tn_section_key(section, "layers");
  tn_line *lines;
  int32_t n;
  if (key == NULL)
    return tn_failf(a->env, TN_EINVAL, "%s: [model] has no `layers`, expected a layer a line",
                    tn_key_where(a->request->ini, section, NULL));
  key->used = true;
  TN_TRY(tn_syntax_lines(a->env, &a->arena, key, a->request->ini, &lines, &n));
  return tn_scope_run(scope, lines, n);
}

/* Marks the keys that a particular build may skip as used. */
static void model_mark_known_keys(tn_section *section) {
  static const char *const known[] = {"inputs", "targets", "layers", "loss", "metrics"};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    tn_key *key = tn_section_key(section, known[i]);
    if (key != NULL) key->used = true;
  }
}

/* The name of a target that the value depends on, or NULL. */
static tn_status model_find_target(const tn_assembly *a, tn_val value, const char **target) {
  const tn_graph *g = tn_builder_graph(a->b);
  bool *reached = tn_alloc(a->env, g->values.n + 1);
  *target = NULL;
  if (reached == NULL) return TN_ENOMEM;
  reached[value] = true;
  for (tn_val v = value; v > 0; v--) {
    const tn_gnode *maker = tn_graph_maker(g, v);
    for (int32_t i = 0; reached[v] && i < maker->n_in; i++) reached[maker->in[i]] = true;
  }
  for (int32_t i = 0; i < a->signature->n_targets; i++) {
    const char *name = a->signature->targets[i].name;
    int64_t found = tn_name_index_find(&a->data->names, name);
    if (found != TN_NAME_INDEX_NONE && reached[a->data->values.v[found]]) *target = name;
  }
  tn_release(a->env, reached);
  return TN_OK;
}

/* Prediction has no targets, so its output depends on none. */
static tn_status model_check_output(const tn_model_scope *scope, tn_section *section) {
  tn_assembly *a = scope->assembly;
  const char *target = NULL;
  if (!a->reads_targets || a->lost) return TN_OK;
  if (scope->last != 0) TN_TRY(model_find_target(a, scope->last, &target));
  if (scope->last != 0 && target == NULL) return TN_OK;
  return tn_failf(a->env, TN_EINVAL,
                  "%s: [model] layers: the value of the last line is the output of the model, and depends on "
                  "%s%s%s, which prediction lacks; expected the line of the output last",
                  tn_key_where(a->request->ini, section, tn_section_key(section, "layers")),
                  target != NULL ? "the target '" : "a target", target != NULL ? target : "",
                  target != NULL ? "'" : "");
}

static tn_status model_build_parts(tn_model_scope *scope, tn_model *model) {
  tn_assembly *a = scope->assembly;
  tn_signature signature;
  if (a->request->emit != NULL) return tn_model_function_build(scope, model);
  tn_section *section = tn_ini_section(a->request->ini, "model");
  if (section != NULL) model_mark_known_keys(section);
  TN_TRY(tn_signature_read(a->env, &a->arena, a->request->ini, &signature));
  TN_TRY(model_bind_fields(scope, signature.inputs, signature.n_inputs));
  scope->in = scope->last = scope->values.v[0];
  scope->has_in = true;
  a->signature = &signature;
  TN_TRY(model_build_layers(scope, section));
  TN_TRY(model_check_output(scope, section));
  if (scope->last != 0) TN_TRY(tn_graph_output(tn_builder_graph(a->b), "output", scope->last));
  if (!a->request->measured) return TN_OK;
  TN_TRY(model_bind_fields(scope, signature.targets, signature.n_targets));
  return tn_objective_build(scope, section, &signature, model);
}

static tn_status model_prepare_inputs(tn_assembly *a, tn_model *model) {
  const tn_prepared_inputs *prepared = a->request->prepared;
  tn_status status = prepared != NULL ? prepared->emit(a->b, a->request) : TN_OK;
  model->first_value = (tn_val)model->graph->values.n;
  return status;
}

static tn_status model_run_builder(tn_assembly *a, tn_model *model) {
  tn_model_scope scope = tn_scope_new(a);
  scope.data = a->data = &scope;
  TN_TRY(tn_builder_create(model->graph, &a->builder));
  a->b = tn_builder_handle(a->builder);
  tn_status status = tn_blocks_find(a);
  if (status == TN_OK) status = model_prepare_inputs(a, model);
  if (status == TN_OK) status = model_build_parts(&scope, model);
  tn_scope_free(&scope);
  tn_builder_destroy(a->builder);
  return status;
}

tn_status tn_model_build(tn_env *env, const tn_model_request *request, tn_model *model) {
  memset(model, 0, sizeof *model);
  model->arena = tn_arena_new(env);
  tn_assembly a = {.env = env, .request = request, .arena = tn_arena_new(env)};
  a.module_paths = tn_name_index_new(env);
  int32_t noted = request->ini->mistakes.noted;
  tn_status status = tn_graph_create(env, request->ops, &model->graph);
  if (status == TN_OK) {
    model->graph->freeze = request->training ? request->freeze : NULL;
    model->graph->epoch = request->epoch;
    model->graph->ranks = request->ranks > 1 ? request->ranks : 1;
    model->graph->micro_batches = request->micro_batches > 1 ? request->micro_batches : 1;
    status = model_run_builder(&a, model);
  }
  if (request->emit == NULL) status = tn_ini_note(env, request->ini, status);
  if (status == TN_OK && request->emit == NULL && request->ini->mistakes.noted > noted)
    status = tn_ini_tell(env, request->ini);
  tn_vec_free(env, &a.modules);
  tn_name_index_free(&a.module_paths);
  tn_blocks_free(&a);
  tn_arena_free(&a.arena);
  if (status != TN_OK) tn_model_free(model);
  return status;
}

void tn_model_free(tn_model *model) {
  tn_graph_destroy(model->graph);
  tn_arena_free(&model->arena);
  memset(model, 0, sizeof *model);
}
