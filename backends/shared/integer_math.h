/* backends/shared/integer_math.h: integer arithmetic for the division of work into pieces. */
#pragma once

#include <stdint.h>

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t at_least_1(int64_t n) { return most(n, 1); }
static inline int64_t divide_up(int64_t n, int64_t by) { return (n + by - 1) / by; }
static inline int64_t round_up(int64_t n, int64_t to) { return divide_up(n, to) * to; }

/* The step, at most `limit`, in which n items come in as few pieces as possible of nearly equal size. */
static inline int64_t balanced_step(int64_t n, int64_t limit) {
  int64_t pieces = divide_up(n, limit);
  return pieces > 0 ? divide_up(n, pieces) : 1;
}
