/* core/graph/build/builder.h: private to core/graph: what stands behind a tn_build.
 *
 * builder.c    its life, its frames, the error that sticks
 * emit.c       one op: begin, arg, set, end, result, type
 * surroundings.c  what a frame gives: in, out, yield, param, state, layer, counter, stream */
#ifndef TN_CORE_GRAPH_BUILD_BUILDER_H
#define TN_CORE_GRAPH_BUILD_BUILDER_H

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
  tn_status status; /* that has stuck; TN_OK: none */
  char option[64], text[1536];
  TN_VEC(tn_open_op) ops;
  TN_VEC(tn_val) args;
  TN_VEC(tn_open_frame) frames;
  TN_VEC(tn_layer_results) layers;
  size_t lost_frames; /* pushed when memory had run out */
};

static inline tn_builder *tn_builder_of(tn_build *b) { return (tn_builder *)(void *)b; }

extern const tn_build_ops tn_builder_ops;

/* A failure at this place: the frame's `where` goes in front of the text. Returns status. */
tn_status tn_builder_stick(tn_builder *b, tn_status status);

/* Puts "WHAT of OP: " in front of the text of a failure, behind the frame's `where`, and makes it stick.
 * Returns status. */
tn_status tn_builder_wrap(tn_build *b, tn_status status, const char *what, const char *op);

/* The frame in charge; one with nothing set where none was pushed. */
const tn_build_frame *tn_builder_top(const tn_builder *b);

/* emit.c */
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

/* surroundings.c */
int32_t tn_around_n_in(tn_build *b);
tn_val tn_around_in(tn_build *b, int32_t index);
tn_val tn_around_out(tn_build *b, int32_t index);
tn_val tn_around_dout(tn_build *b, int32_t index);
int32_t tn_around_want(tn_build *b, int32_t index);
void tn_around_yield(tn_build *b, int32_t index, tn_val value);
tn_val tn_around_param(tn_build *b, const char *name, const tn_type *type, const char *init);
tn_val tn_around_state(tn_build *b, const char *name, const tn_type *type, const char *init);
void tn_around_commit(tn_build *b, tn_val state, tn_val now);
tn_val tn_around_layer(tn_build *b, const char *name, const char *line, const tn_val *in, int32_t n_in);
tn_val tn_around_option_value(tn_build *b, const char *option);
tn_val tn_around_counter(tn_build *b, int32_t which);
uint64_t tn_around_stream(tn_build *b, const char *use);
int32_t tn_around_training(tn_build *b);
int32_t tn_around_ranks(tn_build *b);

#endif
