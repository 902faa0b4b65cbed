/* core/model/lines/scan.c: `y, h: scan(cell) <- x, h0`: applies a block to the steps of a sequence, one after
 * the other, and carries its states: a loop (core/graph/loop). The block is applied once, to placeholders for
 * the part of a step and for the states; the nodes that this adds are the body of the loop, and nothing reads
 * them any more. docs/decisions/0076-loops.md has the reasons. */
#include <string.h>

#include "core/graph/loop/loop.h"
#include "core/model/assemble.h"
#include "tenon/ops.h"

typedef struct scan_run {
  const tn_model_scope *scope;
  const tn_use *use;
  tn_item_call cell; /* the call of the block */
  const char *block; /* its name */
  int64_t axis;
  bool reverse;
  int64_t steps;
  int32_t states;
  tn_val length;                /* 0: all sequences have all steps */
  tn_val number;                /* with length: placeholder for the number of the step */
  tn_results in;                /* placeholders for the part of a step, and for the states */
  tn_results out;               /* of the block */
  int32_t order[TN_MAX_YIELDS]; /* of the loop's states: their numbers, those with all steps first */
  tn_loop_parts parts;
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
  if (s->steps >= 1 && s->steps <= INT32_MAX) return TN_OK;
  return tn_failf(a->env, TN_EINVAL, "the sequence has %lld steps along axis %lld, expected 1 to 2^31 - 1",
                  (long long)s->steps, (long long)axis);
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
  return s->length != 0 ? scan_check_length(s) : TN_OK;
}

/* ---- placeholders ---- */

/* Between both, ops are named after the line. */
static void scan_begin(scan_run *s) { tn_builder_push(s->scope->assembly->b, &s->frame); }

static tn_status scan_end(const scan_run *s) {
  tn_build *b = s->scope->assembly->b;
  tn_status status = tn_build_status(b);
  tn_builder_pop(b);
  return status;
}

/* Dimension `from` of x becomes dimension `to`; the others keep their order. */
static tn_val scan_move_dimension(const scan_run *s, tn_val x, int64_t from, int64_t to) {
  tn_build *b = s->scope->assembly->b;
  int32_t rank = tn_val_type(b, x)->rank;
  int64_t order[TN_MAX_RANK], next = 0;
  for (int32_t i = 0; i < rank; i++) {
    next += i != to && next == from;
    order[i] = i == to ? from : next++;
  }
  return tn_transpose(b, x, rank, order);
}

/* Step t of a value of all steps, without their dimension, the first. */
static tn_val scan_take_step(const scan_run *s, tn_val all, int64_t t) {
  tn_build *b = s->scope->assembly->b;
  const tn_type type = tn_loop_step_type(tn_val_type(b, all));
  return tn_reshape(b, tn_slice_axis(b, all, 0, t, t + 1), type.rank, type.dims);
}

static tn_status scan_add_sequence(scan_run *s, tn_val all, tn_val *part) {
  *part = scan_take_step(s, all, 0);
  const tn_loop_value sequence = {.inner = *part, .outer = all};
  return tn_vec_push(s->scope->assembly->env, &s->parts.sequences, sequence);
}

/* The sequence with its steps first, and the numbers of the steps where sequences have lengths. */
static tn_status scan_add_placeholders(scan_run *s) {
  tn_build *b = s->scope->assembly->b;
  const tn_type numbers = {TN_I32, 1, {s->steps}};
  s->in.n = 1 + s->states;
  TN_TRY(scan_add_sequence(s, scan_move_dimension(s, s->use->in[0], s->axis, 0), &s->in.v[0]));
  if (s->length != 0) TN_TRY(scan_add_sequence(s, tn_iota(b, &numbers, 0), &s->number));
  for (int32_t i = 1; i < s->in.n; i++) s->in.v[i] = tn_copy(b, s->use->in[i]);
  return TN_OK;
}

/* ---- the step ---- */

static tn_status scan_check_step(const scan_run *s, const tn_results *step) {
  const tn_assembly *a = s->scope->assembly;
  char before[TN_TYPE_TEXT], behind[TN_TYPE_TEXT];
  if (step->n != 1 + s->states)
    return tn_failf(
        a->env, TN_EINVAL,
        "block '%s' has %d output%s, expected %d: that of the step, and the states in the order of "
        "`inputs`",
        s->block, step->n, step->n == 1 ? "" : "s", 1 + s->states);
  const tn_type *y = tn_val_type(a->b, step->v[0]);
  if (y->rank < s->axis || y->rank == TN_MAX_RANK)
    return tn_failf(a->env, TN_EINVAL,
                    "the output of a step is %s, expected %lld to %d dimensions, beside which the steps are "
                    "axis %lld",
                    tn_type_format(y, behind), (long long)s->axis, TN_MAX_RANK - 1, (long long)s->axis);
  for (int32_t i = 1; i < step->n; i++) {
    const tn_type *from = tn_val_type(a->b, s->in.v[i]), *to = tn_val_type(a->b, step->v[i]);
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

/* A commit takes effect at the end of the program, so it cannot be one of each step. */
static tn_status scan_check_commits(const scan_run *s, size_t before) {
  const tn_assembly *a = s->scope->assembly;
  const tn_graph *g = tn_builder_graph(a->b);
  if (g->commits.n == before) return TN_OK;
  const char *path = g->commits.v[before].path;
  return tn_failf(
      a->env, TN_EINVAL, "block '%s' changes the state '%s' in each step, expected %s", s->block, path,
      tn_quantize_layer(path) > 0 ? "[quantize] match without the layers of the block"
                                  : "layers without statistics: layer_norm in the place of batch_norm");
}

/* *known is false behind a mistake in the block, which is told. */
static tn_status scan_apply_block(scan_run *s, bool *known) {
  const tn_assembly *a = s->scope->assembly;
  tn_use use = *s->use;
  size_t commits = tn_builder_graph(a->b)->commits.n;
  use.call = &s->cell;
  use.in = s->in.v;
  use.n_in = s->in.n;
  use.text = NULL;
  TN_TRY(tn_use_apply(s->scope, &use, &s->out));
  *known = true;
  for (int32_t i = 0; i < s->out.n && *known; i++) *known = s->out.v[i] != 0;
  if (!*known) return TN_OK;
  TN_TRY(scan_check_step(s, &s->out));
  return scan_check_commits(s, commits);
}

/* `then` where the sequence has the step, else `otherwise`; 0: zero. */
static tn_val scan_choose(const scan_run *s, tn_val then, tn_val otherwise) {
  tn_build *b = s->scope->assembly->b;
  const tn_type type = *tn_val_type(b, then);
  int64_t dims[TN_MAX_RANK] = {tn_val_type(b, s->length)->dims[0]};
  for (int32_t i = 1; i < type.rank; i++) dims[i] = 1;
  tn_val has = tn_reshape(b, tn_gt(b, s->length, s->number), type.rank, dims);
  return tn_where(b, has, then, otherwise != 0 ? otherwise : tn_scalar(b, type.dtype, 0));
}

/* Of a sequence that has ended: no output, and the states before. */
static void scan_choose_ends(scan_run *s) {
  s->out.v[0] = scan_choose(s, s->out.v[0], 0);
  for (int32_t i = 1; i < s->out.n; i++) s->out.v[i] = scan_choose(s, s->out.v[i], s->in.v[i]);
}

/* ---- the loop ---- */

/* The state whose next value is the output of the step; 0: none. */
static int32_t scan_find_output_state(const scan_run *s) {
  for (int32_t i = 1; i < s->out.n; i++)
    if (s->out.v[i] == s->out.v[0]) return i;
  return 0;
}

/* The gradient needs the states of all steps, and an output that is a state has them. */
static tn_status scan_add_states(scan_run *s) {
  const tn_assembly *a = s->scope->assembly;
  int32_t output = scan_find_output_state(s), n = 0;
  if (output > 0) s->order[n++] = output;
  for (int32_t i = 1; i <= s->states; i++)
    if (i != output) s->order[n++] = i;
  s->parts.stacked = a->request->training ? n : output > 0;
  for (int32_t i = 0; i < n; i++) {
    const tn_loop_value state = {.inner = s->in.v[s->order[i]], .outer = s->use->in[s->order[i]]};
    TN_TRY(tn_vec_push(a->env, &s->parts.states, state));
    TN_TRY(tn_vec_push(a->env, &s->parts.next, s->out.v[s->order[i]]));
  }
  return output > 0 ? TN_OK : tn_vec_push(a->env, &s->parts.outputs, s->out.v[0]);
}

static void scan_take_results(const scan_run *s, tn_val first, tn_results *results) {
  tn_build *b = s->scope->assembly->b;
  int32_t n_outputs = (int32_t)s->parts.outputs.n;
  results->n = 1 + s->states;
  results->v[0] = scan_move_dimension(s, first, 0, s->axis);
  for (int32_t i = 0; i < s->states; i++) {
    tn_val state = tn_op_result(b, first, n_outputs + i);
    bool stacked = i < s->parts.stacked;
    results->v[s->order[i]] = stacked ? scan_take_step(s, state, s->reverse ? 0 : s->steps - 1) : state;
  }
}

static tn_status scan_emit_loop(scan_run *s, uint32_t first_node, tn_results *results) {
  tn_build *b = s->scope->assembly->b;
  if (s->length != 0) scan_choose_ends(s);
  TN_TRY(tn_build_status(b));
  s->parts.from = tn_builder_graph(b);
  s->parts.steps = s->steps;
  s->parts.reverse = s->reverse;
  TN_TRY(scan_add_states(s));
  TN_TRY(tn_loop_capture(&s->parts, first_node));
  tn_val first = tn_loop_emit(b, &s->parts);
  TN_TRY(tn_build_status(b));
  scan_take_results(s, first, results);
  return tn_build_status(b);
}

static tn_status scan_run_steps(scan_run *s, tn_results *results) {
  bool known;
  scan_begin(s);
  tn_status status = scan_add_placeholders(s), ended = scan_end(s);
  TN_TRY(status != TN_OK ? status : ended);
  uint32_t first_node = (uint32_t)tn_builder_graph(s->scope->assembly->b)->nodes.n;
  TN_TRY(scan_apply_block(s, &known));
  *results = (tn_results){.n = TN_MAX_YIELDS};
  if (!known) return TN_OK;
  scan_begin(s);
  status = scan_emit_loop(s, first_node, results);
  ended = scan_end(s);
  return status != TN_OK ? status : ended;
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
  tn_loop_parts_free(a->env, &s.parts);
  const char *what = use->named ? tn_arena_printf(&a->arena, "scan '%s'", use->path) : "scan";
  return status == TN_OK ? TN_OK
                         : tn_error_add_context(a->env, status, use->where, what != NULL ? what : "scan");
}
