/* tests/support/await.h: waits for a condition that another thread or process makes true. */
#ifndef TN_TESTS_SUPPORT_AWAIT_H
#define TN_TESTS_SUPPORT_AWAIT_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The limit ends a hang. It is long, so that no result depends on the speed of the machine. */
enum { AWAIT_S = 60 };

static inline struct timespec await_begin(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now;
}

static inline void await_moment(const struct timespec *begun, const char *what, const char *file, int line) {
  const struct timespec moment = {0, 1000000}, now = await_begin();
  nanosleep(&moment, NULL);
  if (now.tv_sec - begun->tv_sec <= AWAIT_S) return;
  fprintf(stderr, "%s:%d: after %d s still not: %s\n", file, line, AWAIT_S, what);
  abort();
}

/* Returns when the condition is true. */
#define AWAIT(condition)                                                                                     \
  for (struct timespec await_begun = await_begin(); !(condition);)                                           \
  await_moment(&await_begun, #condition, __FILE__, __LINE__)

#endif
