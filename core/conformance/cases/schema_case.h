/* core/conformance/cases/schema_case.h: draws uses of ops from schemas, and of kernels from patterns. */
#pragma once

#include "core/compile/kernels/pattern.h"
#include "core/conformance/cases/cases.h"
#include "core/graph/op/schema.h"

/* Draws a use of the op c->op from its schema, or from its examples (examples.h). Kinds of shapes are tried
 * until its infer accepts one; required attributes get a value in their range. */
tn_val tn_schema_emit(tn_draw *d, const tn_case *c);

/* Draws a use of a pattern: the first node by the case of its op, then the other nodes on its results. */
typedef struct tn_pattern_case {
  tn_case c; /* first */
  const tn_pattern *pattern;
  const tn_case *first; /* the case of the first node's op; NULL: from its schema */
} tn_pattern_case;
tn_val tn_pattern_emit(tn_draw *d, const tn_case *c);

/* Whether every dtype letter of the op's schema accepts the dtype. */
bool tn_schema_accepts(const tn_op_def *def, int32_t dtype);
/* Whether each element of the results depends on the elements of the operands at its index only. */
bool tn_schema_is_pointwise(const tn_op *op);
