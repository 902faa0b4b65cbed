/* core/graph/op/infer.h: checks operands against schemas and infers the types of results. */
#pragma once

#include "core/graph/op/schema.h"

/* Checks the operands (NULL: absent) against the schema, calls the op's infer, and checks its results.
 * Writes def->n_results types. Errors begin with the op's name. */
tn_status tn_infer_types(const tn_env *env, const tn_op_def *def, const void *attributes,
                         const tn_type *const *in, int32_t n_in, tn_type *out);

/* Whether no dimension is negative and the numbers of elements and bytes fit in int64. */
bool tn_type_fits(const tn_type *type);
