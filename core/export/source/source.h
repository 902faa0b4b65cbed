/* core/export/source/source.h: a graph as a program in C. Private to core/export/source.
 *
 *   write.c        the call: steps, then the files
 *   rows.c         a row for each op: a step, or an expression of elements
 *   step.c         the function of a step
 *   loops.c        loops over elements: pointwise ops, moves, reductions, gathers
 *   products.c     convolutions, matrix products, pooling: calls of kernels
 *   kernels.c      the kernels as text
 *   memory.c       the place of each value in the arena
 *
 * Every size is a constant of the text. A step is a function of pointers; the program calls the steps in the
 * order of the graph. */
#pragma once

#include "core/base/text/text.h"
#include "core/export/source/program.h"

enum { SOURCE_ALIGNMENT = 64 };

/* Kernels that the text has where a step calls them. */
enum { SOURCE_CONV = 1, SOURCE_MATMUL = 2, SOURCE_MAX_POOL = 4, SOURCE_AVG_POOL = 8 };

typedef struct source_weight {
  const char *path;
  tn_type type;
  int64_t offset;
} source_weight;

typedef struct source_missing {
  const char *op;
  int64_t count;
} source_missing;

typedef struct source_program {
  tn_env *env;
  tn_arena arena;
  tn_graph *graph;
  const int32_t *reads; /* by value */
  const char **place;   /* by value: its pointer in the text */
  int64_t *offset;      /* by value: in the arena */
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

typedef struct source_row {
  const char *op;
  const char *expression; /* of the elements a, b and c of the operands; NULL: `emit` */
  void (*emit)(const source_use *u);
  bool (*takes)(const source_use *u); /* NULL: every use */
} source_row;

/* rows.c: the row of a node; NULL: the text cannot have it. */
const source_row *source_row_of(const source_use *u);
extern const source_row source_rows_loops[], source_rows_products[];

/* memory.c: gives every value a pointer. */
tn_status source_place_values(source_program *p);
/* Whether the result has the bytes of operand 0, and no step. */
bool source_is_view(const tn_gnode *node);

/* step.c: "float" for f32; "void": the text has no such type. */
const char *source_type(int32_t dtype);
/* step.c: begins the function of a step, with pointers a, b, c ... for the operands that it has, and y and z
 * for results 0 and 1, and writes its call. With `scratch` bytes, it gets a pointer to as many. */
void source_begin(const source_use *u, int64_t scratch);
void source_end(const source_use *u);
/* loops.c: a step that computes each element by an expression. */
void source_pointwise(const source_use *u, const char *expression);
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
