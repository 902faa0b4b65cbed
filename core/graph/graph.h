/* core/graph/graph.h: a graph of values and nodes in SSA form, topologically ordered. Nodes are only
 * appended; a pass reads one graph and writes another (tn_graph_rewrite). Names, types, operands and
 * attributes are allocated in the graph's arena.
 *
 * Text form, one statement a line; the parser reads back the same graph:
 *
 *     image: f32[8, 3, 32, 32] = input(name=image)
 *     conv1.weight: f32[64, 3, 7, 7] = state(path=conv1.weight, init="normal(0, 0.1)")
 *     %5: f32[8, 64, 16, 16]{0, 2, 3, 1} = conv2d(image, conv1.weight, _, padding=[3, 3]) in conv1
 *     m: f32[64], v: f32[64] = moments(%5, axes=[0, 2, 3])
 *     commit bn1.running_mean = %9 if %12
 *     output loss = %20
 *     unread f32[64] = state(path=bn1.running_var, what=buffer)
 *
 * `{...}` is a layout: the order of dimensions, then `; dim:size` blocks; `in` names the layer. The types
 * of results are optional except for input and state. `#` starts a comment.
 *
 * Files, each folder using only those above it:
 *
 *   graph.c, hash_index.*, name_index.*, input_state.*, liveness.c, type_text.c, uses.*   the graph and its
 *               analyses
 *   formula/    formulas to postfix steps
 *   op/         op definitions: schemas, type inference, attributes
 *   nodes/      adding nodes, inputs, states, commits and outputs
 *   text/       the text form; verify.c prints the statement that breaks a rule
 *   build/      the builder behind tenon/build.h; emission of formulas
 *   rewrite/    passes: rewriting, decomposition, common subexpressions
 *   gradient/   reverse-mode differentiation
 *   loop/       the op `loop`: a graph that is applied to each step of sequences, and its gradient
 *   op_tables.c creates tables of op definitions, which infer types by decompositions of rewrite/ */
#pragma once

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/base/text/text.h"
#include "core/base/vec.h"
#include "core/base/freeze.h"
#include "core/graph/name_index.h"
#include "core/plugin/context.h"
#include "tenon/build.h"
#include "tenon/plugin/op.h"

/* An op with its parsed schema; one per context and op (op/schema.h). */
typedef struct tn_op_def tn_op_def;

typedef struct tn_gvalue {
  tn_type type;
  tn_layout layout; /* unset until the layout pass */
  uint32_t node;    /* index of the node that computes it */
  int32_t result;   /* index among the results of that node */
  const char *name; /* NULL: printed as %N */
} tn_gvalue;

typedef struct tn_gnode {
  const tn_op_def *def;
  const tn_op *op; /* def's descriptor */
  const void *attributes;
  int32_t n_in, n_out;
  const tn_val *in;  /* 0: absent */
  tn_val first_out;  /* results are first_out .. first_out + n_out - 1 */
  const char *layer; /* path of the layer that emitted it; "" outside of layers */
  const char *where; /* "file.ini:14"; "" if unknown */
  int32_t group;     /* index into a cover after `select`; -1 before */
} tn_gnode;

/* A parameter or other state of the graph, by path. Scratch state passes values between the programs of one
 * update: it has no initial value and is never saved. */
enum {
  TN_STATE_PARAM = 1,
  TN_STATE_BUFFER = 2,
  TN_STATE_OPTIMIZER = 3,
  TN_STATE_DERIVED = 4,
  TN_STATE_HOST = 5,
  TN_STATE_SCRATCH = 6
};
typedef struct tn_gstate {
  const char *path;
  tn_type type;
  int32_t what;
  const char *init; /* initializer text */
  const char *where;
  tn_val value; /* its `state` node's result in this graph; 0: not read */
} tn_gstate;

typedef struct tn_gcommit {
  const char *path;
  tn_val value, predicate; /* predicate 0: always */
} tn_gcommit;

typedef struct tn_goutput {
  const char *name;
  tn_val value;
} tn_goutput;

typedef struct tn_graph {
  tn_env *env;             /* errors, memory */
  struct tn_op_table *ops; /* name -> tn_op_def */
  /* The global batch is split over ranks, which all run this graph, and over micro-batches, which run one
   * after the other. 1 and 1: the batch is not split. */
  int32_t ranks, micro_batches;
  const tn_freeze *freeze; /* the parameters and buffers that a training step keeps; NULL: none */
  int64_t epoch;           /* of the training step, where they depend on it */
  tn_arena arena;
  TN_VEC(tn_gnode) nodes;
  TN_VEC(tn_gvalue) values;      /* index 0 is unused: value 0 means absent */
  TN_VEC(const tn_type *) types; /* the type of each value again, at a stable address, for tn_val_type */
  TN_VEC(tn_val) inputs;         /* results of the `input` nodes */
  TN_VEC(tn_gstate) states;
  TN_VEC(tn_gcommit) commits;
  TN_VEC(tn_goutput) outputs;
  tn_name_index state_paths, commit_paths; /* of states and commits */
} tn_graph;

/* Writes "f32[8, 3, 32, 32]"; returns text. */
enum { TN_TYPE_TEXT = 192 };
const char *tn_type_format(const tn_type *type, char text[TN_TYPE_TEXT]);

/* The table of op definitions of a context: the ops of the registry, and `input` and `state`. */
tn_status tn_op_table_create(tn_env *env, tn_registry *registry, struct tn_op_table **table);
void tn_op_table_destroy(struct tn_op_table *table);
/* The context's own table, created by the first call. */
tn_status tn_context_ops(tn_context *context, struct tn_op_table **table);
tn_status tn_op_table_find(struct tn_op_table *table, const void *handle, const char *op,
                           const tn_op_def **def);

tn_status tn_graph_create(tn_env *env, struct tn_op_table *ops, tn_graph **graph);
void tn_graph_destroy(tn_graph *graph);

static inline const tn_type *tn_graph_type(const tn_graph *g, tn_val v) { return &g->values.v[v].type; }
static inline const tn_gnode *tn_graph_maker(const tn_graph *g, tn_val v) {
  return &g->nodes.v[g->values.v[v].node];
}
static inline bool tn_graph_is(const tn_graph *g, tn_val v, const char *op) {
  return v != 0 && tn_text_equal(tn_graph_maker(g, v)->op->item.name, op);
}

/* Appends a node: checks the operands and infers the types of the results. Attributes are borrowed and must
 * live as long as the graph; in, layer and where are copied. Absent trailing operands may be omitted. */
tn_status tn_graph_add(tn_graph *g, const tn_op_def *def, const void *attributes, const tn_val *in,
                       int32_t n_in, const char *layer, const char *where, tn_val *first_out);

/* Writes the types of the results of such a node: def->n_results of them. */
tn_status tn_graph_infer(const tn_graph *g, const tn_op_def *def, const void *attributes, const tn_val *in,
                         int32_t n_in, tn_type *out);

/* Names a value for the text form. A value prints as %N if another value has the name, or if it is no word.
 */
tn_status tn_graph_name(tn_graph *g, tn_val v, const char *name);

/* The inputs and the state behind tn_build_counter. The iteration and the block are inputs, i64 scalars; the
 * block is micro-batch * ranks + rank. The updates are an i64 scalar state, the number of applied updates:
 * tn_build_counter(b, TN_UPDATES) is its value plus one, which the update commits. */
#define TN_ITERATION_INPUT "iteration"
#define TN_BLOCK_INPUT     "block"
#define TN_UPDATES_STATE   "run.updates"

/* A program input (batch field or control value); the same name gives the same value. */
tn_val tn_graph_input(tn_graph *g, const char *name, const tn_type *type);
/* The value of a state at entry. Registers the state; the same path gives the same value. Returns 0, with the
 * message in env, if the state has another type. */
tn_val tn_graph_state(tn_graph *g, const char *path, const tn_type *type, int32_t what, const char *init,
                      const char *where);
/* Registers a state without reading it, so that it can be committed. Copies everything but value. */
tn_status tn_graph_register_state(tn_graph *g, const tn_gstate *state);
tn_gstate *tn_graph_find_state(const tn_graph *g, const char *path);
tn_status tn_graph_commit(tn_graph *g, const char *path, tn_val value, tn_val predicate);
/* Removes all commits and outputs. */
void tn_graph_clear_ends(tn_graph *g);
tn_status tn_graph_output(tn_graph *g, const char *name, tn_val value);
tn_val tn_graph_find_output(const tn_graph *g, const char *name); /* 0: none */

/* Checks the invariants of a graph: operands precede their uses, types are the inferred ones, at most one
 * commit per path, commit types equal state types, predicates are bool scalars. TN_EINTERNAL with the
 * statement. */
tn_status tn_graph_verify(const tn_graph *g);

/* For each node, whether an output, a commit or an effect depends on it; the caller's (tn_release). */
tn_status tn_graph_live(const tn_graph *g, bool **live);

/* 64-bit hash of the text form. */
tn_status tn_graph_hash(const tn_graph *g, uint64_t *hash);

/* text form */
tn_status tn_graph_print(const tn_graph *g, tn_text *text);
tn_status tn_graph_parse(tn_env *env, struct tn_op_table *ops, const char *text, const char *name,
                         tn_graph **graph);

/* ---- builders ---- */

enum { TN_FRAME_OPERANDS = 4 };

/* The context of a callback that emits: the answers to tn_build_in, tn_build_yield, tn_build_state ... A call
 * whose member is unset fails as not available. Made by core/model, differentiation and the update. */
typedef struct tn_build_frame {
  const tn_val *in, *out, *dout;
  int32_t n_in, n_out;
  const bool *want;
  tn_val *yielded; /* n_yield results */
  int32_t n_yield;
  const char *prefix; /* path in front of parameter and state names; "" for none */
  const char *where;  /* "file.ini:14" for nodes and messages */
  bool training;
  uint64_t seed; /* of the run: mixed into tn_build_random_stream */
  void *context;
  /* Implementations of tn_build_layer, tn_build_option_value, and of tn_build_state and tn_build_commit for
   * optimizers. */
  tn_val (*layer)(tn_build *b, void *context, const char *name, const char *line, const tn_val *in,
                  int32_t n);
  tn_val (*option_value)(tn_build *b, void *context, const char *option);
  tn_val (*state)(tn_build *b, void *context, const char *name, const tn_type *type, const char *init);
  /* Of tn_build_param and tn_build_counter; NULL: as without a frame. */
  tn_val (*param)(tn_build *b, void *context, const char *name, const tn_type *type, const char *init);
  tn_val (*counter)(tn_build *b, void *context, int32_t which);
  void (*commit)(tn_build *b, void *context, tn_val state, tn_val now);
  /* Called in front of each op of the frame with its n operands, at most TN_FRAME_OPERANDS, which it may
   * replace by values that it emits. NULL: none is replaced. */
  void (*operands)(tn_build *b, void *context, const tn_op *op, const void *attributes, tn_val *in,
                   int32_t n);
  /* the full path of a parameter or state; NULL: prefix.name. Returns NULL when memory ran out. */
  const char *(*path)(void *context, const char *name);
} tn_build_frame;

typedef struct tn_builder tn_builder; /* begins with tn_build */
tn_status tn_builder_create(tn_graph *graph, tn_builder **builder);
void tn_builder_destroy(tn_builder *builder);
static inline tn_build *tn_builder_handle(tn_builder *b) { return (tn_build *)b; }
tn_graph *tn_builder_graph(tn_build *b);
/* Frames nest: push before calling a plugin, pop after. */
void tn_builder_push(tn_build *b, const tn_build_frame *frame);
void tn_builder_pop(tn_build *b);
const tn_build_frame *tn_builder_frame(tn_build *b);
/* Makes a failure sticky: later calls on the builder have no effect. Later failures are dropped, except for
 * one whose text contains the first text: the same failure with more context (tn_wrap). */
void tn_builder_fail(tn_build *b, tn_status status);
/* False, with TN_EINVAL in the builder, if the pointer is NULL; `name` says what it is. */
bool tn_builder_need(tn_build *b, const void *pointer, const char *name);
/* Forgets the failure, so that the values made before it can be used; false while a frame is open. */
bool tn_builder_recover(tn_build *b);
/* For frame->layer, when a layer has several outputs: tn_op_result(b, values[0], i) gives values[i]. */
void tn_builder_results(tn_build *b, const tn_val *values, int32_t n);

/* ---- rewriting: a pass maps a graph to a new one, node by node ---- */
typedef struct tn_rewrite {
  const tn_graph *from;
  tn_build *b; /* writes the new graph */
  tn_val *map; /* old value -> new value */
  const bool *live;
} tn_rewrite;
/* Called for each live node in order. Sets the map entries of its results, or calls tn_rewrite_copy. */
typedef tn_status (*tn_rewrite_fn)(tn_rewrite *r, const tn_gnode *node, void *context);
tn_status tn_rewrite_copy(tn_rewrite *r, const tn_gnode *node);
/* Runs `fn` over a graph and copies states, commits and outputs; *out is the new graph. */
tn_status tn_graph_rewrite(const tn_graph *from, tn_rewrite_fn fn, void *context, tn_graph **out);

/* Emits a composite op's decomposition into b: the operands are `in`; results are written to `out`. */
tn_status tn_decompose(tn_build *b, const tn_op_def *def, const void *attributes, const tn_val *in,
                       int32_t n_in, int32_t n_out, tn_val *out);

/* Pass: eliminates common subexpressions and dead nodes. Gradients re-emit parts of the forward expressions.
 * Random ops are merged only if their random streams are equal; ops with effects are never merged. */
tn_status tn_graph_merge(const tn_graph *from, tn_graph **out);

/* Prepares differentiation: replaces composite ops without a gradient rule between wrt and loss, in place,
 * by their decompositions, so that forward and backward share the intermediate values. Values keep their
 * numbers, but the results of a replaced op are unused afterwards: loss and wrt are updated. */
tn_status tn_expand_for_gradient(tn_build *b, tn_val *loss, tn_val *wrt, int32_t n);

/* Reverse-mode differentiation by gradient rules, after tn_expand_for_gradient (Speelpenning 1980; survey:
 * Baydin et al., JMLR 2018). Emits d(loss) / d(wrt[i]) into the graph of b for a float scalar loss.
 * gradient[i] is 0 if the loss does not depend on wrt[i]. `seed` is the gradient of the loss itself: a scalar
 * (loss scaling), or 0 for 1. `order`, if given, receives the indices of wrt in the order in which their
 * gradients become ready. */
tn_status tn_differentiate(tn_build *b, tn_val loss, tn_val seed, const tn_val *wrt, int32_t n,
                           tn_val *gradient, int32_t *order);
/* The same for several float values of any shape, the ends: seeds[i] is the gradient of ends[i], and has its
 * type. gradient[i] is the sum over the ends. */
tn_status tn_vector_jacobian(tn_build *b, const tn_val *ends, const tn_val *seeds, int32_t n_ends,
                             const tn_val *wrt, int32_t n, tn_val *gradient);
