/* tenon/build.h: the graph builder. Layers, gradients, decompositions, optimizers, loss scaling, device
 * transforms, compiler passes and models in C emit ops with the calls below.
 *
 * Errors: after the first failure every call on the builder is a no-op that returns 0; tn_build_status
 * returns the code, and so does the function that called the callback. Emitting code needs no checks. Values:
 * a tn_val is an SSA name with one type; it belongs to the graph of its builder. Threads: a builder is used
 * by one thread at a time. Texts and lists that are passed are read during the call. */
#ifndef TENON_BUILD_H
#define TENON_BUILD_H

#include "tenon/api.h"

TN_BEGIN_C

struct tn_build {
  tn_env env;
  /* the rest is private */
};

#define TN_B(b) ((b)->env.api)

/* ---- one op ------------------------------------------------------------------------------------
 * tn_op_begin; tn_op_arg for each operand in schema order (0 for an absent optional one); tn_op_set_... for
 * attributes by name; tn_op_end, which checks the op, infers the types of its results and returns result 0.
 * tn_op_result returns the others. An attribute that is not set has its default. `tenon inspect OP` shows
 * schema and attributes. ops.h has a function for each of Tenon's ops; `tenon reference --header PLUGIN`
 * writes those of another plugin's. */
static inline void tn_op_begin(tn_build *b, const char *op) { TN_B(b)->begin(b, op); }
static inline void tn_op_arg(tn_build *b, tn_val v) { TN_B(b)->arg(b, v); }
/* A whole number or flag, a choice as the position of its word, a dtype. */
static inline void tn_op_set_int(tn_build *b, const char *name, int64_t v) { TN_B(b)->set_int(b, name, v); }
static inline void tn_op_set_float(tn_build *b, const char *name, double v) {
  TN_B(b)->set_float(b, name, v);
}
static inline void tn_op_set_ints(tn_build *b, const char *name, int64_t n, const int64_t *v) {
  TN_B(b)->set_ints(b, name, n, v);
}
static inline void tn_op_set_floats(tn_build *b, const char *name, int64_t n, const double *v) {
  TN_B(b)->set_floats(b, name, n, v);
}
/* An enum, dtype or text, in the syntax of a configuration ("tanh", "bf16"). */
static inline void tn_op_set_text(tn_build *b, const char *name, const char *v) {
  TN_B(b)->set_text(b, name, v);
}
static inline tn_val tn_op_end(tn_build *b) { return TN_B(b)->end(b); }
/* Result `index` of the op whose first result is `first`. */
static inline tn_val tn_op_result(tn_build *b, tn_val first, int32_t index) {
  return TN_B(b)->result(b, first, index);
}

/* The type of a value, valid while the graph lives. Never NULL: for the value 0 and after an error it is
 * TN_ANY of rank 0. tn_val_dim: one dimension, counted from the last where `axis` is negative; 0 where there
 * is no such dimension. */
static inline const tn_type *tn_val_type(tn_build *b, tn_val v) { return TN_B(b)->type(b, v); }
static inline int64_t tn_val_dim(tn_build *b, tn_val v, int32_t axis) {
  const tn_type *t = TN_B(b)->type(b, v);
  if (axis < 0) axis += t->rank;
  return axis >= 0 && axis < t->rank ? t->dims[axis] : 0;
}

/* ---- inputs and outputs of the callback ---------------------------------------------------------
 *                           layer      decompose   gradient             optimizer
 * tn_build_in(b, i)         input i    operand i   operand i            0: parameter, 1: gradient
 * tn_build_out(b, i)        -          -           result i             -
 * tn_build_out_grad(b, i)   -          -           d loss / d result i  -
 * tn_build_yield(b, i, v)   output i   result i    d loss / d operand i 0: the new parameter
 * Absent operands and gradients that are zero are 0. */
static inline int32_t tn_build_n_in(tn_build *b) { return TN_B(b)->n_in(b); }
static inline tn_val tn_build_in(tn_build *b, int32_t i) { return TN_B(b)->in(b, i); }
static inline tn_val tn_build_out(tn_build *b, int32_t i) { return TN_B(b)->out(b, i); }
static inline tn_val tn_build_out_grad(tn_build *b, int32_t i) { return TN_B(b)->dout(b, i); }
/* Gradients: 1 where the gradient of operand i is needed. */
static inline int32_t tn_build_wants_grad(tn_build *b, int32_t i) { return TN_B(b)->want(b, i); }
static inline void tn_build_yield(tn_build *b, int32_t i, tn_val v) { TN_B(b)->yield(b, i, v); }

/* ---- state --------------------------------------------------------------------------------------
 * A parameter is trained. A state is saved in checkpoints, restored, and written by tn_build_commit only; a
 * commit takes effect when the program ends, so the value of a state is that at entry. Names are relative to
 * the layer or parameter being built and make the path in checkpoints ("layer1.0.bn1.running_mean"). A
 * second call with the same name and type returns the same value (tied parameters). `init` is an initializer
 * in INI syntax; the name "" is the path of the layer itself:
 *   zeros  ones  constant(v)  uniform(low, high)  normal(mean, std)
 *   kaiming_uniform(a = 0, mode = fan_in)  kaiming_normal(...)  xavier_uniform(gain = 1)  xavier_normal(...)
 * Fans are those of PyTorch: dims[1], and dims[0], times the receptive field. */
static inline tn_val tn_build_param(tn_build *b, const char *name, const tn_type *type, const char *init) {
  return TN_B(b)->param(b, name, type, init);
}
static inline tn_val tn_build_state(tn_build *b, const char *name, const tn_type *type, const char *init) {
  return TN_B(b)->state(b, name, type, init);
}
static inline void tn_build_commit(tn_build *b, tn_val state, tn_val now) { TN_B(b)->commit(b, state, now); }

/* Another layer, by its INI text: tn_build_layer(b, "fc1", "linear(128)", &x, 1), on n inputs. Its parameters
 * have `name` in their path. Returns output 0; tn_op_result returns the others. */
static inline tn_val tn_build_layer(tn_build *b, const char *name, const char *line, const tn_val *in,
                                    int32_t n) {
  return TN_B(b)->layer(b, name, line, in, n);
}

/* Layers: the value of a TN_OPT_SCHEDULABLE option, an f32 scalar, where it has a schedule and the layer is
 * trained, else 0: the field holds it.
 * Optimizers: the value of a TN_OPT_SCHEDULED option for the parameters being updated, f32: a scalar, or one
 * value for each element where parameter groups differ. */
static inline tn_val tn_build_option_value(tn_build *b, const char *option) {
  return TN_B(b)->option_value(b, option);
}

/* Counters, i64 scalars.
 * TN_ITERATION: steps that the host has taken, from 0.
 * TN_UPDATES: updates that were applied, the current one included, so 1 in the first; loss scaling may skip
 * some. In an optimizer those of its parameters, which [group.NAME] freeze = N may train from a later epoch
 * on. TN_BATCH_BLOCK: index of this batch within the global batch, where that is divided over ranks and
 * micro-batches; else 0, an absent operand. Random ops take either. */
enum { TN_ITERATION = 0, TN_UPDATES = 1, TN_BATCH_BLOCK = 2 };
static inline tn_val tn_build_counter(tn_build *b, int32_t which) { return TN_B(b)->counter(b, which); }
/* The number of the random stream for `use` in this layer: a hash of the layer's path and `use`. It is the
 * same in every program, so rematerialization yields the same mask. */
static inline uint64_t tn_build_random_stream(tn_build *b, const char *use) {
  return TN_B(b)->random_stream(b, use);
}
/* 1 while a training program is built, 0 for evaluation and prediction. */
static inline int32_t tn_build_training(tn_build *b) { return TN_B(b)->training(b); }
/* 1 while a training program is built in which [group.NAME] freeze keeps the layer's parameter or state
 * `name` as it is; else 0. Commits of such state are dropped. */
static inline int32_t tn_build_frozen(tn_build *b, const char *name) { return TN_B(b)->frozen(b, name); }
/* Number of ranks that run the program, each on its part of the batch. */
static inline int32_t tn_build_ranks(tn_build *b) { return TN_B(b)->ranks(b); }
/* TN_OK, or the code of the first failure; its text is in the builder. */
static inline tn_status tn_build_status(tn_build *b) { return TN_B(b)->status(b); }

TN_END_C
#endif
