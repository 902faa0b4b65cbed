/* core/export/source/source.h: a graph as a program in C. Private to core/export/source.
 *
 *   write.c        the call: steps, then the files
 *   rows.c         a row for each op: a step, or an expression of elements
 *   step.c         the function of a step
 *   types.c        types of elements as words of C
 *   chains.c       pointwise ops in the loop of the op that reads them
 *   loops.c        loops over elements: pointwise ops, moves, reductions, gathers
 *   products.c     convolutions, matrix products, pooling: calls of kernels
 *   kernels.c      the kernels as text
 *   weights.c      the contents of NAME.weights: states, kernels with a batch norm in them, panels of
 * matrices memory.c       the place of each value in the arena
 *
 * Every size is a constant of the text. A step is a function of pointers; the program calls the steps in the
 * order of the graph. */
#pragma once

#include "core/base/text/text.h"
#include "core/export/source/program.h"

enum { SOURCE_ALIGNMENT = 64, SOURCE_EXPRESSION = 128 };

/* The room of a value or weight, so that the next one is aligned. */
static inline int64_t source_room(int64_t bytes) {
  return (bytes + SOURCE_ALIGNMENT - 1) / SOURCE_ALIGNMENT * SOURCE_ALIGNMENT;
}

/* Kernels that the text has where a step calls them, in the order of the text. */
enum {
  SOURCE_TILE = 1,       /* of SOURCE_CONV and SOURCE_MATMUL */
  SOURCE_PACK = 2,       /* panels of a matrix that is no weight */
  SOURCE_CONV_SIZES = 4, /* of both convolutions */
  SOURCE_CONV = 8,
  SOURCE_DEPTHWISE = 16,
  SOURCE_MATMUL = 32,
  SOURCE_MAX_POOL = 64,
  SOURCE_AVG_POOL = 128
};

/* A matrix (columns, inner), or with `turned` (inner, columns), of each of `groups`, whose panels the tile
 * reads: 16 columns beside each other for each place of `inner`, padded with zeros. inner 0: the weight lies
 * as the state does. */
enum { SOURCE_PANEL = 16 };
typedef struct source_panels {
  int64_t groups, columns, inner;
  bool turned;
} source_panels;

/* Elements of the panels. */
static inline int64_t source_panel_elements(const source_panels *p) {
  return p->groups * ((p->columns + SOURCE_PANEL - 1) / SOURCE_PANEL) * SOURCE_PANEL * p->inner;
}

/* A weight in the file. */
typedef struct source_weight {
  const char *path;           /* of a state; NULL: the bias that comes of `norm` */
  tn_type type;               /* of the state, or the bias */
  const tn_export_norm *norm; /* that is folded into it; NULL: none */
  source_panels panels;
  int64_t offset;
} source_weight;

typedef struct source_missing {
  const char *op;
  int64_t count;
} source_missing;

typedef struct source_row source_row;

typedef struct source_program {
  tn_env *env;
  tn_arena arena;
  tn_graph *graph;
  const int32_t *reads;   /* by value */
  const source_row **row; /* by node; NULL: it has no step, or none can be written */
  const tn_val *folded;   /* by value: the batch norm in the convolution that makes it; 0: none */
  int32_t *root;          /* by value: the node in whose loop it is computed (chains.c); -1: it has a place */
  const char **place;     /* by value: its pointer in the text; NULL: a state that nothing has read yet */
  int64_t *offset;        /* by value: in the arena */
  int64_t arena_bytes, scratch_bytes, weight_bytes;
  tn_text steps, calls; /* functions, and the body of the program */
  uint32_t kernels;     /* SOURCE_... that are called */
  TN_VEC(source_weight) weights;
  TN_VEC(source_missing) missing;
  int64_t n_steps;
} source_program;

/* A node that becomes a step. */
typedef struct source_use {
  source_program *p;
  const tn_gnode *node;
} source_use;

struct source_row {
  const char *op;
  const char *expression; /* of the elements a, b and c of the operands, or */
  void (*express)(const source_use *u, char text[SOURCE_EXPRESSION]); /* writes it, or */
  void (*emit)(const source_use *u);                                  /* writes a step */
  bool (*takes)(const source_use *u);                                 /* NULL: every use */
};

/* rows.c: the row of a node; NULL: the text cannot have it. */
const source_row *source_row_of(const source_use *u);
extern const source_row source_rows_loops[], source_rows_products[];
/* rows.c: whether the row is an expression of elements. */
static inline bool source_is_pointwise(const source_row *row) {
  return row != NULL && (row->expression != NULL || row->express != NULL);
}

/* chains.c: decides which values are computed in the loop of their reader. */
tn_status source_find_chains(source_program *p);
/* chains.c: the operands of a pointwise node with those of all nodes in its loop, each once; returns their
 * number. */
enum { SOURCE_MOST_OPERANDS = 16 };
int32_t source_chain_operands(const source_use *u, tn_val operands[SOURCE_MOST_OPERANDS]);
/* chains.c: the body of the loop, whose elements of operands are v0, v1 ...: y0[index] = the node's element.
 */
void source_chain_body(const source_use *u, const tn_val *operands, const char *index);

/* memory.c: gives every value but states a pointer. */
tn_status source_place_values(source_program *p);
/* Whether the result has the bytes of operand 0, and no step. */
bool source_is_view(const source_program *p, const tn_gnode *node);

/* weights.c: a pointer to a weight in the text, which is added where it is new; NULL: out of memory. */
const char *source_weight_pointer(source_program *p, const source_weight *weight);
/* weights.c: the contents, in memory of source_weight_bytes. */
tn_status source_weight_read(source_program *p, const source_weight *weight, tn_export_read *read,
                             void *context, void *to);
int64_t source_weight_bytes(const source_weight *weight);

/* types.c: "float" for f32; "void": the text has no such type. */
const char *source_type(int32_t dtype);

/* A parameter of the function of a step, and what the call gives for it. */
typedef struct source_parameter {
  const char *name, *type;
  const char *pointer; /* NULL: out of memory */
} source_parameter;
/* step.c: the parameter of a value: its pointer, or that of its state in the file. */
source_parameter source_parameter_of(source_program *p, const char *name, tn_val v);
/* step.c: begins the function of a step with these parameters, y0, y1 ... for the results, and with `scratch`
 * bytes a pointer to as many; writes its call. */
void source_begin_with(const source_use *u, const source_parameter *in, int32_t n, int64_t scratch);
/* step.c: the same with a0, a1 ... for the operands that the node has. */
void source_begin(const source_use *u, int64_t scratch);
void source_end(const source_use *u);
/* loops.c: a step that computes each element by an expression. */
void source_pointwise(const source_use *u);
/* kernels.c: the text of a kernel. */
const char *source_kernel(uint32_t kernel);

static inline bool source_has(const source_use *u, int32_t i) {
  return i < u->node->n_in && u->node->in[i] != 0;
}
static inline const tn_type *source_in(const source_use *u, int32_t i) {
  return tn_graph_type(u->p->graph, u->node->in[i]);
}
static inline const tn_type *source_out(const source_use *u, int32_t k) {
  return tn_graph_type(u->p->graph, u->node->first_out + (tn_val)k);
}
