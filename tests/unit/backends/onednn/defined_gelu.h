/* GELU and its derivative by definition, in f64. */
#pragma once

#include <math.h>
#include <stdint.h>

static inline double defined_gelu(double x, int32_t approximate) {
  double cdf = approximate ? 0.5 + 0.5 * tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))
                           : 0.5 + 0.5 * erf(x * M_SQRT1_2);
  return x * cdf;
}

static inline double defined_gelu_slope(double x, int32_t approximate) {
  return (defined_gelu(x + 1e-5, approximate) - defined_gelu(x - 1e-5, approximate)) / 2e-5;
}
