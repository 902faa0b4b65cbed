/* core/model/lines/layer.c: applies one call of the model language: a layer of a plugin, an op, a block, or
 * "@name". */
#include "core/config/options/option_value.h"
#include "core/graph/build/emit_layer.h"
#include "core/graph/op/schema.h"
#include "core/model/assemble.h"
#include "core/plugin/habits.h"

#include <string.h>

/* `name=@path` for a name that is not an option of the layer: ties the parameter of that name to the
 * parameter at `path`. */
typedef struct tn_tie {
  const char *name, *path;
  bool used;
} tn_tie;

typedef struct tn_layer_context {
  const tn_model_scope *scope;
  const tn_use *use;
  tn_tie *ties;
  int32_t n_ties;
  const tn_options *options;
  bool refused; /* an unnamed layer has requested a parameter */
} tn_layer_context;

/* Returns the path of a parameter or state of the layer being built. */
static const char *layer_state_path(void *context, const char *name) {
  tn_layer_context *c = context;
  for (int32_t i = 0; i < c->n_ties; i++) {
    if (!tn_text_equal(c->ties[i].name, name)) continue;
    c->ties[i].used = true;
    return c->ties[i].path;
  }
  if (!c->use->named) c->refused = true;
  return tn_arena_printf(&c->scope->assembly->arena, "%s%s%s", c->use->path, *name != '\0' ? "." : "", name);
}

/* Implements tn_build_option_value. */
static tn_val layer_option_value(tn_build *b, void *context, const char *name) {
  const tn_layer_context *c = context;
  const tn_item *item = c->options->item;
  const tn_option *option = tn_options_find(item, name);
  if (option == NULL || (option->flags & TN_OPT_SCHEDULABLE) == 0) {
    tn_builder_fail(b, tn_failf(b, TN_EABI,
                                "it asks for the value of '%s', which it does not mark "
                                "TN_OPT_SCHEDULABLE",
                                name));
    return 0;
  }
  double value = tn_option_load(option, c->options->data).real;
  return tn_moved_value(b, c->scope->assembly->request, item->name, name, value);
}

/* Implements tn_build_layer: applies a layer given as text, under the path of the current layer. */
static tn_val layer_nested(tn_build *b, void *context, const char *name, const char *text, const tn_val *in,
                           int32_t n) {
  tn_layer_context *c = context;
  tn_assembly *a = c->scope->assembly;
  tn_line line;
  tn_results results = {{0}, 0};
  tn_status status = tn_syntax_line(a->env, &a->arena, text, c->use->where, 0, &line);
  if (status == TN_OK && (line.n_items != 1 || line.n_names + line.n_refs > 0 || line.condition))
    status = tn_failf(a->env, TN_EINVAL, "tn_build_layer(\"%s\"): expected a single call such as linear(128)",
                      text);
  if (status == TN_OK) {
    tn_use use = {.call = &line.items[0],
                  .path = tn_arena_printf(&a->arena, "%s.%s", c->use->path, name),
                  .named = c->use->named,
                  .where = c->use->where,
                  .in = in,
                  .n_in = n};
    status = tn_use_apply(c->scope, &use, &results);
  }
  if (status != TN_OK) tn_builder_fail(b, status);
  tn_builder_results(b, results.v, results.n);
  return results.v[0];
}

/* Resolves "@path" to the path of a parameter, relative to the scope or absolute. */
static tn_status layer_find_tied(const tn_model_scope *scope, const char *name, const char **path) {
  tn_assembly *a = scope->assembly;
  const tn_graph *graph = tn_builder_graph(a->b);
  const char *local = tn_scope_path(scope, name);
  if (local == NULL) return TN_ENOMEM;
  *path = tn_graph_find_state(graph, local) != NULL ? local : name;
  if (tn_graph_find_state(graph, *path) != NULL) return TN_OK;
  const char **names = tn_arena_alloc(&a->arena, tn_size_mul(graph->states.n + 1, sizeof *names));
  if (names == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < graph->states.n; i++) names[i] = graph->states.v[i].path;
  const char *nearest = tn_text_nearest(name, names, graph->states.n);
  a->met_unknown = a->met_unknown || a->lost; /* it may be a parameter of a line that is wrong */
  return tn_failf(a->env, TN_EINVAL, "@%s names no parameter of an earlier layer%s%s%s", name,
                  nearest != NULL ? ", did you mean @" : "", nearest != NULL ? nearest : "",
                  nearest != NULL ? "?" : "");
}

/* Checks that the layer requested every tied parameter. */
static tn_status layer_check_ties(const tn_layer_context *c) {
  for (int32_t i = 0; i < c->n_ties; i++)
    if (!c->ties[i].used)
      return tn_failf(c->scope->assembly->env, TN_EINVAL, "%s has neither an option nor a parameter '%s'",
                      c->use->call->layer, c->ties[i].name);
    else
      TN_TRY(tn_layer_check_adapted_tie(c->scope, c->ties[i].path));
  return TN_OK;
}

/* The option of an argument without a name. `called`: as the model calls the item. */
static tn_status layer_option_at(const tn_model_scope *scope, const tn_item *item, const char *called,
                                 int32_t position, const tn_option **option) {
  const tn_env *env = scope->assembly->env;
  *option = tn_options_at(item, position);
  if (*option != NULL) return TN_OK;
  if (position == 0) return tn_failf(env, TN_EINVAL, "it takes no arguments: write `%s`", called);
  return tn_failf(env, TN_EINVAL, "argument %d is one too many, see `tenon inspect %s`", position + 1,
                  item->name);
}

static tn_status layer_set_argument(const tn_model_scope *scope, tn_options *options, const tn_call_arg *arg,
                                    int32_t position, tn_layer_context *context) {
  tn_env *env = scope->assembly->env;
  tn_arena *arena = &scope->assembly->arena;
  const char *name = arg->name;
  tn_value value;
  if (name == NULL) {
    const tn_option *option;
    TN_TRY(layer_option_at(scope, options->item, options->item->name, position, &option));
    name = option->name;
  }
  TN_TRY(tn_scope_evaluate(scope, arg->value, &value));
  if (value.kind == TN_VALUE_SHARED && !tn_options_find(options->item, name)) {
    tn_tie *tie = &context->ties[context->n_ties++];
    tie->name = name;
    return layer_find_tied(scope, value.text, &tie->path);
  }
  const char *text = tn_value_text(arena, &value);
  return text != NULL ? tn_options_set_text(env, options, name, text) : TN_ENOMEM;
}

static tn_status layer_fill_options(const tn_model_scope *scope, const tn_use *use, const tn_item *item,
                                    tn_options *options, tn_layer_context *context) {
  tn_assembly *a = scope->assembly;
  TN_TRY(tn_options_start(a->env, &a->arena, item, options));
  options->folder = a->request->ini->folder;
  context->ties =
      tn_arena_alloc(&a->arena, tn_size_mul((size_t)use->call->n_args + 1, sizeof *context->ties));
  if (context->ties == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < use->call->n_args; i++)
    TN_TRY(layer_set_argument(scope, options, &use->call->args[i], i, context));
  return tn_options_finish(a->env, options);
}

bool tn_use_is_unknown(const tn_use *use) {
  for (int32_t i = 0; i < use->n_in; i++)
    if (use->in[i] == 0) return true;
  return false;
}

/* The types of the inputs, for messages: "(f32[8, 3, 32, 32], f32[8, 10])". */
static const char *layer_describe_inputs(const tn_model_scope *scope, const tn_use *use) {
  tn_text text = tn_text_new(scope->assembly->env);
  char type[TN_TYPE_TEXT];
  for (int32_t i = 0; i < use->n_in; i++)
    tn_text_addf(&text, "%s%s", i > 0 ? ", " : "(",
                 tn_type_format(tn_val_type(scope->assembly->b, use->in[i]), type));
  const char *copy = tn_arena_printf(&scope->assembly->arena, "%s)", text.v != NULL ? text.v : "(");
  tn_text_free(&text);
  return copy != NULL ? copy : "";
}

/* Puts "net.ini:14: conv2d 'conv1' on (f32[8, 3, 32, 32]): " in front of the error. */
static tn_status layer_add_context(const tn_model_scope *scope, const tn_use *use, tn_status status) {
  tn_assembly *a = scope->assembly;
  const char *name = use->named ? tn_arena_printf(&a->arena, " '%s'", use->path) : "";
  bool unknown = tn_use_is_unknown(use) || use->n_in == 0;
  const char *what =
      name != NULL ? tn_arena_printf(&a->arena, "%s%s%s%s", use->call->layer, name, unknown ? "" : " on ",
                                     unknown ? "" : layer_describe_inputs(scope, use))
                   : NULL;
  return tn_error_add_context(a->env, status, use->where, what != NULL ? what : use->call->layer);
}

/* most: -1 for any number. */
static tn_status layer_check_inputs(const tn_model_scope *scope, const tn_use *use, int32_t least,
                                    int32_t most) {
  if (use->n_in >= least && (most < 0 || use->n_in <= most)) return TN_OK;
  return tn_failf(scope->assembly->env, TN_EINVAL, "takes %s%d input%s, given %d",
                  least == most ? "" : "at least ", least, least == 1 ? "" : "s", use->n_in);
}

/* "fc1" for the first linear layer: a name that no line of the model has yet. */
static const char *layer_suggest_name(const tn_model_scope *scope, const char *layer) {
  tn_assembly *a = scope->assembly;
  tn_text short_name = tn_text_new(a->env);
  bool known =
      tn_habits_add(a->request->registry, "short", layer, NULL, 0, &short_name) && !short_name.failed;
  const char *stem = known ? tn_arena_strdup(&a->arena, short_name.v) : layer;
  tn_text_free(&short_name);
  if (stem == NULL) return NULL;
  tn_section *section = scope->section != NULL ? scope->section : tn_ini_section(a->request->ini, "model");
  tn_key *key = section != NULL ? tn_section_key(section, "layers") : NULL;
  for (int i = 1;; i++) {
    const char *name = tn_arena_printf(&a->arena, "%s%d:", stem, i);
    bool taken = name != NULL && key != NULL && strstr(key->value, name) != NULL;
    for (size_t m = 0; name != NULL && m < a->modules.n; m++)
      taken = taken || tn_text_equal(a->modules.v[m].path, name);
    if (taken) continue;
    tn_module suggested = {name, NULL, scope}; /* the next unnamed layer gets another one */
    if (name != NULL) (void)tn_vec_push(a->env, &a->modules, suggested);
    return name;
  }
}

/* A layer with parameters and without a name. The line to write is in the message. */
static tn_status layer_refuse_unnamed(const tn_model_scope *scope, const tn_use *use) {
  tn_assembly *a = scope->assembly;
  if (use->inside)
    return tn_failf(
        a->env, TN_EINVAL,
        "it has parameters, expected a line of its own for it, as in `%s %s(...)`, and its name in "
        "the expression",
        layer_suggest_name(scope, use->call->layer), use->call->layer);
  if (scope->unnamed)
    return tn_failf(a->env, TN_EINVAL,
                    "it has parameters, and so the block around it needs a name, as in `body: %s(...)`",
                    scope->section != NULL ? scope->section->name + strlen("block ") : "block");
  const char *name = layer_suggest_name(scope, use->call->layer);
  return tn_failf(a->env, TN_EINVAL, "a layer with parameters needs a name: write `%s %s`",
                  name != NULL ? name : "name:", use->text != NULL ? use->text : use->call->layer);
}

/* Implements the frame's member of a layer that [quantize] names. */
static void layer_operands(tn_build *b, void *context, const tn_op *op, const void *attributes, tn_val *in,
                           int32_t n) {
  const tn_layer_context *c = context;
  tn_layer_quantize(b, c->scope->assembly->request->quantize, op, attributes, in, n);
}

static tn_status layer_build(const tn_model_scope *scope, const tn_use *use, const tn_layer_kind *kind,
                             tn_results *results) {
  tn_assembly *a = scope->assembly;
  tn_layer_context context = {.scope = scope, .use = use};
  tn_options options;
  TN_TRY(layer_check_inputs(scope, use, kind->min_in, kind->max_in));
  TN_TRY(tn_habits_check(scope, use, kind));
  TN_TRY(layer_fill_options(scope, use, &kind->item, &options, &context));
  context.options = &options;
  tn_build_frame frame = {.in = use->in,
                          .n_in = use->n_in,
                          .yielded = results->v,
                          .n_yield = TN_MAX_YIELDS,
                          .prefix = use->path,
                          .where = use->where,
                          .training = a->request->training,
                          .seed = a->request->seed,
                          .context = &context,
                          .layer = layer_nested,
                          .option_value = layer_option_value,
                          .path = layer_state_path,
                          .operands = tn_quantizes(a->request->quantize, use->path) ? layer_operands : NULL};
  tn_builder_push(a->b, &frame);
  tn_status status = tn_layer_emit_ops(a->b, kind, options.data);
  /* the builder keeps the first error, which is the cause; the layer's status may be a consequence */
  if (status != TN_OK) tn_builder_fail(a->b, status);
  status = tn_build_status(a->b);
  if (status == TN_OK) status = tn_layer_adapt(scope, use, results);
  tn_builder_pop(a->b);
  if (status != TN_OK) return status;
  TN_TRY(layer_check_ties(&context));
  while (results->n < TN_MAX_YIELDS && results->v[results->n]) results->n++;
  if (results->n == 0) return tn_failf(a->env, TN_EABI, "the layer returned no value");
  tn_habits_watch(scope, use, results);
  return context.refused ? layer_refuse_unnamed(scope, use) : TN_OK;
}

/* Behind a line that is wrong the shapes are unknown, and the arguments alone can be looked at. */
static tn_status layer_check_call(const tn_model_scope *scope, const tn_use *use, const tn_layer_kind *kind,
                                  tn_results *results) {
  tn_layer_context context = {.scope = scope, .use = use};
  tn_options options;
  results->n = TN_MAX_YIELDS;
  TN_TRY(layer_check_inputs(scope, use, kind->min_in, kind->max_in));
  TN_TRY(tn_habits_check(scope, use, kind));
  return layer_fill_options(scope, use, &kind->item, &options, &context);
}

/* A block without a name is told once, at its first layer with parameters. */
static bool layer_block_is_told(const tn_model_scope *scope) {
  for (const tn_model_scope *s = scope; scope->unnamed && s->outer != NULL; s = s->outer)
    if (s->section->mistaken) return true;
  return false;
}

tn_status tn_use_layer(const tn_model_scope *scope, const tn_use *use, const tn_layer_kind *kind,
                       tn_results *results) {
  bool unknown = tn_use_is_unknown(use);
  tn_status status =
      unknown ? layer_check_call(scope, use, kind, results) : layer_build(scope, use, kind, results);
  if (status == TN_OK) return TN_OK;
  bool built = !unknown && results->n > 0; /* a name is missing, and the results can be used */
  if (built && layer_block_is_told(scope) && tn_builder_recover(scope->assembly->b)) return TN_OK;
  status = layer_add_context(scope, use, status);
  return built ? tn_scope_note(scope, status) : status;
}

/* Random numbers are addressed by their stream and by counters, the operands behind those of the model. */
static void layer_add_counters(tn_build *b, const tn_callee *callee, int32_t n_in) {
  if (callee->max_in < 0 || callee->max_in == callee->op->n_operands) return;
  for (int32_t k = n_in; k < callee->max_in; k++) tn_op_arg(b, 0); /* absent optional operands */
  tn_op_arg(b, tn_build_counter(b, TN_ITERATION));
  tn_op_arg(b, tn_build_counter(b, TN_BATCH_BLOCK));
  tn_op_set_int(b, "stream", (int64_t)tn_build_random_stream(b, callee->op->op->item.name));
}

/* The name of an op's option: `axis` is the one of `axes`. */
static const char *layer_option_name(const tn_op_def *def, const char *name) {
  const tn_item *item = &def->op->item;
  bool one = tn_text_equal(name, "axis") && tn_options_find(item, "axis") == NULL;
  return one && tn_options_find(item, "axes") != NULL ? "axes" : name;
}

/* The number of arguments without a name. */
static tn_status layer_check_arguments(const tn_model_scope *scope, const tn_use *use, const tn_op_def *def) {
  const tn_option *option;
  for (int32_t i = 0; i < use->call->n_args; i++)
    if (use->call->args[i].name == NULL)
      TN_TRY(layer_option_at(scope, &def->op->item, use->call->layer, i, &option));
  return TN_OK;
}

/* Emits an op as a layer: its operands are the inputs, its attributes the arguments. */
static tn_status layer_emit_op(const tn_model_scope *scope, const tn_use *use, const tn_callee *callee,
                               tn_results *results) {
  tn_assembly *a = scope->assembly;
  const tn_op_def *def = callee->op;
  tn_build *b = a->b;
  tn_op_begin(b, def->op->item.name);
  for (int32_t i = 0; i < use->n_in; i++) tn_op_arg(b, use->in[i]);
  layer_add_counters(b, callee, use->n_in);
  for (int32_t i = 0; i < use->call->n_args; i++) {
    const tn_call_arg *arg = &use->call->args[i];
    const char *given = arg->name != NULL ? arg->name : tn_options_at(&def->op->item, i)->name;
    const char *name = layer_option_name(def, given);
    tn_value value;
    TN_TRY(tn_scope_evaluate(scope, arg->value, &value));
    const char *text = tn_value_text(&a->arena, &value);
    if (text == NULL) return TN_ENOMEM;
    tn_op_set_text(b, name, text);
  }
  tn_val first = tn_op_end(b);
  results->n = def->n_results < TN_MAX_YIELDS ? def->n_results : TN_MAX_YIELDS;
  for (int32_t i = 0; i < results->n; i++) results->v[i] = tn_op_result(b, first, i);
  return tn_build_status(b);
}

static tn_status layer_use_op(const tn_model_scope *scope, const tn_use *use, const tn_callee *callee,
                              tn_results *results) {
  tn_assembly *a = scope->assembly;
  const tn_op_def *def = callee->op;
  tn_status checked = layer_check_inputs(scope, use, callee->min_in, callee->max_in);
  if (checked == TN_OK) checked = layer_check_arguments(scope, use, def);
  if (checked != TN_OK) return layer_add_context(scope, use, checked);
  if (tn_use_is_unknown(use)) {
    results->n = def->n_results < TN_MAX_YIELDS ? def->n_results : TN_MAX_YIELDS;
    return TN_OK;
  }
  tn_build_frame frame = tn_value_frame(&(tn_value_place){scope, use->path, use->where});
  tn_builder_push(a->b, &frame);
  tn_status status = layer_emit_op(scope, use, callee, results);
  tn_builder_pop(a->b);
  return status == TN_OK ? TN_OK : layer_add_context(scope, use, status);
}

/* Finds the module of "@name": first relative to the scope, then by its absolute path. */
static tn_status layer_find_module(const tn_model_scope *scope, const char *name, const tn_module **found) {
  tn_assembly *a = scope->assembly;
  const char *local = tn_scope_path(scope, name);
  if (local == NULL) return TN_ENOMEM;
  *found = tn_module_find(a, local);
  if (*found == NULL) *found = tn_module_find(a, name);
  if (*found != NULL) return TN_OK;
  a->met_unknown = a->met_unknown || a->lost; /* it may be a layer of a line that is wrong */
  return tn_failf(a->env, TN_EINVAL, "'@%s' names no earlier layer", name);
}

static tn_status layer_apply_shared(const tn_model_scope *scope, const tn_use *use, tn_results *results) {
  const tn_module *module = NULL;
  TN_TRY(layer_find_module(scope, use->call->shared, &module));
  tn_use again = *use;
  again.call = module->call;
  again.path = module->path;
  again.named = true;
  scope->assembly->sharing++;
  tn_status status = tn_use_apply(module->scope, &again, results);
  scope->assembly->sharing--;
  return status;
}

tn_status tn_use_apply(const tn_model_scope *scope, const tn_use *use, tn_results *results) {
  tn_assembly *a = scope->assembly;
  if (use->call->shared != NULL) return layer_apply_shared(scope, use, results);
  tn_use meant = *use;
  tn_callee callee;
  TN_TRY(tn_callee_meant(scope, use->call, &meant.call));
  bool scans = tn_text_equal(meant.call->layer, "scan") && !tn_callee_exists(a, "scan");
  if (scans) return tn_use_scan(scope, &meant, results);
  TN_TRY(tn_callee_find(a, meant.call->layer, &callee));
  if (meant.implicit && callee.max_in == 0) meant.n_in = 0;
  if (callee.is_gradient) return tn_use_gradient(scope, &meant, results);
  if (callee.block != NULL) return tn_use_block(scope, &meant, callee.block, results);
  if (callee.op != NULL) {
    tn_item_call call = *meant.call;
    call.layer = callee.name; /* messages have the name of the op */
    meant.call = &call;
    return layer_use_op(scope, &meant, &callee, results);
  }
  return tn_use_layer(scope, &meant, callee.layer, results);
}
