/* core/model/lines/lines.c: builds the graph of the lines of a model or block, in a scope of named values. */
#include "core/model/assemble.h"

#include <string.h>

/* A model that is too large is the only mistake that is told: every line after it would be told again. */
static bool line_is_beyond_limits(const tn_assembly *a) {
  return a->layers > TN_MAX_LAYERS || a->arena.bytes > TN_MAX_LINE_BYTES;
}

tn_status tn_scope_note(const tn_model_scope *scope, tn_status status) {
  tn_assembly *a = scope->assembly;
  if (status != TN_EINVAL || a->request->emit != NULL || line_is_beyond_limits(a)) return status;
  if (!tn_builder_recover(a->b)) return status;
  if (a->met_unknown) {
    tn_error_clear(a->env); /* a consequence of an earlier mistake */
    return TN_OK;
  }
  for (const tn_model_scope *s = scope; s->outer != NULL; s = s->outer) {
    const char *what = tn_arena_printf(&a->arena, "in block '%s'", s->section->name + strlen("block "));
    tn_error_add_context(a->env, status, s->outer_where, what != NULL ? what : "in a block");
    s->section->mistaken = true;
  }
  return tn_ini_note(a->env, a->request->ini, status);
}

/* One of the values behind the arrow: a name, or an expression. A number takes the element type of the values
 * in front of it. */
static tn_status line_operand(const tn_model_scope *scope, const tn_line *line, int32_t i, const char *path,
                              const char *where, tn_results *in) {
  tn_assembly *a = scope->assembly;
  tn_value value;
  tn_results made = {{0}, 0};
  if (line->operands == NULL || line->operands[i] == NULL || tn_scope_has(scope, line->refs[i]))
    return tn_scope_resolve(scope, line->refs[i], &in->v[i]);
  const char *own = i == 0 ? path : tn_arena_printf(&a->arena, "%s.%d", path, i);
  TN_TRY(tn_scope_compute(scope, line->operands[i], own, where, &value, &made));
  if (value.kind == TN_VALUE_TENSOR) {
    in->v[i] = made.v[0];
    return TN_OK;
  }
  if (value.kind != TN_VALUE_NUMBER)
    return tn_failf(a->env, TN_EINVAL, "'%s' behind '<-' is no value, expected one or a number",
                    line->refs[i]);
  int32_t dtype = i > 0 && in->v[0] != 0 ? tn_val_type(a->b, in->v[0])->dtype : TN_F32;
  return tn_scope_number(scope, &value, dtype, own, where, &in->v[i]);
}

tn_status tn_line_inputs(const tn_model_scope *scope, const tn_line *line, const char *path,
                         const char *where, tn_results *in) {
  tn_env *env = scope->assembly->env;
  *in = (tn_results){.v = {scope->last}, .n = 1};
  if (line->n_refs == 0) return TN_OK;
  in->n = line->n_refs;
  if (line->n_refs > TN_MAX_YIELDS)
    return tn_failf(env, TN_EINVAL, "%d inputs, expected at most %d", line->n_refs, TN_MAX_YIELDS);
  for (int32_t i = 0; i < line->n_refs; i++) TN_TRY(line_operand(scope, line, i, path, where, in));
  return TN_OK;
}

/* The repeat count of an item; 1 without `* N`. */
static tn_status line_repeats(const tn_model_scope *scope, const tn_item_call *item, int64_t *count) {
  tn_value value;
  *count = 1;
  if (item->repeat == NULL) return TN_OK;
  TN_TRY(tn_scope_evaluate(scope, item->repeat, &value));
  if (value.kind != TN_VALUE_NUMBER || !value.is_integer || value.number < 0 || value.number > 10000)
    return tn_failf(scope->assembly->env, TN_EINVAL,
                    "repeat count is %s, expected a whole number from 0 to 10000",
                    tn_value_text(&scope->assembly->arena, &value));
  *count = (int64_t)value.number;
  return TN_OK;
}

/* The name of item `index` of a line: NAME for a single item, otherwise NAME.index or NAME with {i}
 * replaced. */
static const char *line_item_name(const tn_model_scope *scope, const tn_line *line, bool single,
                                  int64_t index) {
  tn_arena *arena = &scope->assembly->arena;
  if (line->n_names == 0) return NULL;
  const char *name = line->names[0], *hole = tn_name_hole(name);
  if (hole != NULL)
    return tn_arena_printf(arena, "%.*s%lld%s", (int)(hole - name), name,
                           (long long)index + tn_name_hole_start(hole), strchr(hole, '}') + 1);
  return single ? name : tn_arena_printf(arena, "%s.%lld", name, (long long)index);
}

typedef struct tn_line_run {
  const tn_line *line;
  const char *where;
  int32_t number; /* index of the line in its list */
  tn_results in;  /* of the line */
  tn_results now; /* inputs of the next item, results of the last one */
  int64_t index;
  bool single;
} tn_line_run;

/* Refuses a path that exists. The name `a.b` and the name `b` in block `a` have the same path and would
 * share parameters by accident. */
static tn_status line_check_path(const tn_assembly *a, const char *path) {
  if (a->sharing == 0 && tn_module_find(a, path) != NULL)
    return tn_failf(a->env, TN_EINVAL,
                    "'%s' is the path of an earlier layer; take another name, or @%s for its parameters",
                    path, path);
  return TN_OK;
}

/* Counts layers before they are applied. */
static tn_status line_count_layers(tn_assembly *a, int64_t n) {
  a->layers += n;
  if (a->layers > TN_MAX_LAYERS)
    return tn_failf(a->env, TN_EINVAL,
                    "the model has more than %d layers when its blocks and repeats are expanded, expected at "
                    "most %d; lower the repeat counts",
                    TN_MAX_LAYERS, TN_MAX_LAYERS);
  if (a->arena.bytes > TN_MAX_LINE_BYTES)
    return tn_failf(a->env, TN_EINVAL,
                    "the model's lines take more than %d MiB when its blocks and repeats are expanded; lower "
                    "the repeat counts, or shorten the arguments",
                    TN_MAX_LINE_BYTES >> 20);
  return TN_OK;
}

static tn_status line_apply_item(tn_model_scope *scope, tn_line_run *run, const tn_item_call *item) {
  tn_assembly *a = scope->assembly;
  const char *name = line_item_name(scope, run->line, run->single, run->index);
  /* random streams depend on the path, so it must not depend on comments and blank lines */
  const char *made_up = tn_arena_printf(&a->arena, "%s@%d.%lld", item->layer != NULL ? item->layer : "shared",
                                        run->number, (long long)run->index);
  tn_use use = {.call = item,
                .path = name != NULL ? tn_scope_path(scope, name) : tn_scope_own_path(scope, made_up),
                .named = name != NULL && !scope->unnamed,
                .implicit = run->line->n_refs == 0,
                .where = run->where,
                .in = run->now.v,
                .n_in = run->now.n,
                .text = run->single ? run->line->text : NULL};
  tn_results results = {{0}, 0};
  if (use.path == NULL) return TN_ENOMEM;
  TN_TRY(line_count_layers(a, 1));
  if (use.named && item->shared == NULL) TN_TRY(line_check_path(a, use.path));
  TN_TRY(tn_use_apply(scope, &use, &results));
  if (use.named && item->shared == NULL) {
    tn_module module = {use.path, item, scope};
    TN_TRY(tn_module_add(a, &module));
  }
  if (name != NULL && (!run->single || tn_name_hole(run->line->names[0]) != NULL))
    TN_TRY(tn_scope_bind(scope, name, results.v[0], run->where));
  run->now = results;
  run->index++;
  return TN_OK;
}

/* The number of inputs that an item of a chain gets: those that its block has, or that its layer needs. */
static tn_status line_count_inputs(const tn_model_scope *scope, const tn_item_call *item, int32_t *n) {
  const tn_item_call *meant;
  tn_callee callee;
  *n = 1;
  if (item->shared != NULL) return TN_OK; /* told where it is applied, if it needs more */
  TN_TRY(tn_callee_meant(scope, item, &meant));
  if (!tn_callee_exists(scope->assembly, meant->layer)) return TN_OK; /* this is told there, too */
  TN_TRY(tn_callee_find(scope->assembly, meant->layer, &callee));
  if (callee.min_in > 1) *n = callee.min_in;
  return TN_OK;
}

/* The inputs of an item behind the first one: the outputs of the one before, then the line's further inputs.
 */
static tn_status line_pass_on(const tn_model_scope *scope, tn_line_run *run, const tn_item_call *item) {
  int32_t n;
  TN_TRY(line_count_inputs(scope, item, &n));
  if (n > TN_MAX_YIELDS) n = TN_MAX_YIELDS;
  if (run->now.n > n) run->now.n = n;
  for (; run->now.n < n && run->now.n < run->in.n; run->now.n++)
    run->now.v[run->now.n] = run->in.v[run->now.n];
  return TN_OK;
}

/* Applies all items of a line in turn, each to the outputs of the previous one. */
static tn_status line_run_items(tn_model_scope *scope, tn_line_run *run) {
  const tn_line *line = run->line;
  run->single = line->n_items == 1 && line->items[0].repeat == NULL;
  for (int32_t i = 0; i < line->n_items; i++) {
    int64_t count = 1;
    TN_TRY(line_repeats(scope, &line->items[i], &count));
    if (count == 0) TN_TRY(line_count_layers(scope->assembly, 1));
    for (int64_t k = 0; k < count; k++) {
      if (run->index > 0) TN_TRY(line_pass_on(scope, run, &line->items[i]));
      TN_TRY(line_apply_item(scope, run, &line->items[i]));
    }
  }
  return TN_OK;
}

/* Binds the names of a line to its results, in order. */
static tn_status line_bind_names(tn_model_scope *scope, const tn_line_run *run) {
  const tn_line *line = run->line;
  if (line->n_names > run->now.n)
    return tn_failf(scope->assembly->env, TN_EINVAL, "%d names, but there %s %d output%s", line->n_names,
                    run->now.n == 1 ? "is" : "are", run->now.n, run->now.n == 1 ? "" : "s");
  for (int32_t i = 0; i < line->n_names; i++)
    if (tn_name_hole(line->names[i]) == NULL)
      TN_TRY(tn_scope_bind(scope, line->names[i], run->now.v[i], run->where));
  return TN_OK;
}

/* `head = width // heads`: a name for a number, word or list, which the next line does not read. */
static tn_status line_define(tn_model_scope *scope, const tn_line *line, const tn_value *value) {
  if (line->n_names > 1)
    return tn_failf(scope->assembly->env, TN_EINVAL, "%d names for '%s', expected one", line->n_names,
                    tn_value_text(&scope->assembly->arena, value));
  return tn_scope_define(scope, line->names[0], value);
}

/* A line that computes: `y = silu(gate) * up`. */
static tn_status line_compute(tn_model_scope *scope, tn_line_run *run) {
  const tn_line *line = run->line;
  tn_value value;
  TN_TRY(line_count_layers(scope->assembly, 1));
  for (int32_t i = 0; i < line->n_names; i++) TN_TRY(tn_scope_refuse_argument(scope, line->names[i]));
  TN_TRY(tn_scope_compute(scope, line->value, tn_scope_own_path(scope, line->names[0]), run->where, &value,
                          &run->now));
  if (tn_value_lists_values(&value))
    return tn_failf(scope->assembly->env, TN_EINVAL,
                    "the line gives a list of values, expected one value; write concat([a, b], axis=1)");
  if (value.kind != TN_VALUE_TENSOR) return line_define(scope, line, &value);
  TN_TRY(line_bind_names(scope, run));
  scope->last = run->now.v[0];
  return TN_OK;
}

/* The path of the ops in front of a line's layers. Random streams depend on it. */
static const char *line_operands_path(const tn_model_scope *scope, const tn_line_run *run) {
  const char *name = run->line->n_names > 0 ? run->line->names[0] : NULL;
  if (run->line->n_refs == 0) return "";
  if (name == NULL || tn_name_hole(name) != NULL)
    name = tn_arena_printf(&scope->assembly->arena, "line@%d", run->number);
  return name != NULL ? tn_scope_own_path(scope, name) : NULL;
}

static tn_status line_run(tn_model_scope *scope, const tn_line *line, int32_t number, const char *where) {
  tn_line_run run = {.line = line, .where = where, .number = number};
  bool holds = true;
  if (line->value != NULL) return line_compute(scope, &run);
  const char *path = line_operands_path(scope, &run);
  if (path == NULL) return TN_ENOMEM;
  TN_TRY(tn_line_inputs(scope, line, path, where, &run.in));
  run.now = run.in;
  if (line->condition != NULL) TN_TRY(tn_scope_holds(scope, line->condition, &holds));
  TN_TRY(holds ? line_run_items(scope, &run) : line_count_layers(scope->assembly, 1));
  TN_TRY(line_bind_names(scope, &run));
  scope->last = run.now.v[0];
  return TN_OK;
}

/* The results of a line that is wrong are unknown: its names stand for value 0. */
static tn_status line_lose(tn_model_scope *scope, const tn_line *line) {
  tn_assembly *a = scope->assembly;
  a->lost = true;
  a->lost_names = a->lost_names || line->text == NULL || line->n_items > 1;
  scope->last = 0;
  for (int32_t i = 0; i < line->n_items; i++) a->lost_names = a->lost_names || line->items[i].repeat != NULL;
  for (int32_t i = 0; i < line->n_names; i++) {
    const char *name = line->names[i];
    if (tn_name_hole(name) != NULL) a->lost_names = true;
    bool taken = tn_name_index_find(&scope->names, name) != TN_NAME_INDEX_NONE ||
                 tn_scope_find_argument(scope, name) >= 0;
    if (!tn_text_equal(name, "in") && !taken) TN_TRY(tn_scope_bind(scope, name, 0, ""));
  }
  return TN_OK;
}

tn_status tn_scope_run(tn_model_scope *scope, const tn_line *lines, int32_t n) {
  for (int32_t i = 0; i < n; i++) {
    tn_assembly *a = scope->assembly;
    const char *where = tn_line_where(a, &lines[i]);
    if (where == NULL) return TN_ENOMEM;
    a->met_unknown = false;
    tn_status status = lines[i].wrong ? TN_OK : line_run(scope, &lines[i], i, where);
    if (status == TN_OK && !lines[i].wrong) continue;
    if (status != TN_OK) TN_TRY(tn_scope_note(scope, tn_error_add_context(a->env, status, where, "")));
    TN_TRY(line_lose(scope, &lines[i]));
  }
  return TN_OK;
}
