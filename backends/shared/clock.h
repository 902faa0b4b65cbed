/* backends/shared/clock.h: clocks of the system, and points of it for waits with a limit. */
#pragma once

#include <time.h>

/* The seconds of a clock of the system. */
static inline double tn_clock_seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of the clock that only goes forward. */
static inline double tn_monotonic_s(void) { return tn_clock_seconds(CLOCK_MONOTONIC); }

/* The time of that clock so many seconds from now, at most 1e8. */
static inline struct timespec tn_monotonic_in(double seconds) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  if (seconds > 1e8) seconds = 1e8;
  double ns = (double)t.tv_nsec + 1e9 * (seconds - (double)(time_t)seconds);
  t.tv_sec += (time_t)seconds + (ns >= 1e9);
  t.tv_nsec = (long)(ns >= 1e9 ? ns - 1e9 : ns);
  return t;
}
