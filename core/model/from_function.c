/* core/model/from_function.c: models that a function of the application emits (tenon/model.h). Layers from
 * tn_build_layer are applied like those of a configuration line. */
#include "core/model/from_function.h"

#include <string.h>

#include "tenon/model.h"

static const char model_function_where[] = "model"; /* the context of errors, in place of file and line */

typedef struct model_function {
  tn_model_scope *scope;
  TN_VEC(tn_function_measure) measures;
  int32_t unnamed; /* number of unnamed layers so far */
} model_function;

/* ---- layers ---- */

static tn_status model_function_parse_call(tn_assembly *a, const char *text, tn_line *line) {
  TN_TRY(tn_syntax_line(a->env, &a->arena, text, model_function_where, 0, line));
  if (line->n_items == 1 && line->n_names + line->n_refs == 0 && line->condition == NULL &&
      line->items[0].repeat == NULL)
    return TN_OK;
  return tn_failf(a->env, TN_EINVAL, "tn_build_layer(\"%s\"): expected a single call such as linear(128)",
                  text);
}

/* Records a named layer. Paths are unique, as in a configuration. */
static tn_status model_function_note_module(model_function *e, const tn_use *use) {
  tn_assembly *a = e->scope->assembly;
  if (tn_module_find(a, use->path) != NULL)
    return tn_failf(a->env, TN_EINVAL, "tn_build_layer: '%s' is the name of an earlier layer; take another",
                    use->path);
  tn_module module = {use->path, use->call, e->scope};
  return tn_module_add(a, &module);
}

static tn_status model_function_apply_layer(model_function *e, const char *name, const char *text,
                                            const tn_val *in, int32_t n, tn_results *results) {
  tn_assembly *a = e->scope->assembly;
  tn_line *line = tn_arena_alloc(&a->arena, sizeof *line);
  bool named = name != NULL && name[0] != '\0';
  if (line == NULL) return TN_ENOMEM;
  TN_TRY(model_function_parse_call(a, text, line));
  /* random streams depend on the path, so the path of an unnamed layer is its number */
  const char *path =
      named ? tn_arena_strdup(&a->arena, name)
            : tn_arena_printf(&a->arena, "%s@%d",
                              line->items[0].layer != NULL ? line->items[0].layer : "shared", e->unnamed++);
  if (path == NULL) return TN_ENOMEM;
  tn_use use = {.call = &line->items[0],
                .path = path,
                .named = named,
                .where = model_function_where,
                .in = in,
                .n_in = n};
  TN_TRY(tn_use_apply(e->scope, &use, results));
  return named && line->items[0].shared == NULL ? model_function_note_module(e, &use) : TN_OK;
}

static tn_val model_function_layer(tn_build *b, void *context, const char *name, const char *text,
                                   const tn_val *in, int32_t n) {
  tn_results results = {{0}, 0};
  if (tn_build_status(b) != TN_OK) return 0;
  tn_status status = model_function_apply_layer(context, name, text, in, n, &results);
  if (status != TN_OK) tn_builder_fail(b, status);
  tn_builder_results(b, results.v, results.n);
  return results.v[0];
}

/* ---- the calls of tenon/model.h ---- */

/* The model being built. NULL with a sticky error if the builder does not belong to a model function. */
static model_function *model_function_of(tn_build *b, const char *call) {
  if (b == NULL || tn_build_status(b) != TN_OK) return NULL;
  const tn_build_frame *frame = tn_builder_frame(b);
  if (frame->layer == model_function_layer) return frame->context;
  tn_builder_fail(
      b, tn_failf(b, TN_EINVAL, "%s works only in the function of a model, see tenon/model.h", call));
  return NULL;
}

static tn_val model_function_fail(tn_build *b, tn_status status) {
  tn_builder_fail(b, status);
  return 0;
}

static tn_val model_function_field(model_function *e, tn_build *b, const char *name, const tn_type *type) {
  if (!tn_builder_need(b, name, "the name of a field") || !tn_builder_need(b, type, "the type of a field"))
    return 0;
  if (type->rank < 0 || type->rank >= TN_MAX_RANK)
    return model_function_fail(b,
                               tn_failf(b, TN_EINVAL, "'%s' has rank %d, expected 0 to %d without the batch",
                                        name, (int)type->rank, TN_MAX_RANK - 1));
  return tn_model_field(e->scope->assembly, name, type);
}

tn_val tn_model_input(tn_build *b, const char *name, const tn_type *type) {
  model_function *e = model_function_of(b, "tn_model_input");
  return e != NULL ? model_function_field(e, b, name, type) : 0;
}

tn_val tn_model_target(tn_build *b, const char *name, const tn_type *type) {
  model_function *e = model_function_of(b, "tn_model_target");
  if (e == NULL) return 0;
  if (e->scope->assembly->request->measured || name == NULL) return model_function_field(e, b, name, type);
  return model_function_fail(
      b, tn_failf(b, TN_EINVAL,
                  "tn_model_target(\"%s\"): inference has no targets; ask tn_model_measured first", name));
}

void tn_model_output(tn_build *b, const char *name, tn_val value) {
  model_function *e = model_function_of(b, "tn_model_output");
  if (e == NULL || !tn_builder_need(b, name, "tn_model_output: name")) return;
  if (strchr(name, '.') != NULL || tn_text_equal(name, "loss"))
    model_function_fail(
        b,
        tn_failf(b, TN_EINVAL, "tn_model_output: '%s' is a name of losses and metrics; take another", name));
  else if (tn_graph_find_output(tn_builder_graph(b), name) != 0)
    model_function_fail(b, tn_failf(b, TN_EINVAL, "tn_model_output: there is an output '%s' already", name));
  else
    tn_builder_fail(b, tn_graph_output(tn_builder_graph(b), name, value));
}

int32_t tn_model_measured(tn_build *b) {
  const model_function *e = model_function_of(b, "tn_model_measured");
  return e != NULL && e->scope->assembly->request->measured;
}

static void model_function_add_measure(model_function *e, tn_build *b, const char *line, bool is_loss,
                                       const tn_val *in, int32_t n) {
  tn_function_measure m = {.is_loss = is_loss, .in = {.n = n}};
  if (!tn_builder_need(b, line, "the line of a loss or metric") ||
      !tn_builder_need(b, in, "the inputs of a loss or metric"))
    return;
  if (n < 1 || n > TN_MAX_YIELDS) {
    model_function_fail(
        b, tn_failf(b, TN_EINVAL, "'%s' on %d values, expected 1 to %d", line, (int)n, TN_MAX_YIELDS));
    return;
  }
  memcpy(m.in.v, in, (size_t)n * sizeof *in);
  m.line = tn_arena_strdup(&e->scope->assembly->arena, line);
  tn_builder_fail(b, m.line != NULL ? tn_vec_push(b, &e->measures, m) : TN_ENOMEM);
}

void tn_model_loss(tn_build *b, const char *line, const tn_val *in, int32_t n) {
  model_function *e = model_function_of(b, "tn_model_loss");
  if (e != NULL && e->scope->assembly->request->measured) model_function_add_measure(e, b, line, true, in, n);
}

void tn_model_metric(tn_build *b, const char *line, const tn_val *in, int32_t n) {
  model_function *e = model_function_of(b, "tn_model_metric");
  if (e != NULL && e->scope->assembly->request->measured)
    model_function_add_measure(e, b, line, false, in, n);
}

void tn_model_loss_value(tn_build *b, const char *name, tn_val value, tn_val weight, double factor) {
  model_function *e = model_function_of(b, "tn_model_loss_value");
  if (e == NULL || !e->scope->assembly->request->measured) return;
  if (!tn_builder_need(b, name, "tn_model_loss_value: name")) return;
  tn_function_measure m = {.factor = factor, .is_loss = true, .in = {{value, weight}, weight != 0 ? 2 : 1}};
  m.name = tn_arena_strdup(&e->scope->assembly->arena, name);
  tn_builder_fail(b, m.name != NULL ? tn_vec_push(b, &e->measures, m) : TN_ENOMEM);
}

/* ---- build ---- */

static tn_status model_function_call(model_function *e) {
  const tn_model_request *request = e->scope->assembly->request;
  tn_build *b = e->scope->assembly->b;
  tn_build_frame frame = {.prefix = "",
                          .where = model_function_where,
                          .training = request->training,
                          .seed = request->seed,
                          .context = e,
                          .layer = model_function_layer};
  tn_builder_push(b, &frame);
  tn_error_clear(b);
  tn_status status = request->emit(b, request->user);
  if (status != TN_OK && tn_build_status(b) == TN_OK)
    tn_builder_fail(b, *tn_error_text(b) != '\0' ? status : tn_failf(b, status, "the function has failed"));
  status = tn_build_status(b);
  tn_builder_pop(b);
  return status;
}

static tn_status model_function_finish(model_function *e, tn_model *model) {
  tn_assembly *a = e->scope->assembly;
  if (tn_graph_find_output(model->graph, "output") == 0)
    return tn_failf(a->env, TN_EINVAL,
                    "the function names no result; expected tn_model_output(b, \"output\", ...)");
  if (!a->request->measured) return TN_OK;
  return tn_objective_from_function(e->scope, e->measures.v, (int32_t)e->measures.n, model);
}

tn_status tn_model_function_build(tn_model_scope *scope, tn_model *model) {
  model_function e = {.scope = scope};
  tn_status status = model_function_call(&e);
  if (status == TN_OK) status = model_function_finish(&e, model);
  tn_vec_free(scope->assembly->env, &e.measures);
  return status == TN_OK ? TN_OK
                         : tn_error_add_context(scope->assembly->env, status, model_function_where, "");
}
