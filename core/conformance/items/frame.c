/* core/conformance/items/frame.c: answers the calls of an item that is built alone. */
#include "core/conformance/items/frame.h"

#include <stdlib.h>
#include <string.h>

#include "core/graph/build/emit_layer.h"

#include "core/config/language/syntax.h"
#include "core/config/options/options.h"
#include "tenon/plugin/layer.h"

/* ---- options ---- */

/* A value that most ranges of required options contain. */
static const char *item_required_value(const tn_option *option) {
  switch (option->type) {
  case TN_OPT_FLAG: return "no";
  case TN_OPT_FLOAT: return "0.5";
  case TN_OPT_DTYPE: return "f32";
  case TN_OPT_INIT: return "zeros";
  case TN_OPT_SCHEDULES:
  case TN_OPT_TRANSFORMS: return "[]";
  default: return "2";
  }
}

/* Enums have their first word. */
static tn_status item_require(tn_draw *d, tn_options *options, const tn_option *option) {
  char word[64];
  const char *text = item_required_value(option);
  if (option->type == TN_OPT_ENUM && option->range != NULL) {
    size_t n = strcspn(option->range, "|");
    if (n >= sizeof word) n = sizeof word - 1;
    memcpy(word, option->range, n);
    word[n] = '\0';
    text = word;
  }
  return tn_options_set_text(d->graph->env, options, option->name, text);
}

static bool item_is_line_of(const char *label, const char *line, size_t n) {
  size_t label_bytes = strlen(label);
  return n > label_bytes && memcmp(line, label, label_bytes) == 0 && line[label_bytes] == '.';
}

bool tn_item_is_set(const tn_draw *d, const char *label) {
  for (const char *line = d->settings; line != NULL && *line != '\0';) {
    size_t n = strcspn(line, "\n");
    if (item_is_line_of(label, line, n)) return true;
    line += n + (line[n] == '\n');
  }
  return false;
}

/* One line of the settings, "source:idx.images=/data/x". */
static tn_status item_set_line(tn_draw *d, tn_options *options, const char *label, const char *line,
                               size_t n) {
  size_t label_bytes = strlen(label);
  if (!item_is_line_of(label, line, n)) return TN_OK;
  char *name = tn_arena_printf(&d->graph->arena, "%.*s", (int)(n - label_bytes - 1), line + label_bytes + 1);
  char *value = name != NULL ? strchr(name, '=') : NULL;
  if (name == NULL) return TN_ENOMEM;
  if (value == NULL)
    return tn_failf(d->graph->env, TN_EINVAL, "%.*s: expected KIND:NAME.OPTION=VALUE", (int)n, line);
  *value = '\0';
  return tn_options_set_text(d->graph->env, options, name, value + 1);
}

static tn_status item_set_lines(tn_draw *d, tn_options *options, const char *label) {
  for (const char *line = d->settings; line != NULL && *line != '\0';) {
    size_t n = strcspn(line, "\n");
    TN_TRY(item_set_line(d, options, label, line, n));
    line += n + (line[n] == '\n');
  }
  return TN_OK;
}

tn_status tn_item_options(tn_draw *d, const tn_item *item, const char *label, const void **data) {
  tn_options options;
  TN_TRY(tn_options_start(d->graph->env, &d->graph->arena, item, &options));
  TN_TRY(item_set_lines(d, &options, label));
  for (int64_t i = 0; tn_options_at(item, i) != NULL; i++)
    if (tn_options_at(item, i)->default_text == NULL && !options.given[i])
      TN_TRY(item_require(d, &options, tn_options_at(item, i)));
  *data = options.data;
  return TN_OK;
}

tn_range tn_item_option_domain(const tn_option *option) {
  tn_range range = tn_domain_any();
  if (option->range != NULL && tn_range_read(option->range, &range)) return range;
  return tn_domain_any();
}

/* ---- parameters and state ---- */

static tn_item_state *item_find_state(tn_item_use *use, const char *name) {
  for (int32_t i = 0; i < use->n_states; i++)
    if (strcmp(use->states[i].name, name) == 0) return &use->states[i];
  return NULL;
}

/* "zeros", "ones" and "constant(0.5)". */
static bool item_initial_number(const char *init, double *value) {
  if (strcmp(init, "zeros") == 0 || strcmp(init, "ones") == 0) {
    *value = init[0] == 'o';
    return true;
  }
  char *end;
  if (strncmp(init, "constant(", 9) != 0) return false;
  *value = strtod(init + 9, &end);
  return end > init + 9 && *end == ')';
}

/* A state that begins with ones, such as a variance, is positive; a parameter takes either sign. */
static tn_val item_state_value(tn_item_use *use, const tn_type *type, const char *init, bool is_param,
                               double *initial) {
  bool known = item_initial_number(init, initial);
  if (use->from_initial && known) return tn_full(use->d->b, type, *initial);
  bool positive = !is_param && known && *initial == 1;
  return tn_draw_tensor(use->d, *type, positive ? TN_FILL_POSITIVE : TN_FILL_ANY);
}

static tn_val item_fail(const tn_item_use *use, tn_status status) {
  tn_builder_fail(use->d->b, status);
  return 0;
}

static tn_val item_add_state(tn_item_use *use, const char *name, const tn_type *type, const char *init,
                             bool is_param) {
  tn_env *env = use->d->graph->env;
  const char *path = tn_arena_printf(&use->d->graph->arena, "%s%s", use->scope, name);
  if (path == NULL) return item_fail(use, TN_ENOMEM);
  tn_item_state *known = item_find_state(use, path);
  if (known != NULL && tn_type_equal(&known->type, type)) return known->value;
  if (known != NULL || use->n_states == TN_ITEM_STATES || use->d->n_inputs == TN_CASE_INPUTS)
    return item_fail(use,
                     tn_failf(env, TN_EUNSUPPORTED, "state '%s': %s", path,
                              known != NULL ? "it is made twice, with two types" : "there are too many"));
  double initial = 0;
  int32_t input = use->d->n_inputs;
  tn_val value = item_state_value(use, type, init != NULL ? init : "", is_param, &initial);
  if (use->d->n_inputs == input) input = -1;
  use->states[use->n_states++] = (tn_item_state){path, *type, value, 0, is_param, initial, input};
  return value;
}

static tn_val item_param(tn_build *b, void *context, const char *name, const tn_type *type,
                         const char *init) {
  (void)b;
  return item_add_state(context, name, type, init, true);
}

static tn_val item_state(tn_build *b, void *context, const char *name, const tn_type *type,
                         const char *init) {
  (void)b;
  return item_add_state(context, name, type, init, false);
}

static tn_status item_commit_state(tn_item_use *use, tn_val state, tn_val now) {
  tn_env *env = use->d->graph->env;
  tn_item_state *found = NULL;
  for (int32_t i = 0; i < use->n_states; i++)
    if (use->states[i].value == state) found = &use->states[i];
  if (found == NULL || found->is_param)
    return tn_failf(env, TN_EINVAL,
                    "tn_build_commit: the value given is no state, expected a result of tn_build_state");
  if (found->committed != 0)
    return tn_failf(env, TN_EINVAL, "state '%s' is committed twice, expected once", found->name);
  if (!tn_type_equal(tn_val_type(use->d->b, now), &found->type))
    return tn_failf(env, TN_EINVAL, "state '%s' is committed with a value of another type than its own",
                    found->name);
  found->committed = now;
  return TN_OK;
}

static void item_commit(tn_build *b, void *context, tn_val state, tn_val now) {
  tn_status status = item_commit_state(context, state, now);
  if (status != TN_OK) tn_builder_fail(b, status);
}

static tn_val item_counter(tn_build *b, void *context, int32_t which) {
  tn_item_use *use = context;
  (void)b;
  if (use->counter == 0) use->counter = tn_draw_counter(use->d, which == TN_UPDATES);
  return use->counter;
}

/* ---- layers in layers ---- */

static tn_status item_nested_options(tn_item_use *use, const tn_item *item, const tn_item_call *call,
                                     tn_options *options) {
  const void *handle = use->d->graph->env;
  tn_arena *arena = &use->d->graph->arena;
  static const tn_scope nothing = {.n = 0};
  TN_TRY(tn_options_start(handle, arena, item, options));
  for (int32_t i = 0; i < call->n_args; i++) {
    const tn_option *at = tn_options_at(item, i);
    const char *name = call->args[i].name != NULL ? call->args[i].name : at != NULL ? at->name : "";
    tn_value value;
    TN_TRY(tn_expr_evaluate(handle, arena, call->args[i].value, &nothing, &value));
    const char *text = tn_value_text(arena, &value);
    if (text == NULL) return TN_ENOMEM;
    TN_TRY(tn_options_set_text(handle, options, name, text));
  }
  return tn_options_finish(handle, options);
}

static tn_status item_build_nested(tn_item_use *use, const char *name, const char *text, const tn_val *in,
                                   int32_t n, tn_val *yielded) {
  tn_env *env = use->d->graph->env;
  tn_arena *arena = &use->d->graph->arena;
  const tn_entry *entry;
  tn_line line;
  tn_options options;
  const char *outer = use->scope;
  TN_TRY(tn_syntax_line(env, arena, text, "tn_build_layer", 0, &line));
  if (line.n_items != 1 || line.items[0].layer == NULL)
    return tn_failf(env, TN_EINVAL, "tn_build_layer(\"%s\"): expected a single call such as linear(128)",
                    text);
  TN_TRY(tn_registry_find(use->registry, env, TN_LAYER, line.items[0].layer, &entry));
  TN_TRY(item_nested_options(use, entry->item, &line.items[0], &options));
  bool training = tn_build_training(use->d->b) != 0;
  use->scope = tn_arena_printf(arena, "%s%s.", outer, name);
  if (use->scope == NULL) return TN_ENOMEM;
  tn_status status = tn_item_build_layer(use, entry->item, options.data, training, in, n, yielded);
  use->scope = outer;
  return status;
}

static tn_val item_layer(tn_build *b, void *context, const char *name, const char *text, const tn_val *in,
                         int32_t n) {
  tn_item_use *use = context;
  tn_val *yielded = tn_arena_alloc(&use->d->graph->arena, TN_ITEM_YIELDS * sizeof *yielded);
  int32_t count = 0;
  tn_status status = yielded != NULL ? item_build_nested(use, name, text, in, n, yielded) : TN_ENOMEM;
  if (status != TN_OK) return item_fail(use, status);
  while (count < TN_ITEM_YIELDS && yielded[count] != 0) count++;
  tn_builder_results(b, yielded, count);
  return yielded[0];
}

/* ---- the frame ---- */

tn_build_frame tn_item_frame(tn_item_use *use) {
  return (tn_build_frame){.prefix = use->scope,
                          .where = "",
                          .seed = 1,
                          .context = use,
                          .layer = item_layer,
                          .state = item_state,
                          .param = item_param,
                          .counter = item_counter,
                          .commit = item_commit};
}

/* No option of the layer has a schedule. */
static tn_val item_option_value(tn_build *b, void *context, const char *option) {
  (void)b, (void)context, (void)option;
  return 0;
}

tn_status tn_item_build_layer(tn_item_use *use, const tn_item *layer, const void *options, bool training,
                              const tn_val *in, int32_t n, tn_val yielded[TN_ITEM_YIELDS]) {
  const tn_layer_kind *kind = (const tn_layer_kind *)(const void *)layer;
  tn_build *b = use->d->b;
  tn_build_frame frame = tn_item_frame(use);
  memset(yielded, 0, TN_ITEM_YIELDS * sizeof *yielded);
  frame.in = in;
  frame.n_in = n;
  frame.yielded = yielded;
  frame.n_yield = TN_ITEM_YIELDS;
  frame.training = training;
  frame.option_value = item_option_value;
  tn_builder_push(b, &frame);
  tn_status status = tn_layer_emit_ops(b, kind, options);
  if (status != TN_OK) tn_builder_fail(b, status);
  status = tn_build_status(b);
  tn_builder_pop(b);
  if (status != TN_OK) return status;
  return yielded[0] != 0 ? TN_OK : tn_failf(b, TN_EABI, "the %s yields no value", layer->name);
}
