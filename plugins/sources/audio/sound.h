/* plugins/sources/audio/sound.h: a sound in memory: WAV by code of its own, FLAC, Ogg and the other formats
 * of libsndfile where the build has it. A new format of its own has a row in sound.c. */
#pragma once

#include "plugins/sources/audio/wav.h"

enum { SOUND_MOST_SAMPLES = 1 << 28 }; /* in a channel: packed silence is small */

typedef struct sound {
  int64_t frames, channels, rate;
  wav plain;                 /* of WAV */
  struct sound_file *packed; /* NULL: it is WAV */
} sound;

/* Reads the header of a file in memory, which has to stay until sound_close. TN_EINVAL names `where`: the
 * file is damaged, longer than SOUND_MOST_SAMPLES, or no sound; TN_EUNSUPPORTED: the build lacks what decodes
 * it. The caller calls sound_close in any case. */
tn_status sound_open(const void *handle, const char *where, const uint8_t *bytes, size_t n, sound *s);
/* Writes the first n frames, at most s->frames: the mean of their channels. Once for each sound_open. */
tn_status sound_mix(const void *handle, const char *where, sound *s, int64_t n, float *to);
void sound_close(const void *handle, sound *s);

/* sndfile.c: the same, by libsndfile. */
tn_status sound_open_packed(const void *handle, const char *where, const uint8_t *bytes, size_t n, sound *s);
tn_status sound_mix_packed(const void *handle, const char *where, sound *s, int64_t n, float *to);
void sound_close_packed(const void *handle, sound *s);
