/* core/model/lines/block.c: applying a [block NAME] section: args, inputs, layers, outputs. */
#include "core/model/assemble.h"

static const char *block_where(const tn_assembly *a, tn_section *section, tn_key *key) {
  return tn_key_where(a->request->ini, section, key);
}

/* Parses `args = NAME, NAME=default, ...` as the arguments of a call. */
static tn_status block_read_args(const tn_model_scope *scope, tn_section *section, tn_call_arg **args,
                                 int32_t *n) {
  tn_assembly *a = scope->assembly;
  tn_line line;
  TN_TRY(tn_block_line(a, section, "args", "args(", ")", &line));
  *n = line.n_items == 1 ? line.items[0].n_args : 0;
  *args = line.n_items == 1 ? line.items[0].args : NULL;
  if (*n > TN_MAX_BLOCK_ARGS)
    return tn_failf(a->env, TN_EINVAL, "%s: [%s] args has %d names, expected at most %d",
                    block_where(a, section, tn_section_key(section, "args")), section->name, *n,
                    TN_MAX_BLOCK_ARGS);
  for (int32_t i = 0; i < *n; i++)
    if ((*args)[i].name == NULL && (*args)[i].value->kind != TN_EXPR_WORD)
      return tn_failf(a->env, TN_EINVAL,
                      "%s: [%s] args: entry %d is not a name, expected NAME or NAME=default",
                      block_where(a, section, tn_section_key(section, "args")), section->name, i + 1);
  return TN_OK;
}

/* Parses `inputs`: names of values. */
static tn_status block_read_names(const tn_model_scope *scope, tn_section *section, const char *key,
                                  const char ***names, int32_t *n) {
  tn_line line;
  TN_TRY(tn_block_line(scope->assembly, section, key, "names <- ", "", &line));
  *names = line.refs;
  *n = line.n_refs;
  for (int32_t i = 0; i < line.n_refs; i++)
    if (line.operands[i] != NULL)
      return tn_failf(scope->assembly->env, TN_EINVAL, "%s: [%s] %s: '%s' is not a name",
                      block_where(scope->assembly, section, tn_section_key(section, key)), section->name, key,
                      line.refs[i]);
  return TN_OK;
}

/* The declared arguments of a block. */
typedef struct block_args {
  tn_call_arg *v; /* name and value: an argument with its default */
  int32_t n;
  bool *passed;
} block_args;

static tn_status block_declare_args(const tn_model_scope *outer, tn_model_scope *inner, tn_section *section,
                                    block_args *args) {
  tn_arena *arena = &outer->assembly->arena;
  TN_TRY(block_read_args(outer, section, &args->v, &args->n));
  args->passed = tn_arena_alloc(arena, (size_t)args->n + 1);
  if (args->passed == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < args->n; i++) {
    const char *name = args->v[i].name != NULL ? args->v[i].name : args->v[i].value->word;
    if (tn_scope_find_argument(inner, name) >= 0)
      return tn_failf(outer->assembly->env, TN_EINVAL, "[%s] args: '%s' appears twice", section->name, name);
    size_t n = (size_t)inner->n_args;
    inner->arg_names = tn_arena_grow(arena, inner->arg_names, n, sizeof *inner->arg_names);
    inner->arg_values = tn_arena_grow(arena, inner->arg_values, n, sizeof *inner->arg_values);
    if (inner->arg_names == NULL || inner->arg_values == NULL) return TN_ENOMEM;
    inner->arg_names[inner->n_args++] = name;
  }
  return TN_OK;
}

/* Evaluates the defaults of arguments that were not passed. A default may use earlier arguments. */
static tn_status block_fill_defaults(tn_model_scope *inner, const tn_use *use, const block_args *args) {
  for (int32_t i = 0; i < args->n; i++) {
    if (args->passed[i]) continue;
    if (args->v[i].name == NULL)
      return tn_failf(inner->assembly->env, TN_EINVAL, "block '%s' needs the argument '%s'", use->call->layer,
                      inner->arg_names[i]);
    inner->n_args = i;
    tn_status status = tn_scope_evaluate(inner, args->v[i].value, &inner->arg_values[i]);
    inner->n_args = args->n;
    if (status != TN_OK)
      return tn_wrap(inner->assembly->env, status, "the default of '%s' in block '%s'", inner->arg_names[i],
                     use->call->layer);
  }
  return TN_OK;
}

static tn_status block_fail_unknown_arg(const tn_model_scope *inner, const tn_use *use, const char *name) {
  tn_env *env = inner->assembly->env;
  const char *nearest = tn_text_nearest(name, inner->arg_names, (size_t)inner->n_args);
  tn_text names = tn_text_new(env);
  for (int32_t i = 0; i < inner->n_args; i++)
    tn_text_addf(&names, "%s%s", i > 0 ? ", " : "", inner->arg_names[i]);
  tn_status status = nearest != NULL
                         ? tn_failf(env, TN_EINVAL, "block '%s' has no argument '%s', did you mean '%s'?",
                                    use->call->layer, name, nearest)
                         : tn_failf(env, TN_EINVAL, "block '%s' has no argument '%s', it has %s",
                                    use->call->layer, name, names.v != NULL ? names.v : "none");
  tn_text_free(&names);
  return status;
}

/* Evaluates the arguments of the call in the caller's scope. */
static tn_status block_pass_args(const tn_model_scope *outer, tn_model_scope *inner, const tn_use *use,
                                 const block_args *args) {
  tn_env *env = outer->assembly->env;
  for (int32_t i = 0; i < use->call->n_args; i++) {
    const tn_call_arg *arg = &use->call->args[i];
    int32_t at = arg->name != NULL ? tn_scope_find_argument(inner, arg->name) : i;
    if (at < 0) return block_fail_unknown_arg(inner, use, arg->name);
    if (at >= inner->n_args)
      return tn_failf(env, TN_EINVAL, "block '%s' takes %d argument%s, given %d", use->call->layer,
                      inner->n_args, inner->n_args == 1 ? "" : "s", use->call->n_args);
    if (args->passed[at])
      return tn_failf(env, TN_EINVAL, "the argument '%s' of block '%s' is given twice", inner->arg_names[at],
                      use->call->layer);
    TN_TRY(tn_scope_evaluate(outer, arg->value, &inner->arg_values[at]));
    args->passed[at] = true;
  }
  return TN_OK;
}

static tn_status block_bind_inputs(const tn_model_scope *outer, tn_model_scope *inner, const tn_use *use,
                                   tn_section *section) {
  tn_env *env = outer->assembly->env;
  const char **names;
  int32_t n;
  TN_TRY(block_read_names(outer, section, "inputs", &names, &n));
  if (n == 0 ? use->n_in != 1 : use->n_in != n)
    return tn_failf(env, TN_EINVAL, "block '%s' takes %d input%s, given %d", use->call->layer, n == 0 ? 1 : n,
                    n < 2 ? "" : "s", use->n_in);
  for (int32_t i = 0; i < n; i++)
    TN_TRY(tn_scope_bind(inner, names[i], use->in[i], block_where(outer->assembly, section, NULL)));
  inner->in = inner->last = use->in[0];
  inner->has_in = true;
  return TN_OK;
}

/* Collects the block's `outputs`, or the value of its last line. */
static tn_status block_collect_outputs(const tn_model_scope *outer, tn_model_scope *inner,
                                       tn_section *section, tn_results *results) {
  tn_line line;
  TN_TRY(tn_block_line(outer->assembly, section, "outputs", "names <- ", "", &line));
  if (line.n_refs > TN_MAX_YIELDS)
    return tn_failf(outer->assembly->env, TN_EINVAL, "[%s] has %d outputs, expected at most %d",
                    section->name, line.n_refs, TN_MAX_YIELDS);
  const char *where = block_where(outer->assembly, section, tn_section_key(section, "outputs"));
  tn_status status = tn_line_inputs(inner, &line, tn_scope_own_path(inner, "outputs"), where, results);
  return status == TN_OK ? TN_OK : tn_error_add_context(outer->assembly->env, status, where, "outputs");
}

static tn_status block_run(const tn_model_scope *outer, tn_model_scope *inner, tn_section *section,
                           tn_results *results) {
  tn_assembly *a = outer->assembly;
  tn_line *lines;
  int32_t n;
  tn_key *key = tn_section_key(section, "layers");
  if (key == NULL)
    return tn_failf(a->env, TN_EINVAL, "%s: [%s] has no `layers`, expected a layer a line",
                    block_where(a, section, NULL), section->name);
  TN_TRY(tn_block_lines(a, key, &lines, &n));
  TN_TRY(tn_scope_run(inner, lines, n));
  return block_collect_outputs(outer, inner, section, results);
}

/* Errors of the block itself get the context "in block NAME"; errors of the call's arguments do not. */
static tn_status block_call(const tn_model_scope *outer, tn_model_scope *inner, const tn_use *use,
                            tn_section *section, tn_results *results) {
  tn_assembly *a = outer->assembly;
  block_args args = {NULL, 0, NULL};
  const char *what = tn_arena_printf(&a->arena, "in block '%s'", use->call->layer);
  if (what == NULL) return TN_ENOMEM;
  tn_status status = block_declare_args(outer, inner, section, &args);
  if (status != TN_OK) return tn_error_add_context(a->env, status, use->where, what);
  TN_TRY(block_pass_args(outer, inner, use, &args));
  TN_TRY(block_fill_defaults(inner, use, &args));
  TN_TRY(block_bind_inputs(outer, inner, use, section));
  status = block_run(outer, inner, section, results);
  return status == TN_OK ? TN_OK : tn_error_add_context(a->env, status, use->where, what);
}

/* A call that is wrong may leave them unread. */
static void block_mark_known_keys(tn_section *section) {
  static const char *const known[] = {"args", "inputs", "layers", "outputs", "flat"};
  section->used = true;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    tn_key *key = tn_section_key(section, known[i]);
    if (key != NULL) key->used = true;
  }
}

/* `flat = yes`: the layers of the block have their names without that of its use. */
static tn_status block_read_flat(const tn_model_scope *scope, tn_section *section, bool *flat) {
  tn_assembly *a = scope->assembly;
  tn_key *key = tn_section_key(section, "flat");
  *flat = key != NULL && tn_text_equal(key->value, "yes");
  if (key == NULL || *flat || tn_text_equal(key->value, "no")) return TN_OK;
  return tn_failf(a->env, TN_EINVAL, "%s: [%s] flat is '%s', expected yes or no",
                  block_where(a, section, key), section->name, key->value);
}

tn_status tn_use_block(const tn_model_scope *scope, const tn_use *use, tn_section *section,
                       tn_results *results) {
  tn_assembly *a = scope->assembly;
  if (a->depth == TN_MAX_BLOCK_DEPTH)
    return tn_failf(a->env, TN_EINVAL, "blocks nest deeper than %d; does block '%s' use itself?",
                    TN_MAX_BLOCK_DEPTH, use->call->layer);
  block_mark_known_keys(section);
  if (section->mistaken) { /* told at an earlier use */
    results->n = TN_MAX_YIELDS;
    return TN_OK;
  }
  bool flat;
  TN_TRY(block_read_flat(scope, section, &flat));
  tn_model_scope *inner = tn_arena_alloc(&a->arena, sizeof *inner);
  if (inner == NULL) return TN_ENOMEM;
  *inner = tn_scope_new(a);
  inner->data = scope->data;
  inner->prefix = flat ? scope->prefix : use->path;
  inner->own_prefix = use->path;
  inner->unnamed = flat ? scope->unnamed : !use->named;
  inner->outer = scope;
  inner->outer_where = use->where;
  inner->section = section;
  a->depth++;
  tn_status status = block_call(scope, inner, use, section, results);
  a->depth--;
  tn_scope_free(inner);
  return status == TN_OK ? TN_OK : tn_error_add_context(a->env, status, use->where, "");
}
