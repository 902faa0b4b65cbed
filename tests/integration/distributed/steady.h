/* tests/integration/distributed/steady.h: the samples of the source `steady`. */
#pragma once

#include <stdint.h>
#include <tenon/random.h>

enum {
  STEADY_SAMPLES = 64,
  STEADY_CHANNELS = 3,
  STEADY_SIDE = 6,
  STEADY_PLANE = STEADY_SIDE * STEADY_SIDE,
  STEADY_VALUES = STEADY_CHANNELS * STEADY_PLANE
};

/* Element i of a sample, rounded to f32. A uniform number between -sqrt(3) and sqrt(3) has variance 1. */
static inline float steady_value(int64_t sample, int64_t i, double mean) {
  uint64_t bits = tn_hash_mix((uint64_t)sample + 1, (uint64_t)i);
  return (float)(mean + 1.7320508 * (2.0 * (double)(bits >> 11) * 0x1p-53 - 1.0));
}
