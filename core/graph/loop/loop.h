/* core/graph/loop/loop.h: the op `loop`: a graph, the body, that is applied to each step of sequences and
 * hands states from step to step. docs/decisions/0076-loops.md has the reasons.
 *
 * Operands, by their roles, in this order:
 *
 *   sequences   values of all steps, along dimension 0; the body reads that of its step
 *   before      pairs: the first value of a state, and its values behind all steps of a loop that went in the
 *               other direction. The body reads the value that the other loop had in front of the step
 *   states      first values; the body reads the value behind the step before, and makes the next
 *   constants   the same in all steps
 *
 * Results: the outputs of all steps, along dimension 0; of the first `stacked` states the values behind all
 * steps, along dimension 0; of the other states the last value.
 *
 * The body is held as text, so that nodes are copied, compared and hashed as any others. In it an operand is
 * an `input`, in the order above, and a constant a `state`; its outputs are the outputs of the step, then the
 * next states. */
#pragma once

#include "core/graph/op/schema.h"

typedef struct tn_loop_attributes {
  const char *body;
  int64_t steps;
  int32_t reverse; /* from the last step to the first */
  int64_t sequences, before, states, stacked, outputs;
} tn_loop_attributes;

extern const tn_op tn_op_loop;

static inline bool tn_is_loop(const tn_gnode *node) { return node->op == &tn_op_loop; }

/* The inputs of the body. */
static inline int32_t tn_loop_inputs(const tn_loop_attributes *a) {
  return (int32_t)(a->sequences + a->before + a->states);
}
/* The first of the operands that are states, and that are constants. */
static inline int32_t tn_loop_first_state(const tn_loop_attributes *a) {
  return (int32_t)(a->sequences + 2 * a->before);
}
static inline int32_t tn_loop_first_constant(const tn_loop_attributes *a) {
  return tn_loop_first_state(a) + (int32_t)a->states;
}

/* body.c: for the op table. */
int32_t tn_loop_results(const void *attributes);
tn_status tn_loop_types(const tn_env *env, const tn_op_def *def, const void *attributes,
                        const tn_type *const *in, int32_t n_in, tn_type *out);

/* The body as a graph, the caller's. Messages go to env, which must live as long as the graph. */
tn_status tn_loop_parse(tn_env *env, struct tn_op_table *ops, const tn_loop_attributes *attributes,
                        tn_graph **body);

/* `type` with a dimension of steps in front, and without its first dimension. */
tn_type tn_loop_stacked_type(const tn_type *type, int64_t steps);
tn_type tn_loop_step_type(const tn_type *type);

/* ---- emit.c ---- */

/* A value of the body in the graph from which it is taken, and the operands of the loop for it. */
typedef struct tn_loop_value {
  tn_val inner, outer;
  tn_val stack; /* of a value before: the values behind all steps */
} tn_loop_value;

typedef TN_VEC(tn_loop_value) tn_loop_values;

/* A loop to be emitted. Its body is a part of the graph `from`. */
typedef struct tn_loop_parts {
  const tn_graph *from;
  int64_t steps;
  bool reverse;
  tn_loop_values sequences, before, states, constants;
  TN_VEC(tn_val) outputs, next; /* of a step, in `from`; next: of the states */
  int32_t stacked;
} tn_loop_parts;

void tn_loop_parts_free(const tn_env *env, tn_loop_parts *parts);

/* Adds the values that the body reads and that are no part of it to the constants, as themselves: those made
 * by nodes before `first`, inputs and states. For a body that is a part of the builder's own graph. */
tn_status tn_loop_capture(tn_loop_parts *parts, uint32_t first);

/* The parts of a loop whose body a pass has rewritten: `in` are its n_in operands in the graph of b. Inputs
 * that the pass has dropped are added again. */
tn_status tn_loop_parts_of(tn_build *b, tn_graph *body, const tn_loop_attributes *attributes,
                           const tn_val *in, int32_t n_in, tn_loop_parts *parts);

/* Emits the loop; its results are first, first + 1 ... Sequences, values before and constants that the body
 * does not read are left out. */
tn_val tn_loop_emit(tn_build *b, const tn_loop_parts *parts);

/* ---- gradient.c ---- */

/* The rule of the op: the gradient is a loop in the other direction, whose body computes a step once more and
 * multiplies by its transposed Jacobian. Sums over the steps are states. */
tn_status tn_loop_gradient(tn_build *b, const void *attributes);
