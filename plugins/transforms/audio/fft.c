/* plugins/transforms/audio/fft.c: see fft.h. Decimation in time: n = p m samples are p transforms of the m
 * samples that lie p apart, joined by m small transforms of size p. */
#include "plugins/transforms/audio/fft.h"

#include <math.h>

static const double PI = 3.14159265358979323846;
enum { FFT_MOST_FACTOR = 7 };

/* The smallest prime factor; n itself where it is larger than those that are supported. */
static int64_t fft_factor(int64_t n) {
  for (int64_t p = 2; p <= FFT_MOST_FACTOR; p++)
    if (n % p == 0) return p;
  return n;
}

int32_t fft_has_size(int64_t n) {
  while (n > 1 && fft_factor(n) <= FFT_MOST_FACTOR) n /= fft_factor(n);
  return n == 1;
}

void fft_fill_roots(int64_t n, fft_number *roots) {
  for (int64_t k = 0; k < n; k++) {
    double angle = -2 * PI * (double)k / (double)n;
    roots[k] = (fft_number){cos(angle), sin(angle)};
  }
}

static fft_number fft_product(fft_number a, fft_number b) {
  return (fft_number){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* Joins two transforms of m numbers; `step` roots are one root of 2 m. */
static void fft_join_two(int64_t m, int64_t step, const fft_number *roots, fft_number *out) {
  for (int64_t k = 0; k < m; k++) {
    fft_number even = out[k], odd = fft_product(out[m + k], roots[k * step]);
    out[k] = (fft_number){even.re + odd.re, even.im + odd.im};
    out[m + k] = (fft_number){even.re - odd.re, even.im - odd.im};
  }
}

static void fft_join(int64_t p, int64_t m, int64_t step, const fft_number *roots, fft_number *out) {
  for (int64_t k = 0; k < m; k++) {
    fft_number part[FFT_MOST_FACTOR];
    for (int64_t q = 0; q < p; q++) part[q] = fft_product(out[q * m + k], roots[q * k * step]);
    for (int64_t r = 0; r < p; r++) {
      fft_number sum = part[0];
      for (int64_t q = 1; q < p; q++) {
        fft_number term = fft_product(part[q], roots[q * r % p * m * step]);
        sum = (fft_number){sum.re + term.re, sum.im + term.im};
      }
      out[r * m + k] = sum;
    }
  }
}

/* The transform of n numbers that lie `step` apart. */
static void fft_part(int64_t n, int64_t step, const fft_number *roots, const fft_number *in,
                     fft_number *out) {
  if (n == 1) {
    out[0] = in[0];
    return;
  }
  int64_t p = fft_factor(n), m = n / p;
  for (int64_t q = 0; q < p; q++) fft_part(m, step * p, roots, in + q * step, out + q * m);
  if (p == 2)
    fft_join_two(m, step, roots, out);
  else
    fft_join(p, m, step, roots, out);
}

void fft_run(int64_t n, const fft_number *roots, const fft_number *in, fft_number *out) {
  fft_part(n, 1, roots, in, out);
}
