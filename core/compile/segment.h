/* core/compile/segment.h: a segment: consecutive steps on one side, the device or the fallback. */
#pragma once

#include "core/compile/memory/location.h"
#include "core/compile/step.h"

/* A copy of a value, in its present layout, between the device and the host. */
typedef struct tn_transfer {
  tn_val value;
  int32_t step; /* the step on the fallback that reads or makes the value */
  tn_location device;
  int64_t host, bytes; /* offset in the host memory, and size */
} tn_transfer;

/* A segment on the fallback is a cut: the operands of its steps are copied out of the device, the launching
 * thread waits once for all work before, the steps run on the host, and the results that the device needs are
 * copied in. The launching thread never waits between two cuts.
 *
 * A placed segment on the fallback (tn_group.placed) has no such copies, which are steps of the segments
 * around it. The launching thread waits for the last copy that the segment reads, and the device goes on
 * beside it. */
typedef struct tn_segment {
  int32_t first, n; /* steps */
  bool fallback, placed;
  int32_t reads;    /* placed: the last step that copies an operand to the host; -1: none does */
  tn_awaits awaits; /* the last steps on other streams that no step of the segment awaits; its end does */
  tn_transfer *out, *in; /* out of the device before the segment, and into it after */
  int32_t n_out, n_in;
} tn_segment;
