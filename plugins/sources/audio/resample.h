/* plugins/sources/audio/resample.h: another number of samples a second, by windowed sinc interpolation
 * (Smith, Digital Audio Resampling Home Page), with torchaudio's defaults: a window of Hann over 6 zero
 * crossings, and frequencies up to 0.99 of half the smaller rate. */
#pragma once

#include <stdint.h>

/* The samples that n samples become. */
int64_t resample_count(int64_t n, int64_t from, int64_t to);
/* Writes them. The rates are at least 1. */
void resample_sound(const float *in, int64_t n, int64_t from, int64_t to, float *out);
