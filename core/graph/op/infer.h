/* core/graph/op/infer.h: whether operands fit an op, and the types of its results. */
#ifndef TN_CORE_GRAPH_OP_INFER_H
#define TN_CORE_GRAPH_OP_INFER_H

#include "core/graph/op/schema.h"

/* Checks operands against the schema (NULL: absent), lets the op infer, and checks what it says.
 * Writes def->n_results types. Errors begin with the op's name. */
tn_status tn_infer_types(const tn_env *env, const tn_op_def *def, const void *attributes,
                         const tn_type *const *in, int32_t n_in, tn_type *out);

/* The number of elements and of bytes; false if it exceeds int64 or a dimension is negative. */
bool tn_type_fits(const tn_type *type);

#endif
