/* plugins/transforms/audio/mel.c: a sound as a spectrogram on the mel scale, with librosa's scales and norms:
 * windows of Hann, the power of their Fourier transforms, and sums of it over triangles. */
#include <math.h>
#include <string.h>

#include "plugins/transforms/audio/fft.h"
#include "plugins/transforms/transforms.h"

typedef struct mel_options {
  int64_t bins, rate, fft, hop, window;
  double low, high, power, range;
  int32_t scale, norm, log, pad;
} mel_options;

enum { MEL_SLANEY = 0, MEL_HTK = 1 };
enum { MEL_NO_LOG = 0, MEL_DB = 1, MEL_LN = 2 };
enum { MEL_ZERO = 0, MEL_REFLECT = 1, MEL_NO_PAD = 2 };
enum { MEL_NORM_SLANEY = 0, MEL_NORM_NONE = 1 };

static const tn_option options[] = {
    TN_OPT(mel_options, bins, TN_OPT_INT, "80", "[1, 4096]", "numbers of a frame"),
    TN_OPT(mel_options, rate, TN_OPT_INT, "16000", "[1, 10000000]", "samples of the sound in a second"),
    TN_OPT(mel_options, fft, TN_OPT_INT, "512", "[2, 65536]",
           "samples of a Fourier transform; its prime factors are 2, 3, 5 and 7"),
    TN_OPT(mel_options, hop, TN_OPT_INT, "160", "[1, 1000000]", "samples from a frame to the next"),
    TN_OPT(mel_options, window, TN_OPT_INT, "0", "[0, 65536]",
           "samples of the window, in the middle of those of fft; 0: all"),
    TN_OPT(mel_options, low, TN_OPT_FLOAT, "0", ">= 0", "the lowest frequency, in Hz"),
    TN_OPT(mel_options, high, TN_OPT_FLOAT, "0", ">= 0", "the highest frequency; 0: half of rate"),
    TN_OPT(mel_options, power, TN_OPT_FLOAT, "2", "> 0", "of magnitudes before they are summed"),
    TN_OPT(mel_options, scale, TN_OPT_ENUM, "slaney", "slaney|htk", "the mel scale"),
    TN_OPT(mel_options, norm, TN_OPT_ENUM, "slaney", "slaney|none",
           "triangles of equal area, or of equal height"),
    TN_OPT(mel_options, log, TN_OPT_ENUM, "no", "no|db|ln",
           "10 log10 or ln of the sums, those below 1e-10 as 1e-10"),
    TN_OPT(mel_options, range, TN_OPT_FLOAT, "80", ">= 0",
           "with log = db: numbers that are so far below the greatest one are raised to there; 0: none are"),
    TN_OPT(
        mel_options, pad, TN_OPT_ENUM, "zero", "zero|reflect|no",
        "half a transform in front of the sound and behind it, so that frames are centred; no: frames begin "
        "at their first sample"),
    TN_OPT_END};

/* ---- the scale ---- */

/* Slaney: linear up to 1000 Hz, which is 15 mel, and logarithmic above (Auditory Toolbox, 1998). */
static const double MEL_LINEAR = 200.0 / 3, MEL_KNEE_HZ = 1000, MEL_KNEE = 15;
static double mel_log_step(void) { return log(6.4) / 27; }

static double mel_of(double hz, int32_t scale) {
  if (scale == MEL_HTK) return 2595 * log10(1 + hz / 700);
  return hz < MEL_KNEE_HZ ? hz / MEL_LINEAR : MEL_KNEE + log(hz / MEL_KNEE_HZ) / mel_log_step();
}

static double mel_hz(double mel, int32_t scale) {
  if (scale == MEL_HTK) return 700 * (pow(10, mel / 2595) - 1);
  return mel < MEL_KNEE ? mel * MEL_LINEAR : MEL_KNEE_HZ * exp(mel_log_step() * (mel - MEL_KNEE));
}

/* ---- tables, which a worker keeps from sample to sample ---- */

typedef struct mel_span {
  int64_t first, n; /* frequencies with weights that are not 0 */
} mel_span;

typedef struct mel_tables {
  fft_number *roots, *in, *out; /* [fft] */
  double *window, *power;       /* [fft], [fft / 2 + 1] */
  float *weights;               /* [bins][fft / 2 + 1] */
  mel_span *spans;              /* [bins] */
} mel_tables;

static int64_t mel_frequencies(const mel_options *o) { return o->fft / 2 + 1; }

static double mel_high(const mel_options *o) { return o->high > 0 ? o->high : (double)o->rate / 2; }

static void mel_fill_window(const mel_options *o, double *hann) {
  int64_t n = o->window > 0 ? o->window : o->fft, first = (o->fft - n) / 2;
  memset(hann, 0, (size_t)o->fft * sizeof *hann);
  for (int64_t i = 0; i < n; i++)
    hann[first + i] = 0.5 - 0.5 * cos(2 * 3.14159265358979323846 * (double)i / (double)n);
}

/* The triangle with its tip at the middle one of three frequencies. */
static void mel_fill_triangle(const mel_options *o, const double hz[3], float *weights, mel_span *span) {
  double norm = o->norm == MEL_NORM_SLANEY ? 2 / (hz[2] - hz[0]) : 1;
  *span = (mel_span){0, 0};
  for (int64_t k = 0; k < mel_frequencies(o); k++) {
    double f = (double)k * (double)o->rate / (double)o->fft;
    double up = (f - hz[0]) / (hz[1] - hz[0]), down = (hz[2] - f) / (hz[2] - hz[1]);
    double weight = up < down ? up : down;
    weights[k] = (float)(weight > 0 ? weight * norm : 0);
    if (weight <= 0) continue;
    if (span->n == 0) span->first = k;
    span->n = k - span->first + 1;
  }
}

static void mel_fill_triangles(const mel_options *o, float *weights, mel_span *spans) {
  double low = mel_of(o->low, o->scale), step = (mel_of(mel_high(o), o->scale) - low) / (double)(o->bins + 1);
  for (int64_t b = 0; b < o->bins; b++) {
    double hz[3];
    for (int i = 0; i < 3; i++) hz[i] = mel_hz(low + step * (double)(b + i), o->scale);
    mel_fill_triangle(o, hz, weights + b * mel_frequencies(o), &spans[b]);
  }
}

/* The head of the worker's memory says whether the tables behind it are filled. */
static tn_status mel_take_tables(tn_transform_call *c, const mel_options *o, mel_tables *t) {
  size_t fft = (size_t)o->fft, half = (size_t)mel_frequencies(o), bins = (size_t)o->bins;
  size_t bytes = sizeof(double) + 3 * fft * sizeof(fft_number) + (fft + half) * sizeof(double) +
                 bins * sizeof(mel_span) + bins * half * sizeof(float);
  double *filled = tn_transform_scratch(c, bytes);
  if (filled == NULL) return TN_ENOMEM;
  t->roots = (fft_number *)(void *)(filled + 1);
  t->in = t->roots + fft;
  t->out = t->in + fft;
  t->window = (double *)(void *)(t->out + fft);
  t->power = t->window + fft;
  t->spans = (mel_span *)(void *)(t->power + half);
  t->weights = (float *)(void *)(t->spans + bins);
  if (*filled == 1) return TN_OK;
  fft_fill_roots(o->fft, t->roots);
  mel_fill_window(o, t->window);
  mel_fill_triangles(o, t->weights, t->spans);
  *filled = 1;
  return TN_OK;
}

/* ---- frames ---- */

static int64_t mel_padding(const mel_options *o) { return o->pad == MEL_NO_PAD ? 0 : o->fft / 2; }

static int64_t mel_frames(const mel_options *o, int64_t samples) {
  return (samples + 2 * mel_padding(o) - o->fft) / o->hop + 1;
}

/* Sample i of the padded sound; reflected ends do not repeat the first and the last one. */
static double mel_sample(const mel_options *o, const float *sound, int64_t samples, int64_t i) {
  if (i >= 0 && i < samples) return sound[i];
  if (o->pad != MEL_REFLECT) return 0;
  return sound[i < 0 ? -i : 2 * samples - 2 - i];
}

static void mel_transform_frame(const mel_options *o, mel_tables *t, const float *sound, int64_t samples,
                                int64_t frame) {
  int64_t first = frame * o->hop - mel_padding(o);
  for (int64_t i = 0; i < o->fft; i++)
    t->in[i] = (fft_number){mel_sample(o, sound, samples, first + i) * t->window[i], 0};
  fft_run(o->fft, t->roots, t->in, t->out);
  for (int64_t k = 0; k < mel_frequencies(o); k++) {
    double square = t->out[k].re * t->out[k].re + t->out[k].im * t->out[k].im;
    t->power[k] = o->power == 2 ? square : pow(square, o->power / 2);
  }
}

static double mel_log(const mel_options *o, double x) {
  const double least = 1e-10;
  if (o->log == MEL_NO_LOG) return x;
  x = x > least ? x : least;
  return o->log == MEL_DB ? 10 * log10(x) : log(x);
}

static void mel_limit_range(const mel_options *o, float *out, int64_t n) {
  float greatest = out[0];
  for (int64_t i = 1; i < n; i++) greatest = out[i] > greatest ? out[i] : greatest;
  float least = greatest - (float)o->range;
  for (int64_t i = 0; i < n; i++) out[i] = out[i] > least ? out[i] : least;
}

/* One channel: [bins, frames]. */
static void mel_channel(const mel_options *o, mel_tables *t, const float *sound, int64_t samples,
                        float *out) {
  int64_t frames = mel_frames(o, samples);
  for (int64_t frame = 0; frame < frames; frame++) {
    mel_transform_frame(o, t, sound, samples, frame);
    for (int64_t b = 0; b < o->bins; b++) {
      const float *weights = t->weights + b * mel_frequencies(o);
      double sum = 0;
      for (int64_t k = t->spans[b].first; k < t->spans[b].first + t->spans[b].n; k++)
        sum += (double)weights[k] * t->power[k];
      out[b * frames + frame] = (float)mel_log(o, sum);
    }
  }
  if (o->log == MEL_DB && o->range > 0) mel_limit_range(o, out, o->bins * frames);
}

static tn_status mel_check_options(tn_env *env, const mel_options *o) {
  if (!fft_has_size(o->fft))
    return tn_fail(env, TN_EINVAL, "fft",
                   "fft = %lld, expected a product of 2, 3, 5 and 7, such as 512 or 400", (long long)o->fft);
  if (o->window > o->fft)
    return tn_fail(env, TN_EINVAL, "window", "window = %lld, expected at most fft = %lld",
                   (long long)o->window, (long long)o->fft);
  if (o->low < mel_high(o) && mel_high(o) <= (double)o->rate / 2) return TN_OK;
  return tn_fail(env, TN_EINVAL, "high",
                 "frequencies from %g to %g Hz, expected some from 0 to half of rate = %lld", o->low,
                 mel_high(o), (long long)o->rate);
}

static tn_status mel_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in, tn_type *out) {
  const mel_options *o = opts;
  TN_TRY(mel_check_options(env, o));
  for (int32_t k = 0; k < n; k++) {
    int32_t last = in[k].rank - 1;
    if (in[k].dtype != TN_F32 || in[k].rank < 1 || in[k].rank > 2)
      return tn_fail(env, TN_EINVAL, NULL,
                     "a field is %s of rank %d, expected a sound, f32[samples] or "
                     "f32[channels, samples]",
                     tn_dtype_name(in[k].dtype), (int)in[k].rank);
    int64_t samples = in[k].dims[last], least = o->pad == MEL_NO_PAD ? o->fft : o->fft / 2 + 1;
    if (samples >= 0 && samples < least)
      return tn_fail(env, TN_EINVAL, NULL, "a sound has %lld samples, expected at least %lld for fft = %lld",
                     (long long)samples, (long long)least, (long long)o->fft);
    out[k] = in[k];
    out[k].rank++;
    out[k].dims[last] = o->bins;
    out[k].dims[last + 1] = samples < 0 ? -1 : mel_frames(o, samples);
  }
  return TN_OK;
}

static tn_status mel_apply(tn_transform_call *c, const void *opts) {
  const mel_options *o = opts;
  mel_tables t;
  TN_TRY(mel_take_tables(c, o, &t));
  for (int32_t k = 0; k < c->n; k++) {
    const tn_type *type = &c->in_type[k];
    int64_t samples = type->dims[type->rank - 1], channels = type->rank == 2 ? type->dims[0] : 1;
    for (int64_t i = 0; i < channels; i++)
      mel_channel(o, &t, (const float *)c->in[k] + i * samples, samples,
                  (float *)c->out[k] + i * o->bins * mel_frames(o, samples));
  }
  return TN_OK;
}

const tn_transform mel_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "mel", "a sound as a spectrogram on the mel scale",
                    mel_options, options),
    .types = "f32[samples] or f32[channels, samples] to f32[..., bins, frames]",
    .example = "transforms = mel(80, rate=16000, fft=400, hop=160, log=db)",
    .infer = mel_infer,
    .apply = mel_apply,
};
