/* core/model/outputs.c: the outputs of the model: the values that [model] outputs names, else that of the
 * last line. */
#include "core/model/assemble.h"

#include <string.h>

/* The name of a target that the value depends on, or NULL. */
static tn_status output_find_target(const tn_assembly *a, tn_val value, const char **target) {
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

/* Prediction has no targets, so its outputs depend on none. `what` names the output. */
static tn_status output_check_targets(const tn_model_scope *scope, tn_val value, const char *what,
                                      const char *remedy) {
  tn_assembly *a = scope->assembly;
  const char *target = NULL;
  if (!a->reads_targets || a->lost) return TN_OK;
  if (value != 0) TN_TRY(output_find_target(a, value, &target));
  if (value != 0 && target == NULL) return TN_OK;
  return tn_failf(a->env, TN_EINVAL, "%s, and depends on %s%s%s, which prediction lacks; %s", what,
                  target != NULL ? "the target '" : "a target", target != NULL ? target : "",
                  target != NULL ? "'" : "", remedy);
}

static tn_status output_of_last_line(const tn_model_scope *scope, tn_section *section) {
  tn_assembly *a = scope->assembly;
  tn_status status =
      output_check_targets(scope, scope->last, "the value of the last line is the output of the model",
                           "expected the line of the output last, or its name in `outputs`");
  if (status != TN_OK)
    return tn_wrap(a->env, status, "%s: [model] layers",
                   tn_key_where(a->request->ini, section, tn_section_key(section, "layers")));
  return scope->last != 0 ? tn_graph_output(tn_builder_graph(a->b), "output", scope->last) : TN_OK;
}

/* ---- named outputs ---- */

/* Programs have outputs of these names, and NAME.sum and NAME.weight of losses and metrics. */
static bool output_is_reserved(const char *name) {
  static const char *const names[] = {"loss", "grad_norm", "loss_scale", "skipped"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (tn_text_equal(name, names[i])) return true;
  return strchr(name, '.') != NULL;
}

static bool output_is_input(const tn_assembly *a, const char *name) {
  for (int32_t i = 0; i < a->signature->n_inputs; i++)
    if (tn_text_equal(a->signature->inputs[i].name, name)) return true;
  return false;
}

static tn_status output_check_name(const tn_assembly *a, const tn_line *line, int32_t i) {
  const char *name = line->refs[i];
  if (line->operands[i] != NULL)
    return tn_failf(
        a->env, TN_EINVAL,
        "'%s' is an expression, expected the name of a line; write `y = %s` in layers and `y` here", name,
        name);
  if (output_is_input(a, name))
    return tn_failf(
        a->env, TN_EINVAL,
        "'%s' is an input of the model, expected the name of a line; write `y = %s` in layers and "
        "`y` here",
        name, name);
  if (output_is_reserved(name))
    return tn_failf(a->env, TN_EINVAL,
                    "'%s' cannot name an output, expected a name without dots other than loss, grad_norm, "
                    "loss_scale and skipped; write `y = %s` in layers and `y` here",
                    name, name);
  for (int32_t k = 0; k < i; k++)
    if (tn_text_equal(line->refs[k], name))
      return tn_failf(a->env, TN_EINVAL, "'%s' stands there twice, expected each output once", name);
  return TN_OK;
}

static tn_status output_add(tn_model_scope *scope, const tn_line *line, int32_t i) {
  tn_assembly *a = scope->assembly;
  tn_val value = 0;
  TN_TRY(output_check_name(a, line, i));
  TN_TRY(tn_scope_resolve(scope, line->refs[i], &value));
  const char *what = tn_arena_printf(&a->arena, "'%s' is an output of the model", line->refs[i]);
  TN_TRY(output_check_targets(scope, value, what != NULL ? what : "an output",
                              "expected values that depend on inputs alone"));
  if (i == 0) scope->last = value;
  return value != 0 ? tn_graph_output(tn_builder_graph(a->b), line->refs[i], value) : TN_OK;
}

/* Losses read the first output. */
static tn_status outputs_of_names(tn_model_scope *scope, tn_section *section) {
  tn_line line;
  TN_TRY(tn_block_line(scope->assembly, section, "outputs", "names <- ", "", &line));
  if (line.condition != NULL)
    return tn_failf(scope->assembly->env, TN_EINVAL, "there is an `if`, expected names of lines, as in a, b");
  for (int32_t i = 0; i < line.n_refs; i++) TN_TRY(output_add(scope, &line, i));
  return TN_OK;
}

tn_status tn_model_outputs_build(tn_model_scope *scope, tn_section *section) {
  tn_assembly *a = scope->assembly;
  tn_key *key = tn_section_key(section, "outputs");
  if (key == NULL || key->value[0] == '\0') return output_of_last_line(scope, section);
  tn_status status = outputs_of_names(scope, section);
  if (status == TN_OK) return TN_OK;
  scope->last = 0;
  status =
      tn_error_add_context(a->env, status, tn_key_where(a->request->ini, section, key), "[model] outputs");
  a->met_unknown = false;
  return tn_scope_note(scope, status);
}
