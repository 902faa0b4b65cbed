/* plugins/sources/audio/wav.h: WAV files (RIFF): PCM of 8, 16, 24 or 32 bits, and floats of 32 or 64 bits. */
#pragma once

#include "plugins/sources/sources.h"

typedef struct wav {
  const uint8_t *data; /* in the file: frames of one number for each channel */
  int64_t frames, channels, rate;
  int32_t bytes, is_float; /* of a number */
} wav;

/* Finds the sound in a file in memory. TN_EINVAL names `where`: the file is damaged, or of another kind. */
tn_status wav_find(const void *handle, const char *where, const uint8_t *bytes, size_t n, wav *sound);
/* Reads a frame's number as -1 to 1; floats are as they are stored. */
float wav_number(const wav *sound, int64_t frame, int64_t channel);
/* Frames from `first` on: n of them, the mean of their channels. */
void wav_mix(const wav *sound, int64_t first, int64_t n, float *to);
