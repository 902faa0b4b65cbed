/* plugins/sources/audio/sndfile.c: decodes sounds by libsndfile, from memory, in blocks. */
#include <sndfile.h>
#include <string.h>

#include "plugins/sources/audio/sound.h"

enum { SNDFILE_BLOCK = 4096, SNDFILE_MOST_CHANNELS = 64 };

struct sound_file {
  SNDFILE *file;
  const uint8_t *bytes;
  sf_count_t n, at;
  float *block; /* of interleaved channels */
};

/* ---- a file in memory ---- */

static sf_count_t sndfile_length(void *context) { return ((const struct sound_file *)context)->n; }

static sf_count_t sndfile_tell(void *context) { return ((const struct sound_file *)context)->at; }

static sf_count_t sndfile_seek(sf_count_t offset, int whence, void *context) {
  struct sound_file *f = context;
  sf_count_t from = whence == SEEK_CUR ? f->at : whence == SEEK_END ? f->n : 0, to;
  if (__builtin_add_overflow(from, offset, &to) || to < 0 || to > f->n) return -1;
  return f->at = to;
}

static sf_count_t sndfile_read(void *to, sf_count_t count, void *context) {
  struct sound_file *f = context;
  sf_count_t n = count < f->n - f->at ? count : f->n - f->at;
  if (n <= 0) return 0;
  memcpy(to, f->bytes + f->at, (size_t)n);
  f->at += n;
  return n;
}

static sf_count_t sndfile_write(const void *from, sf_count_t count, void *context) {
  (void)from, (void)count, (void)context;
  return 0;
}

/* ---- opening ---- */

static tn_status sndfile_fail(const void *handle, const char *where, SNDFILE *file) {
  return tn_fail(handle, TN_EINVAL, NULL, "%s: damaged sound: %s; remove it, or set corrupt = skip in [data]",
                 where, sf_strerror(file));
}

static tn_status sndfile_check(const void *handle, const char *where, const SF_INFO *info, sound *s) {
  s->frames = info->frames;
  s->channels = info->channels;
  s->rate = info->samplerate;
  if (info->frames >= 0 && info->frames <= SOUND_MOST_SAMPLES && info->channels >= 1 &&
      info->channels <= SNDFILE_MOST_CHANNELS && info->samplerate >= 1)
    return TN_OK;
  return tn_fail(
      handle, TN_EINVAL, NULL,
      "%s: tells of %lld samples in %d channels at %d a second, expected at most %d in 1 to %d channels",
      where, (long long)info->frames, info->channels, info->samplerate, SOUND_MOST_SAMPLES,
      SNDFILE_MOST_CHANNELS);
}

tn_status sound_open_packed(const void *handle, const char *where, const uint8_t *bytes, size_t n, sound *s) {
  SF_VIRTUAL_IO calls = {sndfile_length, sndfile_seek, sndfile_read, sndfile_write, sndfile_tell};
  SF_INFO info = {0};
  struct sound_file *f = tn_new(handle, sizeof *f);
  if (f == NULL) return TN_ENOMEM;
  s->packed = f;
  f->bytes = bytes;
  f->n = (sf_count_t)n;
  f->file = sf_open_virtual(&calls, SFM_READ, &info, f);
  return f->file != NULL ? sndfile_check(handle, where, &info, s) : sndfile_fail(handle, where, NULL);
}

/* ---- decoding ---- */

static void sndfile_mean(const float *block, int64_t n, int64_t channels, float *to) {
  for (int64_t i = 0; i < n; i++) {
    double sum = 0;
    for (int64_t c = 0; c < channels; c++) sum += block[i * channels + c];
    to[i] = (float)(sum / (double)channels);
  }
}

tn_status sound_mix_packed(const void *handle, const char *where, sound *s, int64_t n, float *to) {
  struct sound_file *f = s->packed;
  f->block = tn_new(handle, SNDFILE_BLOCK * (size_t)s->channels * sizeof *f->block);
  if (f->block == NULL) return TN_ENOMEM;
  for (int64_t at = 0; at < n;) {
    int64_t wanted = n - at < SNDFILE_BLOCK ? n - at : SNDFILE_BLOCK;
    sf_count_t got = sf_readf_float(f->file, f->block, wanted);
    if (got <= 0)
      return tn_fail(
          handle, TN_EINVAL, NULL,
          "%s: damaged sound: it ends behind %lld of %lld samples; remove it, or set corrupt = skip in "
          "[data]",
          where, (long long)at, (long long)s->frames);
    sndfile_mean(f->block, got, s->channels, to + at);
    at += got;
  }
  return TN_OK;
}

void sound_close_packed(const void *handle, sound *s) {
  if (s->packed->file != NULL) sf_close(s->packed->file);
  tn_delete(handle, s->packed->block);
  tn_delete(handle, s->packed);
}
