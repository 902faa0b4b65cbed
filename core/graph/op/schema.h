/* core/graph/op/schema.h: parsed op schemas.
 *
 *   schema  = "(" [operand {"," operand}] ")" "->" "(" [result {"," result}] ")" {";" range}
 *   operand = word ["?" | "*"] [":" dtype]        without a dtype: any
 *   result  = word [":" dtype]
 *   dtype   = "f32" ... | "any" | letter          letter: A to Z, one dtype per node
 *   range   = letter "in" dtypes {"," dtypes "as" word}     as: the op is computed in the dtype behind it
 *   dtypes  = word {word}
 *
 * and domains of operands:
 *
 *   domain  = word interval {";" word interval}
 *   interval = "> 0" | "[0, 1)" | "[0, " word "." axis ")"     the last: the size of an operand's dimension
 */
#pragma once

#include "core/config/options/range.h"
#include "core/graph/formula/formula.h"
#include "core/graph/graph.h"

enum { TN_SCHEMA_LETTERS = 26 };

typedef struct tn_operand_def {
  const char *name;
  bool optional, variadic;
  int32_t dtype; /* TN_ANY: any, or the dtype of `letter` */
  char letter;   /* 'A' to 'Z'; 0: none */
  bool has_domain;
  tn_range domain; /* with has_domain: the values for which it is defined */
  int32_t below;   /* the operand whose dimension `axis` is the upper bound of the domain; -1: none */
  int32_t axis;
} tn_operand_def;

typedef struct tn_result_def {
  const char *name;
  int32_t dtype;
  char letter;
} tn_result_def;

/* Writes def->n_results types of a composite op without infer. */
typedef tn_status tn_composite_infer(const tn_env *env, const tn_op_def *def, const void *attributes,
                                     const tn_type *const *in, int32_t n_in, tn_type *out);

struct tn_op_def {
  const tn_op *op;
  const tn_operand_def *operands; /* the variadic one, if any, is the last */
  const tn_result_def *results;
  int32_t n_operands, n_results;
  bool variadic;
  uint32_t dtypes[TN_SCHEMA_LETTERS]; /* allowed for each letter: bit 1 << dtype */
  /* For each letter and dtype: the dtype in which the op is computed; TN_ANY: in its own. */
  uint8_t wide[TN_SCHEMA_LETTERS][TN_DTYPES];
  tn_formula formula, gradient; /* text NULL: none */
  struct tn_op_table *ops;      /* that the definition belongs to, and its `composite` */
  tn_composite_infer *composite;
  int32_t *nesting; /* decompositions of the table that are emitted for their types */
  /* Of an op of the host with any number of results, which all have the definition of the first (loop/):
   * their number and their types. NULL: the schema has the number, and the op or its decomposition the types.
   */
  int32_t (*count)(const void *attributes);
  tn_composite_infer *infer;
};

static inline int32_t tn_op_n_results(const tn_op_def *def, const void *attributes) {
  return def->count != NULL ? def->count(attributes) : def->n_results;
}

/* An op that the host adds to every table, beside `input` and `state`. */
typedef struct tn_host_op {
  const tn_op *op;
  int32_t (*count)(const void *attributes);
  tn_composite_infer *infer;
} tn_host_op;

/* Parses the schema of an op and checks its descriptor. TN_EABI, with the column, if the schema is wrong.
 * `op` is borrowed; the definition lives in the arena. */
tn_status tn_op_def_create(const void *handle, tn_arena *arena, const tn_op *op, const tn_op_def **def);

/* Behind tn_op_table_create. */
tn_status tn_op_table_make(tn_env *env, tn_registry *registry, tn_composite_infer *composite,
                           const tn_host_op *host, struct tn_op_table **table);

/* domain.c: reads tn_op.domain into the operands. TN_EABI: it names no operand, or a range cannot be read. */
tn_status tn_op_def_read_domain(const void *handle, tn_arena *arena, tn_op_def *def);

/* The definition of operand i of a node; the items of a variadic operand share one. */
const tn_operand_def *tn_op_def_operand(const tn_op_def *def, int32_t i);

/* The dtype in which the op is computed for operand i of a dtype: its own, mostly. */
int32_t tn_op_def_wide(const tn_op_def *def, int32_t i, int32_t dtype);
/* Whether that is another one than the operand's (NULL: absent). */
static inline bool tn_op_def_widens(const tn_op_def *def, int32_t i, const tn_type *type) {
  return type != NULL && tn_op_def_wide(def, i, type->dtype) != type->dtype;
}

/* formulas.c: reads tn_op.formula and tn_op.gradient. TN_EABI: the descriptor has callbacks for the same,
 * too. */
tn_status tn_op_def_read_formulas(const void *handle, tn_arena *arena, tn_op_def *def);

/* Whether the types of results are those that the decomposition yields. */
static inline bool tn_op_infers_by_decomposition(const tn_op *op) {
  return op->infer == NULL && op->decompose != NULL && op->op_class != TN_CLASS_POINTWISE;
}

/* Whether the op has a decomposition or a formula. */
static inline bool tn_op_is_composite(const tn_op *op) {
  return op->decompose != NULL || op->formula != NULL;
}

/* Whether the op has a rule for its gradient. */
static inline bool tn_op_has_gradient(const tn_op *op) { return op->grad != NULL || op->gradient != NULL; }
