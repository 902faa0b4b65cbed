/* plugins/sources/audio/clip.h: a sound as a field of a sample: at one rate, and of one length where that is
 * asked for. */
#pragma once

#include "plugins/sources/audio/sound.h"

static const size_t CLIP_LARGEST_FILE = (size_t)1 << 30;

typedef struct clip_form {
  int64_t rate;
  int64_t samples; /* of every clip; -1: they differ */
} clip_form;

/* The form of clips of so many seconds; 0: they differ. */
tn_status clip_form_make(const void *handle, int64_t rate, double seconds, clip_form *form);
/* The rate of a file. */
tn_status clip_rate(const void *handle, const char *path, tn_scratch *scratch, int64_t *rate);
/* Reads a file into a field of the sample. `shown` is its name in messages. */
tn_status clip_read(tn_sample *s, int32_t field, const char *path, const char *shown, const clip_form *form);
