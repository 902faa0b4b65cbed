/* core/compile/step.h: a step: one launch of a kernel, with the location of every operand and result. */
#pragma once

#include "core/compile/memory/location.h"
#include "core/compile/kernels/group.h"

typedef struct tn_operand {
  tn_type type;
  tn_layout layout;
  tn_location location;
} tn_operand;

/* Collectives run on the communication stream, each after all steps before it; the steps after it run
 * concurrently until one of them awaits it. A commit that cannot be in place ends as a step of the copy
 * kernel. */
typedef struct tn_step {
  const tn_group *group;
  const char *name;     /* "conv2d of layer1.0.conv1" */
  tn_operand *in, *out; /* as the group's in and out */
  int32_t n_in, n_out;  /* of the group */
  int32_t awaits;       /* a collective, by the index of its step, that must have ended before this one; -1 */
  int64_t workspace_offset;        /* in the arena; in the host memory for a step on the fallback */
  int64_t folded_offset;           /* in the program's memory for folded constants */
  const struct tn_loop_body *body; /* of a loop (loop_kernel.h); else NULL */
} tn_step;
