/* core/conformance/trial/schema_case.h: uses of ops that nobody wrote cases for, drawn after what is known of
 * them. */
#ifndef TN_CORE_CONFORMANCE_TRIAL_SCHEMA_CASE_H
#define TN_CORE_CONFORMANCE_TRIAL_SCHEMA_CASE_H

#include "core/compile/select/pattern.h"
#include "core/conformance/cases/cases.h"
#include "core/graph/op/schema.h"

/* A use drawn after the op's schema: kinds of shapes are tried until its infer takes one; required
 * attributes get a value of their range. The case's op names it. */
tn_val tn_generic_emit(tn_draw *d, const tn_case *c);

/* A use of a whole pattern: the first node as its own case draws it, the others on top of it. */
typedef struct tn_pattern_case {
  tn_case c; /* first */
  const tn_pattern *pattern;
  const tn_case *first; /* of the first node's op; NULL: by schema */
} tn_pattern_case;
tn_val tn_generic_emit_pattern(tn_draw *d, const tn_case *c);

/* The case that the core has for an op; NULL: none. */
const tn_case *tn_case_find(const char *op);
/* Whether every dtype letter of the op's schema may stand for the dtype. */
bool tn_generic_takes(const tn_op_def *def, int32_t dtype);

#endif
