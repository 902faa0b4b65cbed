/* core/graph/build/builder.h: private to core/graph: the builder behind a tn_build.
 *
 * failure.c       the first failure, which sticks
 * frame_stack.c   pushes and pops frames
 * frame.c         the calls that the top frame answers: in, out, yield, param, state, layer, counter, stream
 * emit_op.c       one op: begin, arg, set, end, result, type
 * emit_formula.c  formulas
 * emit_layer.c    layers that are formulas
 * emit_optimizer.c  the update of an optimizer
 * term.c          arithmetic on numbers and values
 * builder.c       creation, and the function table */
#pragma once

#include "core/config/options/options.h"
#include "core/graph/op/schema.h"
#include "core/plugin/handles.h"

/* An op between tn_op_begin and tn_op_end. Such ops nest: tn_op_arg(b, tn_neg(b, x)) is fine. */
typedef struct tn_open_op {
  const tn_op_def *def;
  tn_options options;
  size_t first_arg; /* in the builder's args */
} tn_open_op;

typedef struct tn_open_frame {
  const tn_build_frame *frame;
  size_t n_ops; /* open when it was pushed */
} tn_open_frame;

/* Outputs of a layer, for tn_op_result. */
typedef struct tn_layer_results {
  const tn_val *values;
  int32_t n;
} tn_layer_results;

struct tn_builder {
  tn_build_host host; /* first: a tn_build is this */
  tn_graph *graph;
  tn_status status; /* of the first failure, TN_OK before; its option and text: */
  char option[64], text[TN_ERROR_TEXT];
  TN_VEC(tn_open_op) ops;
  TN_VEC(tn_val) args;
  TN_VEC(tn_open_frame) frames;
  TN_VEC(tn_layer_results) layers;
  size_t lost_frames; /* pushed after memory ran out, on top of `frames` */
};

static inline tn_builder *tn_builder_of(tn_build *b) { return (tn_builder *)(void *)b; }

/* The top frame; an empty one if no frame was pushed. */
static inline const tn_build_frame *tn_builder_top(const tn_builder *b) {
  static const tn_build_frame empty = {.prefix = "", .where = ""};
  return b->frames.n > 0 ? b->frames.v[b->frames.n - 1].frame : &empty;
}

/* failure.c */

/* Makes a failure sticky, with the top frame's `where` in front of its text. Returns status. */
tn_status tn_builder_stick(tn_builder *b, tn_status status);
/* Puts "KIND of OP: " in front of the text of a failure, behind the top frame's `where`, and makes it sticky.
 * Returns status. */
tn_status tn_builder_wrap(tn_build *b, tn_status status, const char *kind, const char *op);
/* The sticky status; its text goes back into the handle, which other calls may have overwritten. */
tn_status tn_builder_status(tn_build *b);

/* emit_op.c */
void tn_emit_begin(tn_build *b, const char *op);
void tn_emit_arg(tn_build *b, tn_val value);
void tn_emit_set_int(tn_build *b, const char *name, int64_t value);
void tn_emit_set_float(tn_build *b, const char *name, double value);
void tn_emit_set_ints(tn_build *b, const char *name, int64_t n, const int64_t *values);
void tn_emit_set_floats(tn_build *b, const char *name, int64_t n, const double *values);
void tn_emit_set_text(tn_build *b, const char *name, const char *value);
tn_val tn_emit_end(tn_build *b);
tn_val tn_emit_result(tn_build *b, tn_val first, int32_t index);
const tn_type *tn_emit_type(tn_build *b, tn_val value);

/* frame.c */
int32_t tn_frame_n_in(tn_build *b);
tn_val tn_frame_in(tn_build *b, int32_t index);
tn_val tn_frame_out(tn_build *b, int32_t index);
tn_val tn_frame_out_grad(tn_build *b, int32_t index);
int32_t tn_frame_wants_grad(tn_build *b, int32_t index);
void tn_frame_yield(tn_build *b, int32_t index, tn_val value);
tn_val tn_frame_param(tn_build *b, const char *name, const tn_type *type, const char *init);
tn_val tn_frame_state(tn_build *b, const char *name, const tn_type *type, const char *init);
void tn_frame_commit(tn_build *b, tn_val state, tn_val now);
tn_val tn_frame_layer(tn_build *b, const char *name, const char *line, const tn_val *in, int32_t n_in);
tn_val tn_frame_option_value(tn_build *b, const char *option);
tn_val tn_frame_counter(tn_build *b, int32_t which);
uint64_t tn_frame_random_stream(tn_build *b, const char *use);
int32_t tn_frame_training(tn_build *b);
int32_t tn_frame_ranks(tn_build *b);
int32_t tn_frame_frozen(tn_build *b, const char *name);
