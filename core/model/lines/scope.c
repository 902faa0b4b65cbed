/* core/model/lines/scope.c: the named values and arguments that the lines of a model or block see. */
#include "core/model/assemble.h"

#include <string.h>

tn_model_scope tn_scope_new(tn_assembly *assembly) {
  return (tn_model_scope){
      .assembly = assembly, .prefix = "", .own_prefix = "", .names = tn_name_index_new(assembly->env)};
}

void tn_scope_free(tn_model_scope *scope) {
  tn_name_index_free(&scope->names);
  tn_vec_free(scope->assembly->env, &scope->values);
}

static const char *scope_join(const tn_model_scope *scope, const char *prefix, const char *name) {
  tn_arena *arena = &scope->assembly->arena;
  return *prefix != '\0' ? tn_arena_printf(arena, "%s.%s", prefix, name) : tn_arena_strdup(arena, name);
}

const char *tn_scope_path(const tn_model_scope *scope, const char *name) {
  return scope_join(scope, scope->prefix, name);
}

const char *tn_scope_own_path(const tn_model_scope *scope, const char *name) {
  return scope_join(scope, scope->own_prefix, name);
}

tn_status tn_scope_bind(tn_model_scope *scope, const char *name, tn_val value, const char *where) {
  tn_env *env = scope->assembly->env;
  if (tn_text_equal(name, "in"))
    return tn_failf(env, TN_EINVAL, "%s: 'in' is the input of a block and cannot name a layer", where);
  bool taken = tn_name_index_find(&scope->names, name) != TN_NAME_INDEX_NONE ||
               tn_scope_find_argument(scope, name) >= scope->n_args - scope->n_numbers;
  if (taken) return tn_failf(env, TN_EINVAL, "%s: the name '%s' is taken, expected a new one", where, name);
  TN_TRY(tn_vec_reserve(env, &scope->values, scope->values.n + 1));
  TN_TRY(tn_name_index_add(&scope->names, name));
  scope->values.v[scope->values.n++] = value;
  return TN_OK;
}

int32_t tn_scope_find_argument(const tn_model_scope *scope, const char *name) {
  for (int32_t i = 0; i < scope->n_args; i++)
    if (tn_text_equal(scope->arg_names[i], name)) return i;
  return -1;
}

static const tn_signature_field *scope_find_target(const tn_assembly *a, const char *name) {
  for (int32_t i = 0; a->signature != NULL && i < a->signature->n_targets; i++)
    if (tn_text_equal(a->signature->targets[i].name, name)) return &a->signature->targets[i];
  return NULL;
}

static bool scope_is_of_targets(const tn_assembly *a, const char *name) {
  return a->signature != NULL && (tn_text_equal(name, "sample.weight") || scope_find_target(a, name) != NULL);
}

/* A target, or the weights of the samples, for a line of the layers. Prediction has neither: the value is 0,
 * as behind a line that is wrong, and lines that depend on it are left out. */
static tn_status scope_resolve_target(tn_assembly *a, const char *name, tn_val *value) {
  const tn_signature_field *target = scope_find_target(a, name);
  *value = 0;
  a->reads_targets = true;
  if (!a->request->measured) return TN_OK;
  *value = target != NULL ? tn_model_field(a, name, &target->type) : tn_model_sample_weight(a);
  if (*value == 0) return target != NULL ? tn_build_status(a->b) : TN_ENOMEM;
  return tn_scope_bind(a->data, tn_arena_strdup(&a->arena, name), *value, a->request->ini->path);
}

/* The nearest name in the scope or, of fields, among the targets. */
static const char *scope_nearest(const tn_model_scope *scope, const char *ref, bool of_data) {
  const tn_signature *signature = scope->assembly->signature;
  const char *nearest = tn_text_nearest(ref, scope->names.names.v, scope->names.names.n);
  for (int32_t i = 0; nearest == NULL && of_data && signature != NULL && i < signature->n_targets; i++)
    nearest = tn_text_nearest(ref, &signature->targets[i].name, 1);
  return nearest;
}

/* The length of `x` in `x.shape`, as PyTorch has it, of a value x; else 0. */
static int scope_shape_of(const tn_model_scope *scope, const char *ref) {
  const char *dot = strrchr(ref, '.');
  if (dot == NULL || !tn_text_equal(dot, ".shape")) return 0;
  const char *value = tn_arena_printf(&scope->assembly->arena, "%.*s", (int)(dot - ref), ref);
  return value != NULL && tn_scope_has(scope, value) ? (int)(dot - ref) : 0;
}

static tn_status scope_fail_unknown_name(const tn_model_scope *scope, const char *ref, bool of_data) {
  int shape_of = of_data ? 0 : scope_shape_of(scope, ref);
  if (shape_of > 0)
    return tn_failf(scope->assembly->env, TN_EINVAL,
                    "there is no value '%s' here, expected dims(%.*s), the list of its dimensions", ref,
                    shape_of, ref);
  const char *nearest = scope_nearest(scope, ref, of_data);
  return tn_failf(
      scope->assembly->env, TN_EINVAL, "there is no value '%s%s' here%s%s%s%s", of_data ? "data." : "", ref,
      nearest != NULL ? ", did you mean '" : ", expected the name of an earlier line or 'in'",
      nearest != NULL && of_data ? "data." : "", nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
}

tn_status tn_scope_resolve(const tn_model_scope *scope, const char *ref, tn_val *value) {
  const tn_model_scope *where = scope;
  *value = 0;
  if (tn_text_equal(ref, "in") && scope->has_in) {
    *value = scope->in;
    return TN_OK;
  }
  bool of_data = tn_text_starts(ref, "data.");
  if (of_data) {
    where = scope->data;
    ref += strlen("data.");
  }
  int64_t found = tn_name_index_find(&where->names, ref);
  if (found == TN_NAME_INDEX_NONE && of_data && scope_is_of_targets(scope->assembly, ref))
    return scope_resolve_target(scope->assembly, ref, value);
  if (found == TN_NAME_INDEX_NONE && scope->assembly->lost_names) return TN_OK;
  int32_t number = found == TN_NAME_INDEX_NONE ? tn_scope_find_argument(where, ref) : -1;
  if (number >= 0)
    return tn_failf(scope->assembly->env, TN_EINVAL,
                    "'%s' is no value here, but '%s', expected the name of a value", ref,
                    tn_value_text(&scope->assembly->arena, &where->arg_values[number]));
  if (found == TN_NAME_INDEX_NONE) return scope_fail_unknown_name(where, ref, of_data);
  *value = where->values.v[found];
  return TN_OK;
}

bool tn_scope_has(const tn_model_scope *scope, const char *ref) {
  if (tn_text_equal(ref, "in")) return scope->has_in;
  if (tn_text_starts(ref, "data.")) {
    ref += strlen("data.");
    return tn_name_index_find(&scope->data->names, ref) >= 0 || scope_is_of_targets(scope->assembly, ref);
  }
  return tn_name_index_find(&scope->names, ref) != TN_NAME_INDEX_NONE;
}

static bool scope_dim(void *context, const char *ref, int64_t axis, int64_t *size) {
  const tn_model_scope *scope = context;
  tn_val value = 0;
  if (tn_scope_resolve(scope, ref, &value) != TN_OK) return false;
  if (value == 0) scope->assembly->met_unknown = true;
  if (value == 0) return false;
  const tn_type *type = tn_val_type(scope->assembly->b, value);
  if (axis < 0) axis += type->rank;
  if (axis < 0 || axis >= type->rank) return false;
  *size = type->dims[axis];
  return true;
}

static int32_t scope_rank(void *context, const char *ref) {
  const tn_model_scope *scope = context;
  tn_val value = 0;
  if (tn_scope_resolve(scope, ref, &value) != TN_OK) return -1;
  if (value == 0) scope->assembly->met_unknown = true;
  return value != 0 ? tn_val_type(scope->assembly->b, value)->rank : -1;
}

/* A word may be the name of a line that is wrong, whose number is unknown. */
static void scope_word(void *context, const char *word) {
  const tn_model_scope *scope = context;
  tn_assembly *a = scope->assembly;
  int64_t found = tn_name_index_find(&scope->names, word);
  if (found != TN_NAME_INDEX_NONE && scope->values.v[found] == 0) a->met_unknown = true;
}

tn_scope tn_scope_names(const tn_model_scope *scope) {
  return (tn_scope){.names = scope->arg_names,
                    .values = scope->arg_values,
                    .n = scope->n_args,
                    .dim = scope_dim,
                    .rank = scope_rank,
                    .word = scope_word,
                    .context = (void *)(uintptr_t)scope};
}

tn_status tn_scope_evaluate(const tn_model_scope *scope, const tn_expr *expr, tn_value *value) {
  tn_scope names = tn_scope_names(scope);
  return tn_expr_evaluate(scope->assembly->env, &scope->assembly->arena, expr, &names, value);
}

tn_status tn_scope_holds(const tn_model_scope *scope, const tn_expr *condition, bool *holds) {
  tn_scope names = tn_scope_names(scope);
  return tn_expr_holds(scope->assembly->env, &scope->assembly->arena, condition, &names, holds);
}

tn_status tn_scope_refuse_argument(const tn_model_scope *scope, const char *name) {
  if (tn_scope_find_argument(scope, name) < 0) return TN_OK;
  return tn_failf(scope->assembly->env, TN_EINVAL, "'%s' is %s already, expected a new name", name,
                  scope->outer != NULL ? "an argument of the block or a number" : "a number");
}

tn_status tn_scope_define(tn_model_scope *scope, const char *name, const tn_value *value) {
  tn_assembly *a = scope->assembly;
  size_t n = (size_t)scope->n_args;
  if (tn_scope_has(scope, name) || tn_text_equal(name, "in"))
    return tn_failf(a->env, TN_EINVAL, "the name '%s' is taken, expected a new one", name);
  const char **names = tn_arena_grow(&a->arena, scope->arg_names, n, sizeof *names);
  tn_value *values = tn_arena_grow(&a->arena, scope->arg_values, n, sizeof *values);
  if (names == NULL || values == NULL) return TN_ENOMEM;
  names[n] = name;
  values[n] = *value;
  scope->arg_names = names;
  scope->arg_values = values;
  scope->n_args++;
  scope->n_numbers++;
  return TN_OK;
}
