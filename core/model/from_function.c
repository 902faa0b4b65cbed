/* core/model/from_function.c: a model that a function emits (tenon/model.h). It meets the model language
 * where single layers do: tn_build_layer's lines are applied like those of a configuration. */
#include "core/model/from_function.h"

#include <string.h>

#include "tenon/model.h"

static const char here[] = "model"; /* where things go wrong, in place of file and line */

typedef struct emitted {
  tn_model_scope *scope;
  TN_VEC(tn_given_measure) measures;
  int32_t unnamed; /* layers so far */
} emitted;

/* ---- layers ---- */

static tn_status parse_call(tn_assembly *a, const char *text, tn_line *line) {
  TN_TRY(tn_syntax_line(a->env, &a->arena, text, here, 0, line));
  if (line->n_items == 1 && line->n_names + line->n_refs == 0 && line->condition == NULL &&
      line->items[0].repeat == NULL)
    return TN_OK;
  return tn_failf(a->env, TN_EINVAL, "tn_build_layer(\"%s\"): expected a single call such as linear(128)",
                  text);
}

/* Paths are unique, as in a configuration. */
static tn_status note_module(emitted *e, const tn_use *use) {
  tn_assembly *a = e->scope->assembly;
  for (size_t i = 0; i < a->modules.n; i++)
    if (tn_text_equal(a->modules.v[i].path, use->path))
      return tn_failf(a->env, TN_EINVAL, "tn_build_layer: '%s' is the name of an earlier layer; take another",
                      use->path);
  tn_module module = {use->path, use->call, e->scope};
  return tn_vec_push(a->env, &a->modules, module);
}

static tn_status apply(emitted *e, const char *name, const char *text, const tn_val *in, int32_t n,
                       tn_results *results) {
  tn_assembly *a = e->scope->assembly;
  tn_line *line = tn_arena_alloc(&a->arena, sizeof *line);
  bool named = name != NULL && name[0] != '\0';
  if (line == NULL) return TN_ENOMEM;
  TN_TRY(parse_call(a, text, line));
  /* random streams hang on the path, so that of an unnamed layer is its number */
  const char *path =
      named ? tn_arena_strdup(&a->arena, name)
            : tn_arena_printf(&a->arena, "%s@%d", line->items[0].layer ? line->items[0].layer : "shared",
                              e->unnamed++);
  if (path == NULL) return TN_ENOMEM;
  tn_use use = {.call = &line->items[0], .path = path, .named = named, .where = here, .in = in, .n_in = n};
  TN_TRY(tn_use_apply(e->scope, &use, results));
  return named && line->items[0].shared == NULL ? note_module(e, &use) : TN_OK;
}

static tn_val layer(tn_build *b, void *context, const char *name, const char *text, const tn_val *in,
                    int32_t n) {
  tn_results results = {{0}, 0};
  if (tn_build_status(b) != TN_OK) return 0;
  tn_status status = apply(context, name, text, in, n, &results);
  if (status != TN_OK) tn_builder_fail(b, status);
  tn_builder_results(b, results.v, results.n);
  return results.v[0];
}

/* ---- what the function calls ---- */

/* NULL, with the failure stuck, where the builder is not that of a model's function. */
static emitted *model_of(tn_build *b, const char *call) {
  if (tn_build_status(b) != TN_OK) return NULL;
  const tn_build_frame *frame = tn_builder_frame(b);
  if (frame->layer == layer) return frame->context;
  tn_builder_fail(b,
                  tn_failf(b, TN_EINVAL, "%s is for the function of a model alone, see tenon/model.h", call));
  return NULL;
}

static tn_val fail(tn_build *b, tn_status status) {
  tn_builder_fail(b, status);
  return 0;
}

static tn_val field(emitted *e, tn_build *b, const char *name, const tn_type *type) {
  if (type->rank < 0 || type->rank >= TN_MAX_RANK)
    return fail(b, tn_failf(b, TN_EINVAL, "'%s' has rank %d, expected 0 to %d without the batch", name,
                            (int)type->rank, TN_MAX_RANK - 1));
  tn_type whole = {type->dtype, type->rank + 1, {e->scope->assembly->request->batch}};
  memcpy(whole.dims + 1, type->dims, (size_t)type->rank * sizeof *type->dims);
  tn_val value = tn_graph_input(tn_builder_graph(b), name, &whole);
  return value != 0 ? value : fail(b, tn_builder_graph(b)->env->record->code);
}

tn_val tn_model_input(tn_build *b, const char *name, const tn_type *type) {
  emitted *e = model_of(b, "tn_model_input");
  return e != NULL ? field(e, b, name, type) : 0;
}

tn_val tn_model_target(tn_build *b, const char *name, const tn_type *type) {
  emitted *e = model_of(b, "tn_model_target");
  if (e == NULL) return 0;
  if (e->scope->assembly->request->measured) return field(e, b, name, type);
  return fail(b, tn_failf(b, TN_EINVAL,
                          "tn_model_target(\"%s\"): inference has no targets; ask tn_model_measured first",
                          name));
}

void tn_model_output(tn_build *b, const char *name, tn_val value) {
  emitted *e = model_of(b, "tn_model_output");
  if (e == NULL) return;
  if (strchr(name, '.') != NULL || tn_text_equal(name, "loss"))
    fail(b,
         tn_failf(b, TN_EINVAL, "tn_model_output: '%s' is a name of losses and metrics; take another", name));
  else if (tn_graph_find_output(tn_builder_graph(b), name) != 0)
    fail(b, tn_failf(b, TN_EINVAL, "tn_model_output: there is an output '%s' already", name));
  else
    tn_builder_fail(b, tn_graph_output(tn_builder_graph(b), name, value));
}

int32_t tn_model_measured(tn_build *b) {
  const emitted *e = model_of(b, "tn_model_measured");
  return e != NULL && e->scope->assembly->request->measured;
}

static void add_measure(emitted *e, tn_build *b, const char *line, bool is_loss, const tn_val *in,
                        int32_t n) {
  tn_given_measure m = {.is_loss = is_loss, .in = {.n = n}};
  if (n < 1 || n > TN_MAX_YIELDS) {
    fail(b, tn_failf(b, TN_EINVAL, "'%s' on %d values, expected 1 to %d", line, (int)n, TN_MAX_YIELDS));
    return;
  }
  memcpy(m.in.v, in, (size_t)n * sizeof *in);
  m.line = tn_arena_strdup(&e->scope->assembly->arena, line);
  tn_builder_fail(b, m.line != NULL ? tn_vec_push(b, &e->measures, m) : TN_ENOMEM);
}

void tn_model_loss(tn_build *b, const char *line, const tn_val *in, int32_t n) {
  emitted *e = model_of(b, "tn_model_loss");
  if (e != NULL && e->scope->assembly->request->measured) add_measure(e, b, line, true, in, n);
}

void tn_model_metric(tn_build *b, const char *line, const tn_val *in, int32_t n) {
  emitted *e = model_of(b, "tn_model_metric");
  if (e != NULL && e->scope->assembly->request->measured) add_measure(e, b, line, false, in, n);
}

void tn_model_loss_value(tn_build *b, const char *name, tn_val value, tn_val weight, double factor) {
  emitted *e = model_of(b, "tn_model_loss_value");
  if (e == NULL || !e->scope->assembly->request->measured) return;
  tn_given_measure m = {.factor = factor, .is_loss = true, .in = {{value, weight}, weight != 0 ? 2 : 1}};
  m.name = tn_arena_strdup(&e->scope->assembly->arena, name);
  tn_builder_fail(b, m.name != NULL ? tn_vec_push(b, &e->measures, m) : TN_ENOMEM);
}

/* ---- the whole ---- */

static tn_status call_function(emitted *e) {
  const tn_model_request *request = e->scope->assembly->request;
  tn_build *b = e->scope->assembly->b;
  tn_build_frame frame = {.prefix = "",
                          .where = here,
                          .training = request->training,
                          .seed = request->seed,
                          .context = e,
                          .layer = layer};
  tn_builder_push(b, &frame);
  tn_error_clear(b);
  tn_status status = request->emit(b, request->user);
  if (status != TN_OK && tn_build_status(b) == TN_OK)
    tn_builder_fail(b, *tn_error_text(b) ? status : tn_failf(b, status, "the function has failed"));
  status = tn_build_status(b);
  tn_builder_pop(b);
  return status;
}

static tn_status finish(emitted *e, tn_model *model) {
  tn_assembly *a = e->scope->assembly;
  if (tn_graph_find_output(model->graph, "output") == 0)
    return tn_failf(a->env, TN_EINVAL,
                    "the function names no result; expected tn_model_output(b, \"output\", ...)");
  if (!a->request->measured) return TN_OK;
  return tn_objective_given(e->scope, e->measures.v, (int32_t)e->measures.n, model);
}

tn_status tn_emitted_build(tn_model_scope *scope, tn_model *model) {
  emitted e = {.scope = scope};
  tn_status status = call_function(&e);
  if (status == TN_OK) status = finish(&e, model);
  tn_vec_free(scope->assembly->env, &e.measures);
  return status == TN_OK ? TN_OK : tn_place_error(scope->assembly->env, status, here, "");
}
