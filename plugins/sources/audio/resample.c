/* plugins/sources/audio/resample.c: see resample.h. */
#include "plugins/sources/audio/resample.h"

#include <math.h>

static const double PI = 3.14159265358979323846, CROSSINGS = 6, ROLLOFF = 0.99;

int64_t resample_count(int64_t n, int64_t from, int64_t to) {
  return (int64_t)ceil((double)n * (double)to / (double)from);
}

/* The kernel at a distance, in periods of the highest frequency that is kept. */
static double resample_kernel(double t) {
  if (fabs(t) >= CROSSINGS) return 0;
  double window = cos(t * PI / CROSSINGS / 2), x = t * PI;
  return window * window * (x == 0 ? 1 : sin(x) / x);
}

void resample_sound(const float *in, int64_t n, int64_t from, int64_t to, float *out) {
  double keeps = (double)(from < to ? from : to) * ROLLOFF, scale = keeps / (double)from;
  double reach = CROSSINGS / scale; /* samples of `in` on each side */
  for (int64_t i = 0, count = resample_count(n, from, to); i < count; i++) {
    double at = (double)i * (double)from / (double)to, sum = 0;
    int64_t first = (int64_t)ceil(at - reach), last = (int64_t)floor(at + reach);
    if (first < 0) first = 0;
    if (last > n - 1) last = n - 1;
    for (int64_t k = first; k <= last; k++) sum += in[k] * resample_kernel(((double)k - at) * scale);
    out[i] = (float)(sum * scale);
  }
}
