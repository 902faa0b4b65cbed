/* backends/onednn/integer_math.h: integer arithmetic for dividing work. */
#ifndef TN_BACKENDS_ONEDNN_INTEGER_MATH_H
#define TN_BACKENDS_ONEDNN_INTEGER_MATH_H

#include <stdint.h>

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t at_least_1(int64_t n) { return most(n, 1); }
static inline int64_t divide_up(int64_t n, int64_t by) { return (n + by - 1) / by; }
static inline int64_t round_up(int64_t n, int64_t to) { return divide_up(n, to) * to; }

#endif
