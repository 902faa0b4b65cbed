/* plugins/transforms/audio/fft.h: the discrete Fourier transform (Cooley and Tukey, 1965), of sizes whose
 * prime factors are 2, 3, 5 and 7. */
#pragma once

#include <stdint.h>

typedef struct fft_number {
  double re, im;
} fft_number;

/* Whether n has no other prime factors. */
int32_t fft_has_size(int64_t n);
/* The powers of exp(-2 pi i / n), n numbers, for fft_run. */
void fft_fill_roots(int64_t n, fft_number *roots);
/* out[k] = sum over t of in[t] exp(-2 pi i k t / n). */
void fft_run(int64_t n, const fft_number *roots, const fft_number *in, fft_number *out);
