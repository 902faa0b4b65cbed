/* tenon/build.h: the one emitter. Layers, gradients, decompositions, optimizers, loss scaling,
 * device transforms and passes all build graph with the calls below; so does an application.
 *
 * A tn_build stands for one place in which ops are being written. Errors stick: after the first
 * failure every call is a no-op that returns 0, and the code comes back from tn_build_status or as
 * the result of whatever the callback was part of. So emitting code needs no checks.
 * A value is an SSA name: it has one type, never changes, and belongs to the graph of its builder.
 * One thread at a time per builder. */
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
 * tn_op_begin, then operands in schema order (0 for an absent optional one), attributes by name, then
 * tn_op_end, which checks the op, infers its results and returns the first one. tn_op_result gives the
 * others. An attribute that is not set has its default. `tenon inspect OP` shows both. */
static inline void tn_op_begin(tn_build *b, const char *op) { TN_B(b)->begin(b, op); }
static inline void tn_op_arg(tn_build *b, tn_val v) { TN_B(b)->arg(b, v); }
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
/* Enums, dtypes and texts, in the syntax of a configuration. */
static inline void tn_op_set_text(tn_build *b, const char *name, const char *v) {
  TN_B(b)->set_text(b, name, v);
}
static inline tn_val tn_op_end(tn_build *b) { return TN_B(b)->end(b); }
/* Result `index` of the op whose first result is `first`. */
static inline tn_val tn_op_result(tn_build *b, tn_val first, int32_t index) {
  return TN_B(b)->result(b, first, index);
}

/* The type of a value. Borrowed, valid while the graph lives. Never NULL: a rank-0 type of TN_ANY
 * for 0 and after an error. */
static inline const tn_type *tn_val_type(tn_build *b, tn_val v) { return TN_B(b)->type(b, v); }
static inline int64_t tn_val_dim(tn_build *b, tn_val v, int32_t axis) {
  const tn_type *t = TN_B(b)->type(b, v);
  if (axis < 0) axis += t->rank;
  return axis >= 0 && axis < t->rank ? t->dims[axis] : 0;
}

/* ---- what surrounds the code being emitted ------------------------------------------------------
 *                 layer              decompose        gradient            optimizer
 * tn_build_in(b, i)     inputs             operands         operands            0 parameter, 1 gradient
 * tn_build_out(b, i)    -                  -                results             -
 * tn_build_out_grad(b, i)   -                  -                d loss / d result   -
 * tn_build_yield(b,i,v) output i           result i         d loss / d operand  0: the new parameter
 * Absent operands and zero gradients are 0. */
static inline int32_t tn_build_n_in(tn_build *b) { return TN_B(b)->n_in(b); }
static inline tn_val tn_build_in(tn_build *b, int32_t i) { return TN_B(b)->in(b, i); }
static inline tn_val tn_build_out(tn_build *b, int32_t i) { return TN_B(b)->out(b, i); }
static inline tn_val tn_build_out_grad(tn_build *b, int32_t i) { return TN_B(b)->dout(b, i); }
/* Gradient rules: whether the gradient of operand i is needed at all. */
static inline int32_t tn_build_wants_grad(tn_build *b, int32_t i) { return TN_B(b)->want(b, i); }
static inline void tn_build_yield(tn_build *b, int32_t i, tn_val v) { TN_B(b)->yield(b, i, v); }

/* ---- state --------------------------------------------------------------------------------------
 * A parameter is trained; a state is kept, saved and restored, and written only by tn_build_commit, which
 * takes effect when the program ends: reading gives the value at entry. Names are relative to the
 * layer or parameter being built and make the path in checkpoints ("layer1.0.bn1.running_mean").
 * Asking for an existing name of the same type gives the same value: tied parameters.
 * `init` is an initializer in INI syntax:
 *   zeros  ones  constant(v)  uniform(low, high)  normal(mean, std)
 *   kaiming_uniform(a = 0, mode = fan_in)  kaiming_normal(...)  xavier_uniform(gain = 1)  xavier_normal(...)
 * with fans computed as PyTorch does: dims[1] and dims[0] times the receptive field. */
static inline tn_val tn_build_param(tn_build *b, const char *name, const tn_type *type, const char *init) {
  return TN_B(b)->param(b, name, type, init);
}
static inline tn_val tn_build_state(tn_build *b, const char *name, const tn_type *type, const char *init) {
  return TN_B(b)->state(b, name, type, init);
}
static inline void tn_build_commit(tn_build *b, tn_val state, tn_val now) { TN_B(b)->commit(b, state, now); }

/* Another layer, by its INI text: tn_build_layer(b, "fc1", "linear(128)", &x, 1). Its parameters lie under
 * `name`. Returns its first output; further ones by tn_op_result. */
static inline tn_val tn_build_layer(tn_build *b, const char *name, const char *line, const tn_val *in,
                                    int32_t n) {
  return TN_B(b)->layer(b, name, line, in, n);
}

/* Optimizers: the value of a TN_OPT_SCHEDULED option for the parameters at hand: a scalar, or one
 * value per element where parameter groups differ. f32. */
static inline tn_val tn_build_option_value(tn_build *b, const char *option) {
  return TN_B(b)->option_value(b, option);
}

/* Counters, i64 scalars. The iteration counts steps taken by the host; updates counts the steps that
 * were applied (mixed precision may skip some) and includes the one being built: 1 in the first. The block
 * says which part of the global batch the batch at hand is, where that is cut over ranks and
 * micro-batches; 0, an absent operand, where it is not: random ops take either. */
enum { TN_ITERATION = 0, TN_UPDATES = 1, TN_BATCH_BLOCK = 2 };
static inline tn_val tn_build_counter(tn_build *b, int32_t which) { return TN_B(b)->counter(b, which); }
/* The number of the random stream for `use` at this place: a hash of path and use, the same in every
 * clone, so that recomputing gives the same mask. */
static inline uint64_t tn_build_random_stream(tn_build *b, const char *use) {
  return TN_B(b)->random_stream(b, use);
}
/* 1 while a training program is built, 0 for evaluation and prediction. */
static inline int32_t tn_build_training(tn_build *b) { return TN_B(b)->training(b); }
/* How many ranks run the program, each on its part of the batch; 1 alone. */
static inline int32_t tn_build_ranks(tn_build *b) { return TN_B(b)->ranks(b); }
/* TN_OK, or the error that has stuck; its text is in the handle. */
static inline tn_status tn_build_status(tn_build *b) { return TN_B(b)->status(b); }

TN_END_C
#endif
