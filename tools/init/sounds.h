/* tools/init/sounds.h: a look at sounds: their rate and length by the headers of WAV and FLAC, and a folder
 * of them as the source audio_folder sees it. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum { SOUNDS_BINS = 40 }; /* of a mel spectrogram */

/* The form that sounds are converted to. */
typedef struct sounds_form {
  long long rate; /* samples a second */
  double seconds;
} sounds_form;

bool sounds_has_suffix(const char *name);
/* The rate of the file, at most 16000, and its length in tenths of a second, at least one, at most 10 s; of a
 * format whose header is not read 16000 and 1 s. */
sounds_form sounds_form_of(const char *path);
long long sounds_frames(sounds_form form);
/* A line of transforms: a spectrogram in decibels of a field. */
void sounds_write_mel(FILE *to, sounds_form form, const char *field);
