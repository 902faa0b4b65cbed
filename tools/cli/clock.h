/* tools/cli/clock.h: seconds of the clock that only goes forward. */
#pragma once

#include <time.h>

static inline double cli_clock_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
