/* plugins/transforms/pixels/random.c: numbers from distributions. */
#include <math.h>

#include "plugins/transforms/transforms.h"

float random_normal(tn_rng *rng) {
  double radius = sqrt(-2 * log(1 - tn_rng_uniform(rng)));
  return (float)(radius * cos(2 * 3.14159265358979323846 * tn_rng_uniform(rng)));
}

/* Marsaglia and Tsang, 2000. */
double random_gamma(tn_rng *rng, double a) {
  double d = a - 1.0 / 3, c = 1 / sqrt(9 * d);
  for (;;) {
    double u = 1 - tn_rng_uniform(rng), angle = 2 * 3.14159265358979323846 * tn_rng_uniform(rng);
    double x = sqrt(-2 * log(u)) * cos(angle), v = 1 + c * x;
    v = v * v * v;
    if (v > 0 && log(1 - tn_rng_uniform(rng)) < 0.5 * x * x + d - d * v + d * log(v)) return d * v;
  }
}

/* Below 1 by Johnk (1964), with logarithms, since powers of 1 / a
 * underflow. Where the logarithms overflow, too, all of the mass is at 0 and at 1. */
double random_beta(tn_rng *rng, double a) {
  if (a > 1) {
    double x = random_gamma(rng, a);
    return x / (x + random_gamma(rng, a));
  }
  for (;;) {
    double first = log(1 - tn_rng_uniform(rng)), second = log(1 - tn_rng_uniform(rng));
    double x = first / a, y = second / a, most = fmax(x, y);
    if (isinf(most)) return first > second;
    double sum = most + log(exp(x - most) + exp(y - most));
    if (sum <= 0) return exp(x - sum);
  }
}

/* Of a shape below 1 by that of a + 1 and a power of a uniform number, whose logarithm does not underflow. */
void random_dirichlet(tn_rng *rng, double a, int64_t n, double *parts) {
  double most = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++) {
    parts[i] =
        a >= 1 ? log(random_gamma(rng, a)) : log(random_gamma(rng, a + 1)) + log(1 - tn_rng_uniform(rng)) / a;
    most = fmax(most, parts[i]);
  }
  for (int64_t i = 0; i < n; i++) sum += parts[i] = exp(parts[i] - most);
  for (int64_t i = 0; i < n; i++) parts[i] /= sum;
}
