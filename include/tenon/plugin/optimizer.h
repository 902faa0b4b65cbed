/* tenon/plugin/optimizer.h: an optimizer: the update of a parameter. The host unscales and clips gradients
 * and skips updates that are not finite.
 *
 * An optimizer is a formula, or a function where a formula does not suffice (matrices, loops).
 *
 * A formula is text in the language of ops' formulas (tenon/plugin/op.h): statements that define the new
 * parameter, next_param, and the new value of each state, next_ and its name:
 *
 *   next_momentum = beta * momentum + grad; next_param = param - lr * next_momentum
 *
 * In place of next_param it may define `kept`, the parameter with its weight decay, and `move`, the step, of
 * which next_param is the difference: then [optimizer] cautious can change the step. A statement `g` is the
 * gradient that the step follows; without one it is grad.
 *
 * It may name param, grad (both f32), the states, the options, and `updates`, the number of this update,
 * counted from 1, an f64 scalar. Arithmetic on `updates` and numbers alone is in f64, and is rounded to f32
 * where it meets a tensor. A state begins with zeros. An option marked TN_OPT_SCHEDULED (lr, weight_decay) is
 * a value, which may differ from step to step and from element to element; the others are numbers known while
 * compiling: an `if` that depends on them alone emits one branch. With TN_UPDATE_PER_PARAMETER a formula may
 * also call ops that are not pointwise, such as reduce_sum and reduce_mean, which give scalars.
 *
 * In update: tn_build_in(b, 0) is the parameter, tn_build_in(b, 1) its gradient, both f32; tn_build_state
 * makes optimizer state (momentum) of the parameter's shape; tn_build_option_value reads scheduled options
 * (lr, weight_decay); tn_build_counter(b, TN_UPDATES) is the number of this update. It commits its state and
 * yields the new parameter as output 0. The host applies commits only where the update is not skipped.
 *
 * Life cycle: check and update are pure functions, called on the compiling thread. */
#ifndef TENON_PLUGIN_OPTIMIZER_H
#define TENON_PLUGIN_OPTIMIZER_H

#include "tenon/ops.h"
#include "tenon/plugin/plugin.h"

TN_BEGIN_C

enum {
  /* Elements are independent: called once for all parameters, on flat regions of rank 1. The host chooses the
   * order of elements within a region. */
  TN_UPDATE_ELEMENTWISE = 0,
  /* Called once for each parameter, with its shape. */
  TN_UPDATE_PER_PARAMETER = 1
};

enum {
  TN_VALUES_SIGNED = 0,
  TN_VALUES_POSITIVE = 1, /* at least 0, such as a mean of squares: 8 bits need no sign */
  TN_VALUES_EXACT = 2     /* f32 always: it is a parameter itself, or a step that grows by small factors */
};

/* Of a formula. */
typedef struct tn_optimizer_state {
  /* A state called "average" is read in place of the parameter by validation, prediction and the weights of
   * checkpoints. */
  const char *name; /* in checkpoints, behind the parameter's path: "conv1.weight.momentum" */
  /* An option of the optimizer: the state exists where it is not 0 ("amsgrad"); elsewhere the formula reads
   * 0, and the statement of its new value is left out. NULL: always. */
  const char *when;
  /* 1: one number for all elements, which depends on `updates` and options that are numbers alone; 0: of the
   * parameter's shape. */
  uint32_t scalar;
  uint32_t values;        /* TN_VALUES_SIGNED, ...: how [optimizer] state_dtype may keep it */
  const char *in_formula; /* its name in the formula where an option has the same; NULL: name */
} tn_optimizer_state;

typedef struct tn_optimizer {
  tn_item item;
  uint32_t granularity;
  /* NULL: the formula. */
  tn_status (*update)(tn_build *b, const void *options);
  const char *formula;
  /* The states of the formula, up to one with the name NULL. NULL: none. */
  const tn_optimizer_state *states;
  /* Refuses values of options that do not go together, with the name of an option and the reason. NULL: none.
   */
  tn_status (*check)(const tn_env *env, const void *options);
  /* With TN_UPDATE_PER_PARAMETER and both update and a formula: whether update takes a parameter of this
   * type; the formula takes the others, such as vectors beside matrices. NULL: there is one of the two. */
  int32_t (*takes)(const void *options, const tn_type *param);
} tn_optimizer;

TN_END_C
#endif
