/* plugins/sources/audio/wav.c: see wav.h. A file is chunks, each a name of four letters, a length, and bytes;
 * `fmt ` describes the numbers of `data` (Microsoft, Multiple Channel Audio Data and WAVE Files). */
#include "plugins/sources/audio/wav.h"

#include <string.h>

enum { WAV_PCM = 1, WAV_FLOAT = 3, WAV_EXTENSIBLE = 0xFFFE };
enum { WAV_HEAD = 12, WAV_CHUNK = 8, WAV_FORMAT = 16, WAV_SUBFORMAT = 24, WAV_MOST_CHANNELS = 1024 };

static uint32_t wav_u16(const uint8_t *at) { return (uint32_t)at[0] | (uint32_t)at[1] << 8; }
static uint32_t wav_u32(const uint8_t *at) { return wav_u16(at) | wav_u16(at + 2) << 16; }

static tn_status wav_take_format(const void *handle, const char *where, const uint8_t *at, size_t n, wav *w) {
  if (n < WAV_FORMAT)
    return tn_fail(handle, TN_EINVAL, NULL, "%s: damaged WAV: its format is cut off", where);
  uint32_t kind = wav_u16(at), bits = wav_u16(at + 14), align = wav_u16(at + 12);
  if (kind == WAV_EXTENSIBLE && n >= WAV_SUBFORMAT + 2) kind = wav_u16(at + WAV_SUBFORMAT);
  w->channels = wav_u16(at + 2);
  w->rate = wav_u32(at + 4);
  w->bytes = (int32_t)bits / 8;
  w->is_float = kind == WAV_FLOAT;
  int32_t known = (kind == WAV_PCM && (bits == 8 || bits == 16 || bits == 24 || bits == 32)) ||
                  (kind == WAV_FLOAT && (bits == 32 || bits == 64));
  if (!known)
    return tn_fail(
        handle, TN_EINVAL, NULL,
        "%s: a WAV of kind %u with %u bits, expected PCM of 8 to 32 bits or floats; convert it, for "
        "example with `ffmpeg -i OLD -c:a pcm_s16le NEW.wav`",
        where, kind, bits);
  if (w->channels >= 1 && w->channels <= WAV_MOST_CHANNELS && w->rate >= 1 &&
      align == (uint32_t)(w->channels * w->bytes))
    return TN_OK;
  return tn_fail(handle, TN_EINVAL, NULL,
                 "%s: damaged WAV: %lld channels, %lld samples a second, frames of %u bytes", where,
                 (long long)w->channels, (long long)w->rate, align);
}

/* Programs that write to a pipe do not know the length of the data, so one beyond the end is that of the
 * rest. */
tn_status wav_find(const void *handle, const char *where, const uint8_t *bytes, size_t n, wav *w) {
  *w = (wav){.data = NULL};
  if (n < WAV_HEAD || memcmp(bytes, "RIFF", 4) != 0 || memcmp(bytes + 8, "WAVE", 4) != 0)
    return tn_fail(handle, TN_EINVAL, NULL, "%s: is no WAV, which begins with RIFF and WAVE", where);
  for (size_t at = WAV_HEAD; n - at >= WAV_CHUNK;) {
    const uint8_t *chunk = bytes + at + WAV_CHUNK;
    size_t left = n - at - WAV_CHUNK, told = wav_u32(bytes + at + 4), length = told < left ? told : left;
    if (memcmp(bytes + at, "fmt ", 4) == 0) TN_TRY(wav_take_format(handle, where, chunk, length, w));
    if (memcmp(bytes + at, "data", 4) == 0 && w->channels > 0) {
      w->data = chunk;
      w->frames = (int64_t)length / (w->channels * w->bytes);
      return TN_OK;
    }
    if (length == left) break;
    at += WAV_CHUNK + length + (length % 2);
    if (at > n) break;
  }
  return tn_fail(handle, TN_EINVAL, NULL, "%s: damaged WAV: it has no %s", where,
                 w->channels > 0 ? "data" : "format in front of its data");
}

float wav_number(const wav *w, int64_t frame, int64_t channel) {
  const uint8_t *at = w->data + (frame * w->channels + channel) * w->bytes;
  if (w->is_float && w->bytes == 4) {
    float number;
    memcpy(&number, at, sizeof number);
    return number;
  }
  if (w->is_float) {
    double number;
    memcpy(&number, at, sizeof number);
    return (float)number;
  }
  if (w->bytes == 1) return (float)(at[0] - 128) / 128.0f; /* the only size without a sign */
  uint32_t whole = 0;                                      /* the number in the upper bytes */
  for (int32_t i = 0; i < w->bytes; i++) whole |= (uint32_t)at[i] << 8 * (4 - w->bytes + i);
  return (float)((double)(int32_t)whole / 2147483648.0);
}

void wav_mix(const wav *w, int64_t first, int64_t n, float *to) {
  for (int64_t i = 0; i < n; i++) {
    double sum = 0;
    for (int64_t c = 0; c < w->channels; c++) sum += wav_number(w, first + i, c);
    to[i] = (float)(sum / (double)w->channels);
  }
}
