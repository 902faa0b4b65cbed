/* plugins/sources/audio/sound.c: the first bytes select what decodes a sound: names of files are often wrong.
 */
#include "plugins/sources/audio/sound.h"

#include <string.h>

/* Formats of libsndfile. */
typedef struct sound_format {
  const char *name;
  size_t at, n; /* the bytes that it begins with, and where */
  const char *magic;
} sound_format;

static const sound_format sound_formats[] = {
    {"FLAC", 0, 4, "fLaC"},    {"Ogg", 0, 4, "OggS"},           {"MP3", 0, 3, "ID3"},
    {"MP3", 0, 2, "\xFF\xFB"}, {"MP3", 0, 2, "\xFF\xF3"},       {"MP3", 0, 2, "\xFF\xFA"},
    {"AIFF", 8, 4, "AIFF"},    {"AIFF", 8, 4, "AIFC"},          {"AU", 0, 4, ".snd"},
    {"CAF", 0, 4, "caff"},     {"WAV of 64 bits", 0, 4, "RF64"}};

static const sound_format *sound_find_format(const uint8_t *bytes, size_t n) {
  for (size_t i = 0; i < sizeof sound_formats / sizeof *sound_formats; i++) {
    const sound_format *f = &sound_formats[i];
    if (n >= f->at + f->n && memcmp(bytes + f->at, f->magic, f->n) == 0) return f;
  }
  return NULL;
}

static tn_status sound_open_wav(const void *handle, const char *where, const uint8_t *bytes, size_t n,
                                sound *s) {
  TN_TRY(wav_find(handle, where, bytes, n, &s->plain));
  s->frames = s->plain.frames;
  s->channels = s->plain.channels;
  s->rate = s->plain.rate;
  return TN_OK;
}

tn_status sound_open(const void *handle, const char *where, const uint8_t *bytes, size_t n, sound *s) {
  *s = (sound){.frames = 0};
  if (n >= 4 && memcmp(bytes, "RIFF", 4) == 0) return sound_open_wav(handle, where, bytes, n, s);
  const sound_format *f = sound_find_format(bytes, n);
  if (f == NULL)
    return tn_fail(handle, TN_EINVAL, NULL,
                   "%s: is no sound: it begins as none of WAV, FLAC, Ogg, MP3, AIFF, AU and CAF", where);
#ifdef AUDIO_SNDFILE
  return sound_open_packed(handle, where, bytes, n, s);
#else
  return tn_fail(
      handle, TN_EUNSUPPORTED, NULL,
      "%s: is %s, which this build of Tenon cannot decode; install libsndfile1-dev and build Tenon "
      "again, or convert it, for example with `ffmpeg -i OLD NEW.wav`",
      where, f->name);
#endif
}

tn_status sound_mix(const void *handle, const char *where, sound *s, int64_t n, float *to) {
#ifdef AUDIO_SNDFILE
  if (s->packed != NULL) return sound_mix_packed(handle, where, s, n, to);
#endif
  (void)handle, (void)where;
  wav_mix(&s->plain, 0, n, to);
  return TN_OK;
}

void sound_close(const void *handle, sound *s) {
#ifdef AUDIO_SNDFILE
  if (s->packed != NULL) sound_close_packed(handle, s);
#endif
  (void)handle;
  s->packed = NULL;
}
