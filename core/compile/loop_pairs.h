/* core/compile/loop_pairs.h: loops in place. */
#pragma once

#include "core/base/arena.h"
#include "core/compile/kernels/loop_kernel.h"

/* Sets body->inplace: pairs of a sequence and an output, whose names in the body end in their numbers, "x3"
 * and "y0". */
tn_status tn_loop_pairs_find(tn_arena *arena, const tn_loop_attributes *attributes, tn_loop_body *body);
