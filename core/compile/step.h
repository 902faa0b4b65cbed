/* core/compile/step.h: a step: one launch of a kernel, with the location of every operand and result. */
#pragma once

#include "core/compile/memory/location.h"
#include "core/compile/kernels/group.h"
#include "tenon/plugin/backend.h"

typedef struct tn_operand {
  tn_type type;
  tn_layout layout;
  tn_location location;
} tn_operand;

/* For each role of streams but TN_STREAM_COMPUTE, a step on such a stream that must have ended, by its index;
 * -1: none. Steps of one stream run in order, so those before it have ended as well. */
typedef struct tn_awaits {
  int32_t of[TN_STREAMS];
} tn_awaits;
#define TN_AWAITS_NONE                                                                                       \
  {                                                                                                          \
    { -1, -1, -1, -1 }                                                                                       \
  }

/* Collectives run on the communication stream, and copies of offloaded values on those of copies, each after
 * all compute steps before it; the compute steps after it run concurrently until one awaits it. A commit that
 * cannot be in place ends as a step of the copy kernel. */
typedef struct tn_step {
  const tn_group *group;
  const char *name;                /* "conv2d of layer1.0.conv1" */
  tn_operand *in, *out;            /* as the group's in and out */
  int32_t n_in, n_out;             /* of the group */
  tn_awaits awaits;                /* of a collective: none; it follows all compute steps before it */
  int64_t workspace_offset;        /* in the arena; in the host memory for a step on the fallback */
  int64_t folded_offset;           /* in the program's memory for folded constants */
  const struct tn_loop_body *body; /* of a loop (loop_kernel.h); else NULL */
  /* Of a copy to the device for a placed group: 1 + the last step before it that uses the memory that it
   * writes, after which it may begin, beside the compute steps behind that one; 0: after all of them. */
  int32_t follows;
} tn_step;
