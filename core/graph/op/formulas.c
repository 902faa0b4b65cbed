/* core/graph/op/formulas.c: the formula and the gradient of an op, parsed. */
#include <string.h>

#include "core/graph/op/schema.h"

static tn_status formulas_check(const void *handle, const tn_op_def *def) {
  const tn_op *op = def->op;
  if (op->formula != NULL && (op->infer != NULL || op->decompose != NULL || op->grad != NULL))
    return tn_failf(handle, TN_EABI,
                    "op %s has a formula: infer, decompose and grad follow from it, expected NULL",
                    op->item.name);
  if (op->gradient != NULL && (op->grad != NULL || (op->flags & TN_OP_NONDIFF) != 0))
    return tn_failf(handle, TN_EABI,
                    "op %s has a gradient as text, expected grad NULL and no flag TN_OP_NONDIFF",
                    op->item.name);
  if (def->variadic || def->n_results < 1)
    return tn_failf(handle, TN_EABI, "op %s has a %s, expected a result and no operand marked *",
                    op->item.name, op->formula != NULL ? "formula" : "gradient");
  return TN_OK;
}

/* The names of operands, results and, with a d in front, gradients of results. */
static const char **formulas_names(tn_arena *arena, const tn_op_def *def) {
  int32_t n_in = def->n_operands, n_out = def->n_results;
  const char **names = tn_arena_alloc(arena, (size_t)(n_in + 2 * n_out) * sizeof *names);
  for (int32_t i = 0; i < n_in && names != NULL; i++) names[i] = def->operands[i].name;
  for (int32_t i = 0; i < n_out && names != NULL; i++) {
    names[n_in + i] = def->results[i].name;
    names[n_in + n_out + i] = tn_arena_printf(arena, "d%s", def->results[i].name);
    if (names[n_in + n_out + i] == NULL) return NULL;
  }
  return names;
}

static const char **formulas_gradients(tn_arena *arena, const tn_op_def *def) {
  const char **names = tn_arena_alloc(arena, (size_t)(def->n_operands + 1) * sizeof *names);
  for (int32_t i = 0; i < def->n_operands && names != NULL; i++) {
    names[i] = tn_arena_printf(arena, "d%s", def->operands[i].name);
    if (names[i] == NULL) return NULL;
  }
  return names;
}

/* Results of a fixed dtype have it, others that of the operands. */
static const int32_t *formulas_dtypes(tn_arena *arena, const tn_op_def *def) {
  int32_t *dtypes = tn_arena_alloc(arena, (size_t)def->n_results * sizeof *dtypes);
  for (int32_t i = 0; i < def->n_results && dtypes != NULL; i++) dtypes[i] = def->results[i].dtype;
  return dtypes;
}

tn_status tn_op_def_read_formulas(const void *handle, tn_arena *arena, tn_op_def *def) {
  const tn_op *op = def->op;
  if (op->formula == NULL && op->gradient == NULL) return TN_OK;
  TN_TRY(formulas_check(handle, def));
  const char **names = formulas_names(arena, def), **gradients = formulas_gradients(arena, def);
  const int32_t *dtypes = formulas_dtypes(arena, def);
  if (names == NULL || gradients == NULL || dtypes == NULL) return TN_ENOMEM;
  if (op->formula != NULL) {
    def->formula = (tn_formula){.what = "formula",
                                .text = op->formula,
                                .item = &op->item,
                                .given = names,
                                .n_given = def->n_operands,
                                .targets = names + def->n_operands,
                                .n_targets = def->n_results,
                                .dtypes = dtypes,
                                .expects = "the name of the op's result"};
    TN_TRY(tn_formula_parse(handle, arena, true, &def->formula));
  }
  if (op->gradient == NULL) return TN_OK;
  def->gradient = (tn_formula){.what = "gradient",
                               .text = op->gradient,
                               .item = &op->item,
                               .given = names,
                               .n_given = def->n_operands + 2 * def->n_results,
                               .targets = gradients,
                               .n_targets = def->n_operands,
                               .expects = "the gradient of an operand, d and its name"};
  return tn_formula_parse(handle, arena, false, &def->gradient);
}
