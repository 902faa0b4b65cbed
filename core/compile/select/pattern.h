/* core/compile/select/pattern.h: the pattern text of a kernel (tenon/plugin/kernel.h), parsed and planned.
 *
 * A pattern is matched from its last node: `steps` says in which order its other nodes are found, each
 * through a value that is bound by then, so that a match never searches the whole graph. */
#ifndef TN_CORE_COMPILE_SELECT_PATTERN_H
#define TN_CORE_COMPILE_SELECT_PATTERN_H

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/base/vec.h"

/* More than any fused kernel known; they bound the matcher's tables. */
enum { TN_PATTERN_NODES = 32, TN_PATTERN_VALUES = 128 };

typedef struct tn_pattern_value {
  const char *name;
  int32_t maker;       /* pattern node whose result it is; -1: an operand of the kernel */
  int32_t result;      /* which of the maker's results */
  bool optional, rest; /* operands: `?` may be absent, `*` stands for all that remain of its node */
} tn_pattern_value;

typedef struct tn_pattern_node {
  const char *op;
  int32_t n_in, n_out; /* as written; further operands of the op must be absent */
  int32_t *in, *out;   /* pattern values; -1 is `_`: an absent operand, a result that stays inside */
} tn_pattern_node;

/* How a node is found once its predecessors in the plan are: as the maker of a value, or among its
 * users. */
typedef struct tn_pattern_step {
  int32_t node, value;
  bool forward;
} tn_pattern_step;

typedef struct tn_pattern {
  const char *text;
  int32_t op_class; /* TN_CLASS_... of `CLASS+`; -1: a fixed pattern, which the rest describes */
  int32_t n_nodes, n_values, n_operands, n_outs;
  tn_pattern_node *nodes;
  tn_pattern_value *values;
  int32_t *operands;      /* values that are operands, in order of appearance */
  int32_t *outs;          /* values that leave */
  tn_pattern_step *steps; /* n_nodes; the first is the last node */
} tn_pattern;

/* TN_EINVAL with the text and the position of what is wrong in it. Lives in the arena. */
tn_status tn_pattern_parse(const void *handle, tn_arena *arena, const char *text, const tn_pattern **pattern);

/* Lower-case name of an op class ("pointwise"), and back; -1 for an unknown name. */
const char *tn_class_name(uint32_t op_class);
int32_t tn_class_find(const char *name, size_t length);

#endif
