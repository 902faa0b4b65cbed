/* tests/integration/cuda/double.h: the program on the double of CUDA (tests/fakecuda). DOUBLES: the folders
 * of its libraries. */
#pragma once

#include "program.h"

#include <stdlib.h>
#include <unistd.h>

#define ON_DOUBLE "--set backend.use=cuda --set backend.cuda.libraries=" DOUBLES " "

/* Set-up of a test: a temporary folder, and a folder of compiled kernels that tests share. */
static inline int double_open(void **state) {
  setenv("FAKECUDA_LOG", "fakecuda.log", 1);
  unsetenv("FAKECUDA_FAIL");
  unsetenv("FAKECUDA_COUNTS");
  unsetenv("FAKECUDA_ORDER");
  unsetenv("FAKECUDA_SEED");
  return program_open(state);
}

/* The double has seen no violation of CUDA's contracts and no leak since the last look. */
static inline void double_is_content_after(const char *event) {
  if (access("fakecuda.log", F_OK) != 0) return;
  const char *log = file_read("fakecuda.log", NULL);
  if (*log != '\0') fail_msg("%s: the double of CUDA says: %s", event, log);
}

/* Calls of a function of the doubles in the last run, which had FAKECUDA_COUNTS=counts. */
static inline int double_calls(const char *function) {
  char *line, *rest;
  size_t n = strlen(function);
  for (rest = file_read("counts", NULL); (line = strsep(&rest, "\n")) != NULL;)
    if (strncmp(line, function, n) == 0 && line[n] == ' ') return atoi(line + n);
  return 0;
}

static inline void double_is_content(void) { double_is_content_after("a run"); }
