/* tests/support/clock_of_backends.c: the test's clock in place of the system's monotonic one. */
#include "tests/support/test_clock.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
  if (clock != CLOCK_MONOTONIC) return (int)syscall(SYS_clock_gettime, clock, now);
  double seconds = test_clock_s();
  now->tv_sec = (time_t)seconds;
  now->tv_nsec = (long)(1e9 * (seconds - (double)now->tv_sec));
  return 0;
}
