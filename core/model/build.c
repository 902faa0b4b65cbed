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
  static const char *const known[] = {"inputs", "targets", "lengths", "sizes",
                                      "layers", "outputs", "loss",    "metrics"};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    tn_key *key = tn_section_key(section, known[i]);
    if (key != NULL) key->used = true;
  }
}

/* A word without sizes, or sizes without a word. */
static tn_status model_refuse_word(const tn_assembly *a, const char *where, const tn_signature *signature) {
  if (signature->word == NULL && signature->sizes)
    return tn_failf(a->env, TN_EINVAL,
                    "%s: [model] sizes: no dimension of inputs is " TN_SIZE_NAME ", expected one, as in "
                    "image: f32[3, size, size]",
                    where);
  if (signature->word == NULL)
    return tn_failf(a->env, TN_EINVAL,
                    "%s: [model] lengths: no dimension of inputs varies, expected a word in one, as in "
                    "x: f32[n, 80]",
                    where);
  return tn_failf(a->env, TN_EINVAL,
                  "%s: [model] inputs: the dimension '%s' varies, expected the sizes to compile for, as in "
                  "lengths = 64, 128, 256",
                  where, signature->word);
}

/* The dimension that varies has the size of this program. Its word is a number in the lines of the model. */
static tn_status model_size_fields(tn_model_scope *scope, tn_section *section, tn_signature *signature) {
  const tn_assembly *a = scope->assembly;
  const int64_t length =
      a->request->length > 0 ? a->request->length : 1; /* 0: lengths is wrong, which is told */
  tn_key *key = tn_section_key(section, signature->sizes ? "sizes" : "lengths");
  if (key != NULL && key->value[0] == '\0') key = NULL; /* as without it */
  const char *where =
      tn_key_where(a->request->ini, section, key != NULL ? key : tn_section_key(section, "inputs"));
  if (signature->word == NULL && key == NULL) return TN_OK;
  if (signature->word == NULL || key == NULL) return model_refuse_word(a, where, signature);
  for (int32_t i = 0; i < signature->n_inputs; i++)
    if (tn_text_equal(signature->inputs[i].name, signature->word))
      return tn_failf(
          a->env, TN_EINVAL, "%s: [model] inputs: '%s' is an input and a dimension, expected two names",
          tn_key_where(a->request->ini, section, tn_section_key(section, "inputs")), signature->word);
  tn_signature_size(signature, length);
  const tn_value number = {.kind = TN_VALUE_NUMBER, .number = (double)length, .is_integer = true};
  return tn_wrap(a->env, tn_scope_define(scope, signature->word, &number), "%s: [model] inputs", where);
}

static tn_status model_build_parts(tn_model_scope *scope, tn_model *model) {
  tn_assembly *a = scope->assembly;
  tn_signature signature;
  if (a->request->emit != NULL) return tn_model_function_build(scope, model);
  tn_section *section = tn_ini_section(a->request->ini, "model");
  if (section != NULL) model_mark_known_keys(section);
  TN_TRY(tn_signature_read(a->env, &a->arena, a->request->ini, &signature));
  TN_TRY(model_size_fields(scope, section, &signature));
  TN_TRY(model_bind_fields(scope, signature.inputs, signature.n_inputs));
  scope->in = scope->last = scope->values.v[0];
  scope->has_in = true;
  a->signature = &signature;
  TN_TRY(model_build_layers(scope, section));
  TN_TRY(tn_model_outputs_build(scope, section));
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
