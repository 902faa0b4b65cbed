/* tests/support/await.h: waits for a condition that another thread or process makes true. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The limit ends a hang. It is long, so that no result depends on the speed of the machine. */
enum { AWAIT_S = 60 };

/* The clock of the system, also where a test holds clock_gettime (tests/support/test_clock.h). */
static inline struct timespec await_begin(void) {
  struct timespec now = {0, 0};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now;
}

static inline void await_moment(const struct timespec *begun, const char *what, const char *file, int line) {
  const struct timespec moment = {0, 1000000}, now = await_begin();
  nanosleep(&moment, NULL);
  if (now.tv_sec - begun->tv_sec <= AWAIT_S) return;
  fprintf(stderr, "%s:%d: after %d s still not: %s\n", file, line, AWAIT_S, what);
  abort();
}

/* The state of a process or thread as ps prints it: R runs or could, S sleeps, T is stopped, Z has ended;
 * '\0' where no process or thread has the number. */
static inline char await_state_of(int id) {
  char path[32], text[512];
  snprintf(path, sizeof path, "/proc/%d/stat", id);
  FILE *file = fopen(path, "r");
  if (file == NULL) return '\0';
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  const char *name = strrchr(text, ')');
  return name != NULL && name[1] != '\0' ? name[2] : '\0';
}

/* Returns when the condition is true. */
#define AWAIT(condition)                                                                                     \
  for (struct timespec await_begun = await_begin(); !(condition);)                                           \
  await_moment(&await_begun, #condition, __FILE__, __LINE__)
