/* core/model/lines/value.c: expressions that compute with values of the model, as in `y = silu(gate) * up`.
 * Numbers are folded by the language, operations on values become ops (operation.c), and calls are layers,
 * blocks and ops without a name of their own. */
#include "core/model/assemble.h"

#include <math.h>
#include <string.h>

#include "core/graph/graph.h"

/* A call that was emitted. A chain of comparisons evaluates its middle twice. */
typedef struct value_made {
  const tn_expr *call;
  tn_results results;
  const struct value_made *next;
} value_made;

/* One expression being computed. */
typedef struct value_run {
  tn_value_place at;
  int32_t n_calls;
  const value_made *made;
  const tn_expr *root;
  tn_results *results; /* of `root`, if it is a call */
} value_run;

static tn_status value_compute(value_run *r, const tn_expr *expr, tn_value *value);

/* ---- names ---- */

static tn_status value_name(void *context, const char *name, tn_value *value) {
  const value_run *r = context;
  tn_val v = 0;
  if (!tn_scope_has(r->at.scope, name)) {
    *value = (tn_value){.kind = TN_VALUE_TEXT, .text = name};
    if (strcmp(name, "inf") == 0) *value = (tn_value){.kind = TN_VALUE_NUMBER, .number = INFINITY};
    if (strcmp(name, "inf") == 0 || tn_value_is_word(name)) return TN_OK;
    if (tn_callee_exists(r->at.scope->assembly, name)) return TN_OK;
  }
  TN_TRY(tn_scope_resolve(r->at.scope, name, &v));
  *value = tn_value_of_tensor(v);
  return TN_OK;
}

/* ---- calls ---- */

/* The arguments of a call, divided: values come first, options behind. */
typedef struct value_call {
  tn_callee callee;
  tn_item_call rest; /* without the values */
  tn_value operands[TN_MAX_YIELDS];
  int32_t n;
} value_call;

static tn_status value_fail_surplus(const value_run *r, const value_call *c) {
  const char *name = c->rest.layer;
  if (c->n == 0)
    return tn_failf(r->at.scope->assembly->env, TN_EINVAL,
                    "%s takes no value, its arguments are options; see `tenon inspect %s`", name,
                    c->callee.name);
  return tn_failf(r->at.scope->assembly->env, TN_EINVAL, "%s takes %s%d value%s, given more", name,
                  c->callee.min_in < c->n ? "at most " : "", c->n, c->n == 1 ? "" : "s");
}

static tn_status value_add_operand(const value_run *r, value_call *c, const tn_value *value) {
  if (c->n == TN_MAX_YIELDS || (c->callee.max_in >= 0 && c->n == c->callee.max_in))
    return value_fail_surplus(r, c);
  c->operands[c->n++] = *value;
  return TN_OK;
}

/* A list of values stands for several operands: concat([a, b], axis=1). */
bool tn_value_lists_values(const tn_value *value) {
  return value->kind == TN_VALUE_LIST && value->n_items > 0 && value->items[0].kind == TN_VALUE_TENSOR;
}

/* A word that is no value is a choice of an option, as in `pad(x, 1, same)`. */
static tn_status value_evaluate_argument(value_run *r, const tn_expr *expr, tn_value *value) {
  const tn_model_scope *scope = r->at.scope;
  if (expr->kind == TN_EXPR_WORD && !tn_scope_has(scope, expr->word))
    return tn_scope_evaluate(scope, expr, value);
  if (expr->kind == TN_EXPR_SHARED) return tn_scope_evaluate(scope, expr, value);
  return value_compute(r, expr, value);
}

/* Whether a positional argument is an operand. Numbers are, as long as operands are missing. */
static tn_status value_take_operand(const value_run *r, value_call *c, const tn_expr *expr,
                                    const tn_value *value, bool *taken) {
  bool is_list = tn_value_lists_values(value), is_value = is_list || value->kind == TN_VALUE_TENSOR;
  bool missing = c->n < c->callee.min_in && (c->callee.op != NULL || c->n > 0); /* linear(10) has no value */
  *taken = c->rest.n_args == 0 && (is_value || (missing && value->kind == TN_VALUE_NUMBER));
  if (is_value && !*taken)
    return tn_failf(r->at.scope->assembly->env, TN_EINVAL,
                    "%s has a value behind an option, expected values first, then options, as in "
                    "`concat(a, b, axis=1)`",
                    c->rest.layer);
  if (!*taken && c->n < c->callee.min_in && value->kind == TN_VALUE_TEXT && expr->kind == TN_EXPR_WORD) {
    tn_val unused;
    return tn_scope_resolve(r->at.scope, expr->word, &unused); /* the failure names the nearest value */
  }
  if (!*taken) return TN_OK;
  if (!is_list) return value_add_operand(r, c, value);
  for (int32_t i = 0; i < value->n_items; i++) TN_TRY(value_add_operand(r, c, &value->items[i]));
  return TN_OK;
}

static tn_status value_divide_arguments(value_run *r, const tn_item_call *call, value_call *c) {
  tn_arena *arena = &r->at.scope->assembly->arena;
  c->rest = (tn_item_call){.layer = call->layer};
  c->rest.args = tn_arena_alloc(arena, tn_size_mul((size_t)call->n_args + 1, sizeof *c->rest.args));
  if (c->rest.args == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < call->n_args; i++) {
    const tn_call_arg *arg = &call->args[i];
    tn_value value;
    bool taken = false;
    if (arg->name == NULL) {
      TN_TRY(value_evaluate_argument(r, arg->value, &value));
      TN_TRY(value_take_operand(r, c, arg->value, &value, &taken));
    }
    if (!taken) c->rest.args[c->rest.n_args++] = *arg;
  }
  return TN_OK;
}

/* The element type that numbers among the operands take: that of the first value, bool left aside. */
static int32_t value_operand_dtype(const value_run *r, const value_call *c) {
  for (int32_t i = 0; i < c->n; i++)
    if (c->operands[i].kind == TN_VALUE_TENSOR && c->operands[i].tensor != 0 &&
        tn_value_dtype(&r->at, &c->operands[i]) != TN_BOOL)
      return tn_value_dtype(&r->at, &c->operands[i]);
  return TN_F32;
}

static tn_status value_settle_operands(const value_run *r, const value_call *c, tn_val *in) {
  int32_t dtype = value_operand_dtype(r, c);
  for (int32_t i = 0; i < c->n; i++) {
    if (c->operands[i].kind == TN_VALUE_NUMBER) TN_TRY(tn_value_check_number(&r->at, &c->operands[i], dtype));
    TN_TRY(tn_value_settle(&r->at, &c->operands[i], dtype, &in[i]));
  }
  return TN_OK;
}

static tn_status value_check_count(const value_run *r, const value_call *c) {
  const char *name = c->rest.layer;
  if (c->n >= c->callee.min_in) return TN_OK;
  if (c->n == 0 && c->callee.layer != NULL)
    return tn_failf(
        r->at.scope->assembly->env, TN_EINVAL,
        "%s is given no value, expected one as its first argument, or `name: %s(...)` with ':' for a "
        "layer on the value of the line before",
        name, name);
  return tn_failf(r->at.scope->assembly->env, TN_EINVAL, "%s takes %s%d value%s, given %d", name,
                  c->callee.min_in == c->callee.max_in ? "" : "at least ", c->callee.min_in,
                  c->callee.min_in == 1 ? "" : "s", c->n);
}

/* Functions of numbers are computed at once, so that their results can be arguments: sqrt(head). */
static bool value_fold(const value_call *c, double *y) {
  return c->n == 1 && c->rest.n_args == 0 && c->callee.op != NULL && c->operands[0].kind == TN_VALUE_NUMBER &&
         tn_number_function(c->callee.name, c->operands[0].number, y);
}

/* Paths of calls differ, since random streams depend on them. */
static const char *value_call_path(value_run *r) {
  int32_t number = r->n_calls++;
  return number == 0 ? r->at.path
                     : tn_arena_printf(&r->at.scope->assembly->arena, "%s@%d", r->at.path, number);
}

static tn_status value_apply_call(value_run *r, const tn_item_call *call, tn_value *value,
                                  tn_results *results) {
  double folded;
  value_call *c = tn_arena_alloc(&r->at.scope->assembly->arena, sizeof *c);
  tn_val in[TN_MAX_YIELDS];
  if (c == NULL) return TN_ENOMEM;
  *c = (value_call){.n = 0};
  TN_TRY(tn_callee_find(r->at.scope->assembly, call->layer, &c->callee));
  TN_TRY(value_divide_arguments(r, call, c));
  TN_TRY(value_check_count(r, c));
  if (value_fold(c, &folded)) {
    *value = tn_value_of_number(folded);
    return TN_OK;
  }
  TN_TRY(value_settle_operands(r, c, in));
  tn_use use = {.call = &c->rest,
                .path = value_call_path(r),
                .inside = true,
                .where = r->at.where,
                .in = in,
                .n_in = c->n};
  if (use.path == NULL) return TN_ENOMEM;
  TN_TRY(tn_use_apply(r->at.scope, &use, results));
  *value = tn_value_of_tensor(results->v[0]);
  return TN_OK;
}

static const value_made *value_find_made(const value_run *r, const tn_expr *call) {
  const value_made *made = r->made;
  while (made != NULL && made->call != call) made = made->next;
  return made;
}

static tn_status value_note_made(value_run *r, const tn_expr *call, const tn_results *results) {
  value_made *made = tn_arena_alloc(&r->at.scope->assembly->arena, sizeof *made);
  if (made == NULL) return TN_ENOMEM;
  *made = (value_made){call, *results, r->made};
  r->made = made;
  return TN_OK;
}

static tn_status value_call_item(void *context, const tn_expr *expr, tn_value *value) {
  value_run *r = context;
  tn_item_call call = {.layer = expr->word, .args = expr->args, .n_args = expr->n_args};
  const tn_item_call *meant;
  tn_results results = {{0}, 0};
  bool is_root = expr == r->root;
  const value_made *made = value_find_made(r, expr);
  if (made != NULL) {
    *value = tn_value_of_tensor(made->results.v[0]);
    return TN_OK;
  }
  r->root = is_root ? NULL : r->root; /* calls among its arguments are not */
  TN_TRY(tn_callee_meant(r->at.scope, &call, &meant));
  TN_TRY(value_apply_call(r, meant, value, &results));
  if (value->kind != TN_VALUE_TENSOR) return TN_OK;
  if (is_root) *r->results = results;
  return value_note_made(r, expr, &results);
}

/* ---- parts ---- */

/* split(x, 2)[1] is the second value of the call. */
static tn_status value_pick(const value_run *r, const value_made *made, const tn_index *index, int32_t n,
                            tn_value *value) {
  int64_t i = n == 1 && index->kind == TN_INDEX_ONE ? tn_index_position(index, made->results.n) : -1;
  if (i < 0)
    return tn_failf(r->at.scope->assembly->env, TN_EINVAL,
                    "%s of the %d values of %s, expected the number of one of them, as in %s(...)[0]",
                    tn_index_text(&r->at.scope->assembly->arena, index, n), made->results.n, made->call->word,
                    made->call->word);
  *value = tn_value_of_tensor(made->results.v[i]);
  return TN_OK;
}

static tn_status value_part(void *context, const tn_expr *of, const tn_value *x, const tn_index *index,
                            int32_t n, tn_value *value) {
  const value_run *r = context;
  const value_made *made = value_find_made(r, of);
  tn_build_frame frame = tn_value_frame(&r->at);
  *value = *x;
  if (tn_value_is_unknown(x)) return TN_OK;
  if (made != NULL && made->results.n > 1) return value_pick(r, made, index, n, value);
  tn_builder_push(r->at.scope->assembly->b, &frame);
  tn_status status = tn_part_emit(r->at.scope, x->tensor, index, n, &value->tensor);
  tn_builder_pop(r->at.scope->assembly->b);
  return status;
}

/* ---- expressions ---- */

static tn_status value_operation(void *context, int32_t op, const tn_value *operands, int32_t n,
                                 tn_value *value) {
  const value_run *r = context;
  return tn_value_operate(&r->at, op, operands, n, value);
}

static tn_status value_compute(value_run *r, const tn_expr *expr, tn_value *value) {
  const tn_value_calls calls = {.name = value_name,
                                .operate = value_operation,
                                .call = value_call_item,
                                .part = value_part,
                                .context = r};
  tn_scope names = tn_scope_names(r->at.scope);
  names.calls = &calls;
  return tn_expr_evaluate(r->at.scope->assembly->env, &r->at.scope->assembly->arena, expr, &names, value);
}

tn_status tn_scope_compute(const tn_model_scope *scope, const tn_expr *expr, const char *path,
                           const char *where, tn_value *value, tn_results *results) {
  value_run r = {.at = {scope, path, where}, .root = expr, .results = results};
  results->n = 0;
  if (path == NULL) return TN_ENOMEM;
  TN_TRY(value_compute(&r, expr, value));
  if (value->kind != TN_VALUE_TENSOR || results->n > 0) return TN_OK;
  results->n = 1;
  return tn_value_settle(&r.at, value, TN_F32, &results->v[0]);
}

tn_status tn_scope_number(const tn_model_scope *scope, const tn_value *number, int32_t dtype,
                          const char *path, const char *where, tn_val *tensor) {
  const tn_value_place at = {scope, path, where};
  TN_TRY(tn_value_check_number(&at, number, dtype));
  return tn_value_settle(&at, number, dtype, tensor);
}
