/* core/base/system/system.h: the clock, the number of usable processors, the memory of the host. */
#pragma once

#include "core/base/env.h"

/* Monotonic time in seconds. */
double tn_clock_s(void);
/* The number of processors that this process may use (affinity mask and cgroup quota), at least 1. */
int32_t tn_cpu_count(void);
/* Bytes of memory of the machine, or of the least limit of this process's cgroups; 0 where neither is known.
 */
int64_t tn_memory_total(void);
/* Bytes that this process can still allocate without swapping: the kernel's estimate, capped by what the
 * cgroups have left; 0 where neither is known. */
int64_t tn_memory_available(void);
