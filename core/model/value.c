/* core/model/value.c: expressions that compute with values of the model, as in `y = silu(gate) * up`. Numbers
 * are folded by the language, operations on values become ops (core/graph/build/term.h), and calls are
 * layers, blocks and ops without a name of their own. */
#include "core/model/assemble.h"

#include <math.h>
#include <string.h>

#include "core/graph/build/term.h"
#include "core/graph/graph.h"

enum { MOST_OPERANDS = 3 };

/* A call that was emitted. A chain of comparisons evaluates its middle twice. */
typedef struct value_made {
  const tn_expr *call;
  tn_results results;
  const struct value_made *next;
} value_made;

/* One expression being computed. */
typedef struct value_run {
  const tn_model_scope *scope;
  const char *path, *where; /* of its ops */
  int32_t n_calls;
  const value_made *made;
  const tn_expr *root;
  tn_results *results; /* of `root`, if it is a call */
} value_run;

static tn_status value_compute(value_run *r, const tn_expr *expr, tn_value *value);

/* ---- names ---- */

static bool value_is_word(const char *name) {
  static const char *const words[] = {"no", "yes", "false", "true", "off", "on"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(words[i], name) == 0) return true;
  return false;
}

static tn_value value_of_tensor(tn_val v) {
  return (tn_value){.kind = TN_VALUE_TENSOR, .tensor = v, .number = 1};
}

static tn_value value_of_number(double number) {
  bool whole = number == floor(number) && fabs(number) <= 0x1p53;
  return (tn_value){.kind = TN_VALUE_NUMBER, .number = number, .is_integer = whole};
}

static tn_status value_name(void *context, const char *name, tn_value *value) {
  const value_run *r = context;
  tn_val v = 0;
  if (!tn_scope_has(r->scope, name)) {
    *value = (tn_value){.kind = TN_VALUE_TEXT, .text = name};
    if (strcmp(name, "inf") == 0) *value = (tn_value){.kind = TN_VALUE_NUMBER, .number = INFINITY};
    if (strcmp(name, "inf") == 0 || value_is_word(name)) return TN_OK;
    if (tn_callee_exists(r->scope->assembly, name)) return TN_OK;
  }
  TN_TRY(tn_scope_resolve(r->scope, name, &v));
  *value = value_of_tensor(v);
  return TN_OK;
}

/* ---- operations ---- */

/* "'+' on f32[8, 4] and 2". */
static const char *value_describe(const value_run *r, int32_t op, const tn_value *operands, int32_t n) {
  tn_text text = tn_text_new(r->scope->assembly->env);
  tn_text_addf(&text, "'%s' on ", tn_operator_name(op));
  for (int32_t i = 0; i < n; i++) {
    char type[TN_TYPE_TEXT];
    const char *shown = operands[i].kind == TN_VALUE_TENSOR
                            ? tn_type_format(tn_val_type(r->scope->assembly->b, operands[i].tensor), type)
                            : tn_value_text(&r->scope->assembly->arena, &operands[i]);
    tn_text_addf(&text, "%s%s", i == 0 ? "" : n == 3 && i == 1 ? ", " : " and ", shown != NULL ? shown : "?");
  }
  const char *kept = text.failed ? NULL : tn_arena_strdup(&r->scope->assembly->arena, text.v);
  tn_text_free(&text);
  return kept != NULL ? kept : "an operation";
}

static int32_t value_dtype(const value_run *r, const tn_value *value) {
  return tn_val_type(r->scope->assembly->b, value->tensor)->dtype;
}

/* The kinds of elements that an operator takes. */
enum { TAKES_NUMBERS, TAKES_FLOATS, TAKES_BOOL, TAKES_ALL };
static int32_t value_operator_takes(int32_t op) {
  switch (op) {
  case TN_BIN_AND:
  case TN_BIN_OR:
  case TN_UN_NOT: return TAKES_BOOL;
  case TN_BIN_DIV: return TAKES_FLOATS;
  case TN_BIN_EQ:
  case TN_BIN_NE:
  case TN_CHOOSE: return TAKES_ALL;
  default: return TAKES_NUMBERS;
  }
}

static tn_status value_check_tensor(const value_run *r, int32_t op, const tn_value *value) {
  const tn_env *env = r->scope->assembly->env;
  int32_t takes = value_operator_takes(op), dtype = value_dtype(r, value);
  if (takes == TAKES_BOOL && dtype != TN_BOOL)
    return tn_failf(env, TN_EINVAL, "expected bool, the result of a comparison, as in `x > 0`; found %s",
                    tn_dtype_name(dtype));
  if ((takes == TAKES_FLOATS || takes == TAKES_NUMBERS) && dtype == TN_BOOL)
    return tn_failf(env, TN_EINVAL, "expected numbers, found bool; write cast(x, to=f32) for 1 and 0");
  if (takes == TAKES_FLOATS && !tn_dtype_is_float(dtype))
    return tn_failf(env, TN_EINVAL, "expected floats, found %s; write cast(x, to=f32)", tn_dtype_name(dtype));
  return TN_OK;
}

/* A number takes the element type of the values beside it, which has to hold it. */
static tn_status value_check_number(const value_run *r, const tn_value *number, int32_t dtype) {
  const tn_env *env = r->scope->assembly->env;
  if (tn_dtype_is_float(dtype)) return TN_OK;
  if (dtype == TN_BOOL && number->number != 0 && number->number != 1)
    return tn_failf(env, TN_EINVAL, "a number takes the type of the value beside it, bool, expected 0 or 1");
  if (number->number != floor(number->number) || fabs(number->number) > 9e15)
    return tn_failf(env, TN_EINVAL,
                    "a number takes the type of the value beside it, %s, and %s is no whole number; write "
                    "cast(x, to=f32)",
                    tn_dtype_name(dtype), tn_value_text(&r->scope->assembly->arena, number));
  return TN_OK;
}

/* Operands are numbers or values. Values have one element type, which holds the numbers. */
static tn_status value_check_operands(const value_run *r, int32_t op, const tn_value *operands, int32_t n) {
  const tn_env *env = r->scope->assembly->env;
  int32_t dtype = TN_ANY;
  for (int32_t i = 0; i < n; i++) {
    if (op == TN_CHOOSE && i == 1) continue; /* the condition */
    if (operands[i].kind == TN_VALUE_NUMBER) continue;
    if (operands[i].kind != TN_VALUE_TENSOR)
      return tn_failf(env, TN_EINVAL, "expected a value or a number, found '%s'",
                      tn_value_text(&r->scope->assembly->arena, &operands[i]));
    TN_TRY(value_check_tensor(r, op, &operands[i]));
    if (dtype != TN_ANY && dtype != value_dtype(r, &operands[i]))
      return tn_failf(env, TN_EINVAL, "expected one element type on both sides; write cast(x, to=%s)",
                      tn_dtype_name(tn_dtype_is_float(dtype) ? dtype : value_dtype(r, &operands[i])));
    dtype = value_dtype(r, &operands[i]);
  }
  for (int32_t i = 0; i < n && dtype != TN_ANY; i++)
    if (operands[i].kind == TN_VALUE_NUMBER) TN_TRY(value_check_number(r, &operands[i], dtype));
  if (op == TN_CHOOSE) TN_TRY(value_check_tensor(r, TN_UN_NOT, &operands[1]));
  if ((op == TN_BIN_FLOORDIV || op == TN_BIN_MOD) && operands[1].kind == TN_VALUE_NUMBER &&
      operands[1].number == 0)
    return tn_failf(env, TN_EINVAL, "expected a divisor other than 0");
  return TN_OK;
}

static tn_term value_apply(const tn_terms *e, int32_t op, const tn_term *x) {
  switch (op) {
  case TN_UN_NEG: return tn_term_negate(e, x[0]);
  case TN_UN_NOT: return tn_term_not(e, x[0]);
  case TN_BIN_OR: return tn_term_logic(e, "or", x[0], x[1]);
  case TN_BIN_AND: return tn_term_logic(e, "and", x[0], x[1]);
  case TN_BIN_ADD: return tn_term_add(e, x[0], x[1]);
  case TN_BIN_SUB: return tn_term_subtract(e, x[0], x[1]);
  case TN_BIN_MUL: return tn_term_multiply(e, x[0], x[1]);
  case TN_BIN_DIV: return tn_term_divide(e, x[0], x[1]);
  case TN_BIN_FLOORDIV: return tn_term_binary(e, "floor_divide", x[0], x[1]);
  case TN_BIN_MOD: return tn_term_binary(e, "remainder", x[0], x[1]);
  case TN_BIN_POW: return tn_term_raise(e, x[0], x[1]);
  case TN_CHOOSE: return tn_term_choose(e, x[0], x[1], x[2]);
  default: return tn_term_compare(e, (tn_term_comparison)(op - TN_BIN_EQ), x[0], x[1]);
  }
}

/* The arithmetic of the line belongs to the line's path. */
static tn_build_frame value_frame(const value_run *r) {
  const tn_model_request *request = r->scope->assembly->request;
  return (tn_build_frame){
      .prefix = r->path, .where = r->where, .training = request->training, .seed = request->seed};
}

static tn_term value_term(const tn_value *value) {
  if (value->kind == TN_VALUE_NUMBER) return tn_term_of_number(value->number);
  return (tn_term){.scale = value->number, .value = value->tensor};
}

/* yes and no are 1 and 0 beside a value. */
static tn_value value_of_word(const tn_value *value) {
  if (value->kind != TN_VALUE_TEXT || !value_is_word(value->text)) return *value;
  return value_of_number(tn_value_true(value) ? 1 : 0);
}

static tn_status value_emit(const value_run *r, int32_t op, const tn_value *operands, int32_t n,
                            tn_value *value) {
  tn_build *b = r->scope->assembly->b;
  tn_build_frame frame = value_frame(r);
  tn_term x[MOST_OPERANDS];
  tn_terms terms = {b, TN_F32};
  for (int32_t i = 0; i < n; i++) x[i] = value_term(&operands[i]);
  TN_TRY(value_check_operands(r, op, operands, n));
  tn_builder_push(b, &frame);
  tn_term made = value_apply(&terms, op, x);
  tn_status status = tn_build_status(b);
  tn_builder_pop(b);
  *value = made.is_number ? value_of_number(made.number)
                          : (tn_value){.kind = TN_VALUE_TENSOR, .tensor = made.value, .number = made.scale};
  return status;
}

static bool value_is_unknown(const tn_value *value) {
  return value->kind == TN_VALUE_TENSOR && value->tensor == 0;
}

/* Skips "file.ini:9: add: " at the start of the text. */
static const char *value_error_behind_op(const char *text, const char *where) {
  text = tn_error_text_behind(text, where, strlen(where));
  return tn_error_text_behind(text, text, strspn(text, "abcdefghijklmnopqrstuvwxyz_"));
}

static tn_status value_operate(void *context, int32_t op, const tn_value *given, int32_t n, tn_value *value) {
  const value_run *r = context;
  tn_env *env = r->scope->assembly->env;
  tn_value operands[MOST_OPERANDS];
  for (int32_t i = 0; i < n; i++) operands[i] = value_of_word(&given[i]);
  *value = value_of_tensor(0);
  for (int32_t i = 0; i < n; i++)
    if (value_is_unknown(&operands[i])) return TN_OK;
  tn_status status = value_emit(r, op, operands, n, value);
  if (status != TN_EINVAL) return status;
  const char *text =
      tn_arena_strdup(&r->scope->assembly->arena, value_error_behind_op(tn_error_text(env), r->where));
  return tn_failf(env, status, "%s: %s", value_describe(r, op, operands, n), text != NULL ? text : "");
}

/* The value as a tensor, with its pending factor applied. */
static tn_status value_settle(const value_run *r, const tn_value *value, int32_t dtype, tn_val *tensor) {
  tn_build *b = r->scope->assembly->b;
  tn_terms terms = {b, dtype};
  tn_build_frame frame = value_frame(r);
  *tensor = 0;
  if (value_is_unknown(value)) return TN_OK;
  tn_builder_push(b, &frame);
  *tensor = tn_term_tensor(&terms, value_term(value), dtype);
  tn_status status = tn_build_status(b);
  tn_builder_pop(b);
  return status;
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
    return tn_failf(r->scope->assembly->env, TN_EINVAL,
                    "%s takes no value, its arguments are options; see `tenon inspect %s`", name,
                    c->callee.name);
  return tn_failf(r->scope->assembly->env, TN_EINVAL, "%s takes %s%d value%s, given more", name,
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
  const tn_model_scope *scope = r->scope;
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
    return tn_failf(r->scope->assembly->env, TN_EINVAL,
                    "%s has a value behind an option, expected values first, then options, as in "
                    "`concat(a, b, axis=1)`",
                    c->rest.layer);
  if (!*taken && c->n < c->callee.min_in && value->kind == TN_VALUE_TEXT && expr->kind == TN_EXPR_WORD) {
    tn_val unused;
    return tn_scope_resolve(r->scope, expr->word, &unused); /* the failure names the nearest value */
  }
  if (!*taken) return TN_OK;
  if (!is_list) return value_add_operand(r, c, value);
  for (int32_t i = 0; i < value->n_items; i++) TN_TRY(value_add_operand(r, c, &value->items[i]));
  return TN_OK;
}

static tn_status value_divide_arguments(value_run *r, const tn_item_call *call, value_call *c) {
  tn_arena *arena = &r->scope->assembly->arena;
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
        value_dtype(r, &c->operands[i]) != TN_BOOL)
      return value_dtype(r, &c->operands[i]);
  return TN_F32;
}

static tn_status value_settle_operands(const value_run *r, const value_call *c, tn_val *in) {
  int32_t dtype = value_operand_dtype(r, c);
  for (int32_t i = 0; i < c->n; i++) {
    if (c->operands[i].kind == TN_VALUE_NUMBER) TN_TRY(value_check_number(r, &c->operands[i], dtype));
    TN_TRY(value_settle(r, &c->operands[i], dtype, &in[i]));
  }
  return TN_OK;
}

static tn_status value_check_count(const value_run *r, const value_call *c) {
  const char *name = c->rest.layer;
  if (c->n >= c->callee.min_in) return TN_OK;
  if (c->n == 0 && c->callee.layer != NULL)
    return tn_failf(
        r->scope->assembly->env, TN_EINVAL,
        "%s is given no value, expected one as its first argument, or `name: %s(...)` with ':' for a "
        "layer on the value of the line before",
        name, name);
  return tn_failf(r->scope->assembly->env, TN_EINVAL, "%s takes %s%d value%s, given %d", name,
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
  return number == 0 ? r->path : tn_arena_printf(&r->scope->assembly->arena, "%s@%d", r->path, number);
}

static tn_status value_apply_call(value_run *r, const tn_item_call *call, tn_value *value,
                                  tn_results *results) {
  double folded;
  value_call *c = tn_arena_alloc(&r->scope->assembly->arena, sizeof *c);
  tn_val in[TN_MAX_YIELDS];
  if (c == NULL) return TN_ENOMEM;
  *c = (value_call){.n = 0};
  TN_TRY(tn_callee_find(r->scope->assembly, call->layer, &c->callee));
  TN_TRY(value_divide_arguments(r, call, c));
  TN_TRY(value_check_count(r, c));
  if (value_fold(c, &folded)) {
    *value = value_of_number(folded);
    return TN_OK;
  }
  TN_TRY(value_settle_operands(r, c, in));
  tn_use use = {.call = &c->rest,
                .path = value_call_path(r),
                .inside = true,
                .where = r->where,
                .in = in,
                .n_in = c->n};
  if (use.path == NULL) return TN_ENOMEM;
  TN_TRY(tn_use_apply(r->scope, &use, results));
  *value = value_of_tensor(results->v[0]);
  return TN_OK;
}

static const value_made *value_find_made(const value_run *r, const tn_expr *call) {
  const value_made *made = r->made;
  while (made != NULL && made->call != call) made = made->next;
  return made;
}

static tn_status value_note_made(value_run *r, const tn_expr *call, const tn_results *results) {
  value_made *made = tn_arena_alloc(&r->scope->assembly->arena, sizeof *made);
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
    *value = value_of_tensor(made->results.v[0]);
    return TN_OK;
  }
  r->root = is_root ? NULL : r->root; /* calls among its arguments are not */
  TN_TRY(tn_callee_meant(r->scope, &call, &meant));
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
    return tn_failf(r->scope->assembly->env, TN_EINVAL,
                    "%s of the %d values of %s, expected the number of one of them, as in %s(...)[0]",
                    tn_index_text(&r->scope->assembly->arena, index, n), made->results.n, made->call->word,
                    made->call->word);
  *value = value_of_tensor(made->results.v[i]);
  return TN_OK;
}

static tn_status value_part(void *context, const tn_expr *of, const tn_value *x, const tn_index *index,
                            int32_t n, tn_value *value) {
  const value_run *r = context;
  const value_made *made = value_find_made(r, of);
  tn_build_frame frame = value_frame(r);
  if (made != NULL && made->results.n > 1) return value_pick(r, made, index, n, value);
  *value = *x;
  if (value_is_unknown(x)) return TN_OK;
  tn_builder_push(r->scope->assembly->b, &frame);
  tn_status status = tn_part_emit(r->scope, x->tensor, index, n, &value->tensor);
  tn_builder_pop(r->scope->assembly->b);
  return status;
}

/* ---- expressions ---- */

static tn_status value_compute(value_run *r, const tn_expr *expr, tn_value *value) {
  const tn_value_calls calls = {.name = value_name,
                                .operate = value_operate,
                                .call = value_call_item,
                                .part = value_part,
                                .context = r};
  tn_scope names = tn_scope_names(r->scope);
  names.calls = &calls;
  return tn_expr_evaluate(r->scope->assembly->env, &r->scope->assembly->arena, expr, &names, value);
}

tn_status tn_scope_compute(const tn_model_scope *scope, const tn_expr *expr, const char *path,
                           const char *where, tn_value *value, tn_results *results) {
  value_run r = {.scope = scope, .path = path, .where = where, .root = expr, .results = results};
  results->n = 0;
  if (path == NULL) return TN_ENOMEM;
  TN_TRY(value_compute(&r, expr, value));
  if (value->kind != TN_VALUE_TENSOR || results->n > 0) return TN_OK;
  results->n = 1;
  return value_settle(&r, value, TN_F32, &results->v[0]);
}

tn_status tn_scope_number(const tn_model_scope *scope, const tn_value *number, int32_t dtype,
                          const char *path, const char *where, tn_val *tensor) {
  const value_run r = {.scope = scope, .path = path, .where = where};
  TN_TRY(value_check_number(&r, number, dtype));
  return value_settle(&r, number, dtype, tensor);
}
