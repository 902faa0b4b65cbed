/* plugins/sources/audio/clip.c: see clip.h. */
#include "plugins/sources/audio/clip.h"

#include <math.h>
#include <string.h>

#include "plugins/sources/audio/resample.h"

tn_status clip_form_make(const void *handle, int64_t rate, double seconds, clip_form *form) {
  *form = (clip_form){rate, seconds > 0 ? llrint(seconds * (double)rate) : -1};
  if (form->samples != 0 && form->samples <= SOUND_MOST_SAMPLES) return TN_OK;
  return tn_fail(handle, TN_EINVAL, "seconds", "seconds = %g are %lld samples, expected 1 to %d", seconds,
                 (long long)form->samples, SOUND_MOST_SAMPLES);
}

/* Opens the sound of a file. sound_close follows in any case. */
static tn_status clip_open(const void *handle, const char *path, const char *shown, tn_scratch *scratch,
                           sound *from) {
  const uint8_t *bytes;
  size_t n;
  *from = (sound){.frames = 0};
  TN_TRY(source_scan_file(handle, path, CLIP_LARGEST_FILE, scratch, &bytes, &n));
  return sound_open(handle, shown, bytes, n, from);
}

tn_status clip_rate(const void *handle, const char *path, tn_scratch *scratch, int64_t *rate) {
  sound from;
  tn_status status = clip_open(handle, path, path, scratch, &from);
  *rate = from.rate;
  sound_close(handle, &from);
  return status;
}

/* The first n samples at the rate of the form; n is at most what the sound gives. */
static tn_status clip_convert(const void *handle, const char *shown, sound *from, const clip_form *form,
                              int64_t n, float *to) {
  if (from->rate == form->rate) return sound_mix(handle, shown, from, n, to);
  int64_t count = resample_count(from->frames, from->rate, form->rate);
  float *mixed = tn_new(handle, ((size_t)from->frames + (size_t)count) * sizeof(float));
  if (mixed == NULL) return TN_ENOMEM;
  tn_status status = sound_mix(handle, shown, from, from->frames, mixed);
  if (status == TN_OK) {
    resample_sound(mixed, from->frames, from->rate, form->rate, mixed + from->frames);
    memcpy(to, mixed + from->frames, (size_t)n * sizeof(float));
  }
  tn_delete(handle, mixed);
  return status;
}

static tn_status clip_write(tn_sample *s, int32_t field, const char *shown, sound *from,
                            const clip_form *form) {
  double after = (double)from->frames * (double)form->rate / (double)from->rate;
  if (from->frames == 0 || after > SOUND_MOST_SAMPLES)
    return tn_fail(s, TN_EINVAL, NULL, "%s: has %lld samples at %lld a second, expected 1 to %d at %lld",
                   shown, (long long)from->frames, (long long)from->rate, SOUND_MOST_SAMPLES,
                   (long long)form->rate);
  int64_t count = resample_count(from->frames, from->rate, form->rate);
  int64_t n = form->samples >= 0 ? form->samples : count, kept = count < n ? count : n;
  const tn_type type = {TN_F32, 1, {n}};
  float *to = tn_sample_field(s, field, &type);
  if (to == NULL) return TN_ENOMEM;
  if (n > kept) memset(to + kept, 0, (size_t)(n - kept) * sizeof *to);
  return clip_convert(s, shown, from, form, kept, to);
}

tn_status clip_read(tn_sample *s, int32_t field, const char *path, const char *shown, const clip_form *form) {
  sound from;
  tn_status status = clip_open(s, path, shown, s->scratch, &from);
  if (status == TN_OK) status = clip_write(s, field, shown, &from, form);
  sound_close(s, &from);
  return status;
}
