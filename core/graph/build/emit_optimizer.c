/* core/graph/build/emit_optimizer.c: optimizers whose update is a formula. Its given values are the
 * parameter, the gradient, the states, the number of the update and the scheduled options; its targets are
 * the new parameter, or `kept` and `move`, whose difference it is, and the new states. */
#include "core/graph/build/emit_optimizer.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/config/options/option_value.h"
#include "core/config/options/options.h"
#include "core/graph/build/emit_formula.h"
#include "tenon/ops.h"

enum { STEP_TARGETS = 3 }; /* kept, move, g */

typedef struct optimizer_emitter {
  tn_build *b;
  const tn_optimizer *optimizer;
  const void *options;
  tn_arena arena;
  int32_t n_states, n_given;
  int32_t n_targets, kept;       /* the target `kept`; behind it are `move` and `g` */
  bool split;                    /* the text defines kept and move */
  const char **given, **targets; /* names: param, grad, states, updates, scheduled options; next_param ... */
  tn_val *values, *now;          /* of the given names, and of the targets */
  int32_t *dtypes;               /* of the targets */
  bool *want, *scalars;          /* the targets */
} optimizer_emitter;

static bool optimizer_has_state(const optimizer_emitter *e, const tn_optimizer_state *state) {
  const tn_option *option = state->when != NULL ? tn_options_find(&e->optimizer->item, state->when) : NULL;
  if (option == NULL) return state->when == NULL;
  const tn_option_value value = tn_option_load(option, e->options);
  return option->type == TN_OPT_FLOAT ? value.real != 0 : value.integer != 0;
}

static tn_status optimizer_check_conditions(const optimizer_emitter *e) {
  for (int32_t i = 0; i < e->n_states; i++) {
    const char *when = e->optimizer->states[i].when;
    if (when != NULL && tn_options_find(&e->optimizer->item, when) == NULL)
      return tn_failf(e->b, TN_EABI, "state '%s' depends on '%s', which is no option of the optimizer",
                      e->optimizer->states[i].name, when);
  }
  return TN_OK;
}

static bool optimizer_may_be_value(const tn_option *option) {
  return (option->flags & (TN_OPT_SCHEDULED | TN_OPT_SCHEDULABLE)) != 0;
}

/* Scheduled options behind the others, which formulas know as numbers. */
static int32_t optimizer_count_scheduled(const optimizer_emitter *e) {
  const tn_option *option;
  int32_t n = 0;
  for (int64_t i = 0; (option = tn_options_at(&e->optimizer->item, i)) != NULL; i++)
    n += optimizer_may_be_value(option);
  return n;
}

static tn_status optimizer_allocate(optimizer_emitter *e) {
  while (e->optimizer->states != NULL && e->optimizer->states[e->n_states].name != NULL) e->n_states++;
  size_t n = (size_t)(e->n_given = 3 + e->n_states + optimizer_count_scheduled(e)) + STEP_TARGETS;
  e->given = tn_arena_alloc(&e->arena, n * sizeof *e->given);
  e->values = tn_arena_alloc(&e->arena, n * sizeof *e->values);
  e->targets = tn_arena_alloc(&e->arena, n * sizeof *e->targets);
  e->now = tn_arena_alloc(&e->arena, n * sizeof *e->now);
  e->dtypes = tn_arena_alloc(&e->arena, n * sizeof *e->dtypes);
  e->want = tn_arena_alloc(&e->arena, n * sizeof *e->want);
  e->scalars = tn_arena_alloc(&e->arena, n * sizeof *e->scalars);
  bool have = e->given && e->values && e->targets && e->now && e->dtypes && e->want && e->scalars;
  return have ? optimizer_check_conditions(e) : TN_ENOMEM;
}

static tn_status optimizer_name_state(optimizer_emitter *e, int32_t i) {
  const tn_optimizer_state *state = &e->optimizer->states[i];
  tn_type scalar = {.dtype = TN_F32};
  e->given[2 + i] = state->in_formula != NULL ? state->in_formula : state->name;
  e->targets[1 + i] = tn_arena_printf(&e->arena, "next_%s", e->given[2 + i]);
  e->dtypes[1 + i] = TN_F32;
  e->want[1 + i] = optimizer_has_state(e, state);
  e->scalars[1 + i] = state->scalar != 0;
  if (e->want[1 + i])
    e->values[2 + i] = tn_build_state(
        e->b, state->name, state->scalar ? &scalar : tn_val_type(e->b, tn_build_in(e->b, 0)), "zeros");
  return e->targets[1 + i] != NULL ? TN_OK : TN_ENOMEM;
}

/* Powers of a decay lose digits in f32. */
static tn_val optimizer_widen(tn_build *b, const tn_option *option, tn_val value) {
  bool decays = (option->flags & TN_OPT_SCHEDULABLE) != 0 && tn_val_type(b, value)->rank == 0;
  return decays ? tn_to_dtype(b, value, TN_F64) : value;
}

static void optimizer_name_step(optimizer_emitter *e) {
  static const char *const names[STEP_TARGETS] = {"kept", "move", "g"};
  e->kept = 1 + e->n_states;
  e->n_targets = e->kept + STEP_TARGETS;
  for (int32_t i = 0; i < STEP_TARGETS; i++) {
    e->targets[e->kept + i] = names[i];
    e->dtypes[e->kept + i] = TN_F32;
  }
}

static tn_status optimizer_name(optimizer_emitter *e) {
  const tn_option *option;
  int32_t n = 2 + e->n_states;
  optimizer_name_step(e);
  e->given[0] = "param", e->values[0] = tn_build_in(e->b, 0);
  e->given[1] = "grad", e->values[1] = tn_build_in(e->b, 1);
  e->targets[0] = "next_param", e->dtypes[0] = TN_F32;
  for (int32_t i = 0; i < e->n_states; i++) TN_TRY(optimizer_name_state(e, i));
  e->given[n] = "updates";
  e->values[n++] = tn_to_dtype(e->b, tn_build_counter(e->b, TN_UPDATES), TN_F64);
  for (int64_t i = 0; (option = tn_options_at(&e->optimizer->item, i)) != NULL; i++) {
    tn_val value = optimizer_may_be_value(option) ? tn_build_option_value(e->b, option->name) : 0;
    if (value == 0) continue;
    e->given[n] = option->name;
    e->values[n++] = optimizer_widen(e->b, option, value);
  }
  e->n_given = n;
  return tn_build_status(e->b);
}

static bool optimizer_defines(const tn_formula *formula, int32_t target) {
  for (int32_t i = 0; i < formula->n_statements; i++)
    if (formula->statements[i].target == target) return true;
  return false;
}

/* A formula without next_param defines kept and move. */
static tn_status optimizer_choose_targets(optimizer_emitter *e, const tn_formula *formula) {
  bool all = true;
  e->split = !optimizer_defines(formula, 0);
  for (int32_t i = 0; i < e->kept + 2; i++) {
    bool needed = i == 0 ? !e->split : i < e->kept || e->split;
    if (i == 0 || i >= e->kept) e->want[i] = needed;
    all = all && (!needed || optimizer_defines(formula, i));
  }
  e->want[e->kept + 2] = e->split && optimizer_defines(formula, e->kept + 2);
  if (all) return TN_OK;
  return tn_formula_refuse(e->b, formula, formula->text + strlen(formula->text), formula->expects);
}

static tn_status optimizer_emit_formula(optimizer_emitter *e) {
  tn_formula formula = {.what = "formula",
                        .text = e->optimizer->formula,
                        .item = &e->optimizer->item,
                        .given = e->given,
                        .n_given = e->n_given,
                        .targets = e->targets,
                        .n_targets = e->n_targets,
                        .dtypes = e->dtypes,
                        .expects = "next_param, or kept and move, and next_ and the name of each state",
                        .scalars = e->scalars,
                        .partial = true,
                        .calls_any = e->optimizer->granularity == TN_UPDATE_PER_PARAMETER};
  TN_TRY(tn_formula_parse(e->b, &e->arena, false, &formula));
  TN_TRY(optimizer_choose_targets(e, &formula));
  return tn_formula_emit_partial(e->b, &formula, e->options, e->values, e->want, e->now);
}

/* A state that becomes a given value, such as the gradient, becomes a result of the formula's launch: to
 * commit the value itself would be a launch of its own. */
static tn_val optimizer_own_value(const optimizer_emitter *e, tn_val now) {
  for (int32_t i = 0; i < e->n_given; i++)
    if (now == e->values[i]) return tn_affine(e->b, now, 1, 0);
  return now;
}

/* The new parameter; and for a frame that asks for them kept, move, and the gradient that it follows.
 */
static void optimizer_yield(optimizer_emitter *e) {
  const tn_val *step = e->now + e->kept;
  bool asked = e->split && tn_builder_frame(e->b)->n_yield > STEP_TARGETS;
  tn_build_yield(e->b, 0, e->split ? tn_sub(e->b, step[0], step[1]) : e->now[0]);
  for (int32_t i = 0; asked && i < STEP_TARGETS; i++)
    tn_build_yield(e->b, 1 + i, step[i] != 0 ? step[i] : e->values[1]);
}

static tn_status optimizer_emit(optimizer_emitter *e) {
  TN_TRY(optimizer_allocate(e));
  TN_TRY(optimizer_name(e));
  TN_TRY(optimizer_emit_formula(e));
  for (int32_t i = 0; i < e->n_states; i++)
    if (e->want[1 + i]) tn_build_commit(e->b, e->values[2 + i], optimizer_own_value(e, e->now[1 + i]));
  optimizer_yield(e);
  return tn_build_status(e->b);
}

tn_status tn_optimizer_update(tn_build *b, const tn_optimizer *optimizer, const void *options) {
  optimizer_emitter e = {.b = b, .optimizer = optimizer, .options = options, .arena = tn_arena_new(b)};
  tn_status status = optimizer->check != NULL ? optimizer->check(&b->env, options) : TN_OK;
  if (status != TN_OK) return status;
  const tn_type *type = tn_val_type(b, tn_build_in(b, 0));
  bool formula = optimizer->update == NULL || (optimizer->takes != NULL && !optimizer->takes(options, type));
  if (!formula) return optimizer->update(b, options);
  status = optimizer_emit(&e);
  tn_arena_free(&e.arena);
  return status;
}
