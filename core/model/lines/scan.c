/* core/model/lines/scan.c: `y, h: scan(cell) <- x, h0`: applies a block to the steps of a sequence, one after
 * the other, and carries its states. The steps are unrolled, under the path of the line, so that they share
 * their parameters. docs/decisions/0074-scan.md has the reasons. */
#include <string.h>

#include "core/model/assemble.h"
#include "tenon/ops.h"

enum { SCAN_MOST_STEPS = 1000 };

typedef struct scan_run {
  const tn_model_scope *scope;
  const tn_use *use;
  tn_item_call cell; /* the call of the block, in every step */
  const char *block; /* its name */
  int64_t axis;
  bool reverse;
  int64_t steps;
  int32_t states;
  tn_val length;        /* 0: all sequences have all steps */
  tn_val *x, *y;        /* of each step */
  tn_results now;       /* inputs of the next step, of which the first is set in each */
  tn_build_frame frame; /* of the line */
} scan_run;

/* ---- arguments ---- */

static tn_status scan_read_cell(scan_run *s, const tn_call_arg *arg) {
  const tn_assembly *a = s->scope->assembly;
  const tn_expr *cell = arg->value;
  if (arg->name != NULL || (cell->kind != TN_EXPR_WORD && cell->kind != TN_EXPR_CALL))
    return tn_failf(a->env, TN_EINVAL,
                    "the first argument is not the name of a block, expected one as in scan(cell)");
  s->cell = (tn_item_call){.layer = cell->word, .args = cell->args, .n_args = cell->n_args};
  return TN_OK;
}

static tn_status scan_read_axis(scan_run *s, const tn_expr *expr) {
  tn_value value;
  TN_TRY(tn_scope_evaluate(s->scope, expr, &value));
  if (value.kind != TN_VALUE_NUMBER || !value.is_integer)
    return tn_failf(s->scope->assembly->env, TN_EINVAL, "axis is %s, expected a whole number",
                    tn_value_text(&s->scope->assembly->arena, &value));
  s->axis = (int64_t)value.number;
  return TN_OK;
}

static tn_status scan_read_arguments(scan_run *s) {
  const tn_item_call *call = s->use->call;
  tn_env *env = s->scope->assembly->env;
  s->axis = 1;
  if (call->n_args == 0)
    return tn_failf(env, TN_EINVAL, "the block is missing, expected its name as in scan(cell)");
  TN_TRY(scan_read_cell(s, &call->args[0]));
  for (int32_t i = 1; i < call->n_args; i++) {
    const char *name = call->args[i].name;
    if (name != NULL && tn_text_equal(name, "axis"))
      TN_TRY(scan_read_axis(s, call->args[i].value));
    else if (name != NULL && tn_text_equal(name, "reverse"))
      TN_TRY(tn_scope_holds(s->scope, call->args[i].value, &s->reverse));
    else
      return tn_failf(env, TN_EINVAL,
                      "argument %d is '%s', expected axis=N or reverse=yes; arguments of the block belong to "
                      "its call, as in scan(cell(64))",
                      i + 1, name != NULL ? name : "without a name");
  }
  return TN_OK;
}

/* The number of states follows from the inputs of the block. */
static tn_status scan_find_block(scan_run *s) {
  tn_assembly *a = s->scope->assembly;
  const tn_item_call *meant;
  tn_callee callee;
  TN_TRY(tn_callee_meant(s->scope, &s->cell, &meant));
  TN_TRY(tn_callee_find(a, meant->layer, &callee));
  s->block = meant->layer;
  if (callee.block == NULL)
    return tn_failf(a->env, TN_EINVAL, "'%s' is no block, expected a [block %s] of the file", s->block,
                    s->block);
  s->states = callee.min_in - 1;
  if (s->states > 0) return TN_OK;
  return tn_failf(a->env, TN_EINVAL,
                  "block '%s' has no state, expected `inputs` with the part of the sequence and the states "
                  "behind it, as in inputs = x, h",
                  s->block);
}

/* ---- inputs ---- */

static tn_status scan_check_axis(scan_run *s) {
  const tn_assembly *a = s->scope->assembly;
  const tn_type *x = tn_val_type(a->b, s->use->in[0]);
  int64_t axis = s->axis < 0 ? s->axis + x->rank : s->axis;
  if (axis < 1 || axis >= x->rank)
    return tn_failf(a->env, TN_EINVAL,
                    "axis is %lld, expected 1 to %d for a sequence with %d dimensions, of which the first is "
                    "the batch",
                    (long long)s->axis, x->rank - 1, x->rank);
  s->axis = axis;
  s->steps = x->dims[axis];
  if (s->steps >= 1 && s->steps <= SCAN_MOST_STEPS) return TN_OK;
  return tn_failf(
      a->env, TN_EINVAL,
      "the sequence has %lld steps along axis %lld, expected 1 to %d: each is a part of the graph; "
      "lstm, gru and rnn take longer ones",
      (long long)s->steps, (long long)axis, SCAN_MOST_STEPS);
}

static tn_status scan_check_length(const scan_run *s) {
  const tn_assembly *a = s->scope->assembly;
  const tn_type *length = tn_val_type(a->b, s->length);
  const tn_type *x = tn_val_type(a->b, s->use->in[0]);
  char text[TN_TYPE_TEXT];
  if (length->dtype == TN_I32 && length->rank == 1 && length->dims[0] == x->dims[0]) return TN_OK;
  return tn_failf(a->env, TN_EINVAL,
                  "the value behind the states is %s, expected the number of steps of each of %lld sequences "
                  "as i32",
                  tn_type_format(length, text), (long long)x->dims[0]);
}

static tn_status scan_check_inputs(scan_run *s) {
  tn_assembly *a = s->scope->assembly;
  int32_t least = 1 + s->states, n = s->use->n_in;
  if (n < least || n > least + 1)
    return tn_failf(
        a->env, TN_EINVAL,
        "takes %d inputs, given %d: the sequence and the first value of each state of block '%s', "
        "and the lengths of the sequences unless all have all steps",
        least, n, s->block);
  TN_TRY(scan_check_axis(s));
  s->length = n > least ? s->use->in[least] : 0;
  if (s->length != 0) TN_TRY(scan_check_length(s));
  s->now.n = least;
  memcpy(s->now.v, s->use->in, (size_t)least * sizeof *s->now.v);
  s->x = tn_arena_alloc(&a->arena, tn_size_mul((size_t)s->steps, sizeof *s->x));
  s->y = tn_arena_alloc(&a->arena, tn_size_mul((size_t)s->steps, sizeof *s->y));
  return s->x != NULL && s->y != NULL ? TN_OK : TN_ENOMEM;
}

/* ---- ops ---- */

/* x without the dimension of steps, or with it as 1. */
static tn_val scan_reshape(const scan_run *s, tn_val x, bool with) {
  tn_build *b = s->scope->assembly->b;
  const tn_type *type = tn_val_type(b, x);
  int64_t dims[TN_MAX_RANK + 1];
  int32_t rank = 0;
  for (int32_t i = 0; i <= type->rank; i++) {
    if (with && i == s->axis) dims[rank++] = 1;
    if (i < type->rank && (with || i != s->axis)) dims[rank++] = type->dims[i];
  }
  return tn_reshape(b, x, rank, dims);
}

/* Divides n steps from `first` on, which x has, into halves until they are single. */
static void scan_divide(const scan_run *s, tn_val x, int64_t first, int64_t n) {
  tn_build *b = s->scope->assembly->b;
  if (n == 1) {
    s->x[first] = scan_reshape(s, x, false);
    return;
  }
  tn_val half = tn_slice_axis(b, x, (int32_t)s->axis, 0, n / 2),
         rest = tn_slice_axis(b, x, (int32_t)s->axis, n / 2, n);
  if (half == 0 || rest == 0) return; /* the builder keeps the failure */
  scan_divide(s, half, first, n / 2);
  scan_divide(s, rest, first + n / 2, n - n / 2);
}

/* `then` where the sequence has step t, else `otherwise`; 0: zero. */
static tn_val scan_choose(const scan_run *s, int64_t t, tn_val then, tn_val otherwise) {
  tn_build *b = s->scope->assembly->b;
  const tn_type type = *tn_val_type(b, then);
  int64_t dims[TN_MAX_RANK] = {tn_val_type(b, s->length)->dims[0]};
  for (int32_t i = 1; i < type.rank; i++) dims[i] = 1;
  tn_val has = tn_gt(b, s->length, tn_scalar(b, TN_I32, (double)t));
  has = tn_reshape(b, has, type.rank, dims);
  return tn_where(b, has, then, otherwise != 0 ? otherwise : tn_scalar(b, type.dtype, 0));
}

/* Between both, ops are named after the line. */
static void scan_begin(scan_run *s) { tn_builder_push(s->scope->assembly->b, &s->frame); }

static tn_status scan_end(const scan_run *s) {
  tn_build *b = s->scope->assembly->b;
  tn_status status = tn_build_status(b);
  tn_builder_pop(b);
  return status;
}

/* The results of step t: of a sequence that has ended before it, no output and the states before. */
static void scan_choose_ends(const scan_run *s, int64_t t, tn_results *step) {
  step->v[0] = scan_choose(s, t, step->v[0], 0);
  for (int32_t i = 1; i < step->n; i++) step->v[i] = scan_choose(s, t, step->v[i], s->now.v[i]);
}

static tn_val scan_join_outputs(const scan_run *s) {
  for (int64_t i = 0; i < s->steps; i++) s->y[i] = scan_reshape(s, s->y[i], true);
  return tn_concat(s->scope->assembly->b, s->steps, s->y, s->axis);
}

/* ---- steps ---- */

static tn_status scan_check_step(const scan_run *s, const tn_results *step) {
  const tn_assembly *a = s->scope->assembly;
  char before[TN_TYPE_TEXT], behind[TN_TYPE_TEXT];
  const tn_type *y = tn_val_type(a->b, step->v[0]);
  if (step->n != 1 + s->states)
    return tn_failf(
        a->env, TN_EINVAL,
        "block '%s' has %d output%s, expected %d: that of the step, and the states in the order of "
        "`inputs`",
        s->block, step->n, step->n == 1 ? "" : "s", 1 + s->states);
  if (y->rank < s->axis || y->rank == TN_MAX_RANK)
    return tn_failf(a->env, TN_EINVAL,
                    "the output of a step is %s, expected %lld to %d dimensions, beside which the steps are "
                    "axis %lld",
                    tn_type_format(y, behind), (long long)s->axis, TN_MAX_RANK - 1, (long long)s->axis);
  for (int32_t i = 1; i < step->n; i++) {
    const tn_type *from = tn_val_type(a->b, s->now.v[i]), *to = tn_val_type(a->b, step->v[i]);
    if (!tn_type_equal(from, to))
      return tn_failf(a->env, TN_EINVAL,
                      "state %d of block '%s' is %s before a step and %s behind it, expected the same", i,
                      s->block, tn_type_format(from, before), tn_type_format(to, behind));
    if (s->length != 0 && (to->rank == 0 || to->dims[0] != tn_val_type(a->b, s->length)->dims[0]))
      return tn_failf(
          a->env, TN_EINVAL,
          "state %d of block '%s' is %s, expected the batch as its first dimension, since sequences "
          "have lengths",
          i, s->block, tn_type_format(to, behind));
  }
  return TN_OK;
}

/* *known is false behind a mistake in the block, which is told. */
static tn_status scan_step(scan_run *s, int64_t t, bool first, bool *known) {
  tn_assembly *a = s->scope->assembly;
  tn_use use = *s->use;
  tn_results step = {{0}, 0};
  s->now.v[0] = s->x[t];
  use.call = &s->cell;
  use.in = s->now.v;
  use.n_in = s->now.n;
  use.text = NULL;
  a->sharing += !first;
  tn_status status = tn_use_apply(s->scope, &use, &step);
  a->sharing -= !first;
  if (status != TN_OK) return status;
  for (int32_t i = 0; i < step.n && *known; i++) *known = step.v[i] != 0;
  if (!*known) return TN_OK;
  TN_TRY(scan_check_step(s, &step));
  if (s->length != 0) {
    scan_begin(s);
    scan_choose_ends(s, t, &step);
    TN_TRY(scan_end(s));
  }
  s->y[t] = step.v[0];
  s->now = step;
  return TN_OK;
}

static tn_status scan_run_steps(scan_run *s, tn_results *results) {
  bool known = true;
  scan_begin(s);
  scan_divide(s, s->use->in[0], 0, s->steps);
  TN_TRY(scan_end(s));
  for (int64_t i = 0; i < s->steps && known; i++)
    TN_TRY(scan_step(s, s->reverse ? s->steps - 1 - i : i, i == 0, &known));
  *results = (tn_results){.n = TN_MAX_YIELDS};
  if (!known) return TN_OK;
  *results = s->now;
  scan_begin(s);
  results->v[0] = scan_join_outputs(s);
  return scan_end(s);
}

tn_status tn_use_scan(const tn_model_scope *scope, const tn_use *use, tn_results *results) {
  tn_assembly *a = scope->assembly;
  scan_run s = {
      .scope = scope, .use = use, .frame = tn_value_frame(&(tn_value_place){scope, use->path, use->where})};
  tn_status status = scan_read_arguments(&s);
  if (status == TN_OK) status = scan_find_block(&s);
  if (status == TN_OK && tn_use_is_unknown(use)) {
    results->n = TN_MAX_YIELDS;
    return TN_OK;
  }
  if (status == TN_OK) status = scan_check_inputs(&s);
  if (status == TN_OK) status = scan_run_steps(&s, results);
  const char *what = use->named ? tn_arena_printf(&a->arena, "scan '%s'", use->path) : "scan";
  return status == TN_OK ? TN_OK
                         : tn_error_add_context(a->env, status, use->where, what != NULL ? what : "scan");
}
