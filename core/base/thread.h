/* core/base/thread.h: what the machine says of time and processors. */
#ifndef TN_CORE_BASE_THREAD_H
#define TN_CORE_BASE_THREAD_H

#include "core/base/env.h"

/* Seconds from a fixed point, never going back. */
double tn_clock_s(void);
/* How many processors this process may run on (affinity mask and cgroup quota), at least 1. */
int32_t tn_cpu_count(void);

#endif
