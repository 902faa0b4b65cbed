/* core/step/graphs/streamed_states.h: parameters that the device has no room for and no update changes. They
 * stay in memory of the host, and programs fetch them (core/compile/rematerialization/stream_states.h). */
#pragma once

#include "core/compile/state_map.h"

/* Places the large parameters of a graph that have no location yet in streamed regions, but for some that
 * stay on the device: of kept_bytes in all, the largest first, and those of equal size spread evenly over the
 * graph, so that copies and launches alternate. A parameter with low-precision copies is on the host, which
 * computes the copies; these are streamed, or stay on the device. A small parameter is not worth a copy of
 * its own in each run. `frozen`: only parameters that it freezes for good; NULL: all. */
tn_status tn_streamed_states_place(tn_state_map *map, const tn_graph *graph, int64_t kept_bytes,
                                   const tn_freeze *frozen);
