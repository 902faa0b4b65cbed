/* plugins/transforms/policy/parts.h: transforms among the options of another one. A part gets the fields of
 * the call that applies it, and random numbers of its own. */
#pragma once

#include "plugins/transforms/transforms.h"

/* Fails unless there are parts, and all are transforms of samples. */
tn_status parts_check(tn_env *env, const tn_transforms *parts, int32_t n);
/* The types of the results of one part. `out` has n types. */
tn_status parts_infer(tn_env *env, const tn_transform_part *part, int32_t n, const tn_type *in, tn_type *out);
/* Fails unless the result of a part, or of several, has the types of the operands; `what` are they: "the
 * parts of random_order". */
tn_status parts_check_kept(tn_env *env, const char *what, int32_t n, const tn_type *in, const tn_type *out);
/* Applies `count` parts, by their numbers in `order`, one after the other; without any the fields stay as
 * they are. */
tn_status parts_apply(tn_transform_call *c, const tn_transforms *parts, const int64_t *order, int64_t count);
