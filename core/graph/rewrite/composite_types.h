/* core/graph/rewrite/composite_types.h: the types of results of composite ops that have no infer. */
#pragma once

#include "core/graph/op/schema.h"

/* Emits the decomposition into a graph of its own, and reads the types of what it yields. */
tn_status tn_composite_types(const tn_env *env, const tn_op_def *def, const void *attributes,
                             const tn_type *const *in, int32_t n_in, tn_type *out);
