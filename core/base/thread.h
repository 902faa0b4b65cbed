/* core/base/thread.h: what the machine says of time, processors and memory. */
#ifndef TN_CORE_BASE_THREAD_H
#define TN_CORE_BASE_THREAD_H

#include "core/base/env.h"

/* Seconds from a fixed point, never going back. */
double tn_clock_s(void);
/* How many processors this process may run on (affinity mask and cgroup quota), at least 1. */
int32_t tn_cpu_count(void);
/* Bytes that this process could still take without anything being swapped (the kernel's estimate, and the
 * cgroup's limit); 0 where nobody says. */
int64_t tn_memory_available(void);

#endif
