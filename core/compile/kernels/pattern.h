/* core/compile/kernels/pattern.h: the pattern text of a kernel (tenon/plugin/kernel.h), parsed and with a
 * match order.
 *
 * A pattern is matched from its last node. `steps` is the order in which the other nodes are found, each
 * through a value that is bound by then, so that a match never searches the whole graph. */
#pragma once

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/base/vec.h"

/* Sizes of the matcher's tables; no known fused kernel needs as many. */
enum { TN_PATTERN_NODES = 32, TN_PATTERN_VALUES = 128 };

typedef struct tn_pattern_value {
  const char *name;
  int32_t maker;       /* the pattern node that makes it; -1: an operand of the kernel */
  int32_t result;      /* which of the maker's results */
  bool optional, rest; /* operands: `?` may be absent; `*` is all remaining operands of its node */
} tn_pattern_value;

typedef struct tn_pattern_node {
  const char *op;
  bool shared;         /* `&`: the kernel recomputes the node, which stays in the graph for its other users */
  int32_t n_in, n_out; /* as written; further operands of the op must be absent */
  int32_t *in, *out; /* pattern values; -1 is `_`: an absent operand, or a result that only the match reads */
} tn_pattern_node;

/* Finds a node when the nodes of the steps before are found: as the maker of a bound value, or (forward)
 * among the users of one. */
typedef struct tn_pattern_step {
  int32_t node, value;
  bool forward;
} tn_pattern_step;

typedef struct tn_pattern {
  const char *text;
  int32_t op_class; /* TN_CLASS_... of `CLASS+`; -1: a fixed pattern, which the other members describe */
  int32_t prologue; /* TN_CLASS_... of `CLASS+;` in front of the statements of a fixed pattern; -1: none */
  int32_t epilogue; /* TN_CLASS_... of `; CLASS+` behind them; -1: none */
  int32_t n_nodes, n_values, n_operands, n_outs;
  tn_pattern_node *nodes;
  tn_pattern_value *values;
  int32_t *operands;      /* values that are operands, in order of appearance */
  int32_t *outs;          /* values that are results of the kernel */
  tn_pattern_step *steps; /* n_nodes; the first is the last node */
} tn_pattern;

/* The pattern lives in the arena. TN_EINVAL with the text and the position of the error. */
tn_status tn_pattern_parse(const void *handle, tn_arena *arena, const char *text, const tn_pattern **pattern);
/* Whether the first pattern has the statements of the second, in the same words, and an epilogue behind them.
 * Neither has a prologue. */
bool tn_pattern_extends(const tn_pattern *with_epilogue, const tn_pattern *without);
