/* Sounds and spectrograms, beside librosa. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/config/options/options.h"
#include "core/plugin/handles.h"
#include "plugins/transforms/audio/fft.h"
#include "plugins/transforms/transforms.h"
#include "tests/unit/plugins/transforms/audio_goldens.h"

extern const tn_transform mel_transform, mfcc_transform, spec_augment_transform;

enum { SAMPLES = 1000, MOST = 4096 };

static tn_error_record record;
static tn_env env;
static tn_arena arena;
static float sound[2 * SAMPLES], out[MOST];

static int start(void **state) {
  (void)state;
  tn_error_record_init_root(&env, &record, &tn_host_api);
  arena = tn_arena_new(&env);
  for (int t = 0; t < SAMPLES; t++)
    sound[t] =
        (float)(sin(t * 0.3) * 0.5 + sin((double)t * t * 0.0011) * 0.25 + t * 7919 % 1000 / 5000.0 - 0.1);
  for (int t = 0; t < SAMPLES; t++) sound[SAMPLES + t] = 2 * sound[t];
  return 0;
}

static int stop(void **state) {
  (void)state;
  tn_arena_free(&arena);
  return 0;
}

#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const void *options_of(const tn_transform *t, const char *const *pairs) {
  tn_options options;
  tn_status status = tn_options_start(&env, &arena, &t->item, &options);
  for (; status == TN_OK && *pairs != NULL; pairs += 2)
    status = tn_options_set_text(&env, &options, pairs[0], pairs[1]);
  if (status == TN_OK) status = tn_options_finish(&env, &options);
  if (status != TN_OK) fail_msg("%s", tn_error_text(&env));
  return options.data;
}

/* Applies the transform twice with one scratch memory, and expects the same; returns the type. */
static tn_type apply(const tn_transform *t, const char *const *pairs, const tn_type *type, const float *in,
                     uint64_t key) {
  static float again[MOST];
  const void *options = options_of(t, pairs);
  tn_type result = *type;
  tn_scratch scratch = {NULL, 0};
  if (t->infer(&env, options, 1, type, &result) != TN_OK) fail_msg("%s", tn_error_text(&env));
  assert_true(tn_type_count(&result) <= MOST);
  for (int pass = 0; pass < 2; pass++) {
    const void *from[] = {in};
    void *to[] = {pass == 0 ? again : out};
    tn_transform_call call = {env, sizeof call, 1, type, &result, from, to, 0, key, &scratch};
    assert_int_equal(t->apply(&call, options), TN_OK);
  }
  assert_memory_equal(again, out, tn_type_bytes(&result));
  tn_release(&env, scratch.memory);
  return result;
}

/* Within 1e-4 of the greatest number. */
static void expect_near(const float *expected, size_t n) {
  float greatest = 0;
  for (size_t i = 0; i < n; i++) greatest = fmaxf(greatest, fabsf(expected[i]));
  for (size_t i = 0; i < n; i++)
    if (!(fabsf(out[i] - expected[i]) <= 1e-4f * greatest))
      fail_msg("number %zu is %g, expected %g", i, (double)out[i], (double)expected[i]);
}
#define EXPECT_NEAR(golden)                                                                                  \
  (assert_int_equal(tn_type_count(&type), sizeof golden / sizeof *golden),                                   \
   expect_near(golden, sizeof golden / sizeof *golden))

static const tn_type MONO = {TN_F32, 1, {SAMPLES}}, STEREO = {TN_F32, 2, {2, SAMPLES}};

static void transforms_of_every_size_are_sums(void **state) {
  (void)state;
  static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 12, 30, 49, 64, 400};
  static fft_number roots[400], in[400], found[400];
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    int64_t n = sizes[i];
    assert_true(fft_has_size(n));
    fft_fill_roots(n, roots);
    for (int64_t t = 0; t < n; t++) in[t] = (fft_number){sound[t], sound[SAMPLES - 1 - t]};
    fft_run(n, roots, in, found);
    for (int64_t k = 0; k < n; k++) {
      double re = 0, im = 0;
      for (int64_t t = 0; t < n; t++) {
        fft_number root = roots[k * t % n];
        re += in[t].re * root.re - in[t].im * root.im;
        im += in[t].re * root.im + in[t].im * root.re;
      }
      assert_true(fabs(re - found[k].re) < 1e-10 && fabs(im - found[k].im) < 1e-10);
    }
  }
  assert_false(fft_has_size(11));
  assert_false(fft_has_size(2 * 121));
}

static void spectrograms_are_those_of_librosa(void **state) {
  (void)state;
  tn_type type =
      apply(&mel_transform, PAIRS("bins", "8", "rate", "8000", "fft", "256", "hop", "200"), &MONO, sound, 0);
  assert_int_equal(type.rank, 2);
  assert_int_equal(type.dims[0], 8);
  EXPECT_NEAR(mel_slaney);
  type = apply(&mel_transform,
               PAIRS("bins", "6", "rate", "8000", "fft", "400", "hop", "160", "window", "320", "scale", "htk",
                     "norm", "none", "power", "1", "low", "100", "high", "3000", "pad", "reflect"),
               &MONO, sound, 0);
  EXPECT_NEAR(mel_htk);
  type = apply(
      &mel_transform,
      PAIRS("bins", "8", "rate", "8000", "fft", "250", "hop", "250", "pad", "no", "log", "db", "range", "30"),
      &MONO, sound, 0);
  EXPECT_NEAR(mel_db);
}

static void channels_are_independent(void **state) {
  (void)state;
  tn_type type = apply(&mel_transform, PAIRS("bins", "8", "rate", "8000", "fft", "256", "hop", "200"),
                       &STEREO, sound, 0);
  assert_int_equal(type.rank, 3);
  assert_int_equal(type.dims[0], 2);
  expect_near(mel_slaney, sizeof mel_slaney / sizeof *mel_slaney);
  int64_t n = tn_type_count(&type) / 2;
  for (int64_t i = 0; i < n; i++)
    assert_true(fabsf(out[n + i] - 4 * out[i]) <= 1e-4f * fabsf(out[n + i]) + 1e-6f);
}

static void coefficients_are_those_of_librosa(void **state) {
  (void)state;
  static float spectrogram[MOST];
  tn_type type =
      apply(&mel_transform, PAIRS("bins", "12", "rate", "8000", "fft", "256", "hop", "200", "log", "db"),
            &MONO, sound, 0);
  const tn_type from = type;
  memcpy(spectrogram, out, tn_type_bytes(&type));
  type = apply(&mfcc_transform, PAIRS("coefficients", "5"), &from, spectrogram, 0);
  EXPECT_NEAR(mfcc_db);
}

/* Of ones, every number is 1 or in a stripe of whole bins or whole frames, alike in both channels. */
static void stripes_cover_bins_and_frames(void **state) {
  (void)state;
  enum { BINS = 12, FRAMES = 20 };
  static float ones[2 * BINS * FRAMES];
  const tn_type type = {TN_F32, 3, {2, BINS, FRAMES}};
  int covered = 0;
  for (int i = 0; i < 2 * BINS * FRAMES; i++) ones[i] = 1;
  for (uint64_t key = 0; key < 50; key++) {
    int bins = 0, frames = 0;
    apply(&spec_augment_transform, PAIRS("time", "4", "freq", "3", "times", "1", "freqs", "1", "value", "7"),
          &type, ones, tn_hash_mix(key, 1));
    for (int b = 0; b < BINS; b++) {
      int whole = 1;
      for (int t = 0; t < FRAMES; t++) whole = whole && out[b * FRAMES + t] == 7;
      bins += whole;
    }
    for (int t = 0; t < FRAMES; t++) {
      int whole = 1;
      for (int b = 0; b < BINS; b++) whole = whole && out[b * FRAMES + t] == 7;
      frames += whole;
    }
    int changed = 0;
    for (int i = 0; i < BINS * FRAMES; i++) {
      assert_true(out[i] == 1 || out[i] == 7);
      assert_true(out[i] == out[BINS * FRAMES + i]);
      changed += out[i] == 7;
    }
    assert_in_range(bins, 0, 3);
    assert_in_range(frames, 0, 4);
    assert_int_equal(changed, bins * FRAMES + frames * (BINS - bins));
    covered += changed > 0;
  }
  assert_in_range(covered, 30, 50);
}

static void refuses(const tn_transform *t, const char *const *pairs, const tn_type *type, const char *text) {
  tn_type result = *type;
  assert_int_equal(t->infer(&env, options_of(t, pairs), 1, type, &result), TN_EINVAL);
  if (strstr(tn_error_text(&env), text) == NULL) fail_msg("'%s' lacks '%s'", tn_error_text(&env), text);
}

static void wrong_options_and_fields_are_refused(void **state) {
  (void)state;
  const tn_type bytes = {TN_U8, 1, {SAMPLES}}, brief = {TN_F32, 1, {100}}, varying = {TN_F32, 1, {-1}},
                spectrogram = {TN_F32, 2, {12, 20}};
  refuses(&mel_transform, PAIRS("fft", "22"), &MONO, "fft = 22, expected a product of 2, 3, 5 and 7");
  refuses(&mel_transform, PAIRS("window", "513"), &MONO, "window = 513, expected at most fft = 512");
  refuses(&mel_transform, PAIRS("high", "9000"), &MONO, "frequencies from 0 to 9000 Hz, expected some");
  refuses(&mel_transform, PAIRS("low", "8000"), &MONO, "frequencies from 8000 to 8000 Hz");
  refuses(&mel_transform, PAIRS("bins", "8"), &bytes, "a field is u8 of rank 1, expected a sound");
  refuses(&mel_transform, PAIRS("bins", "8"), &brief, "a sound has 100 samples, expected at least 257");
  refuses(&mfcc_transform, PAIRS("coefficients", "13"), &spectrogram, "coefficients = 13 of 12 bins");
  refuses(&mfcc_transform, PAIRS("coefficients", "13"), &MONO, "expected a spectrogram, f32[bins, frames]");
  refuses(&spec_augment_transform, PAIRS("time", "1"), &MONO, "expected a spectrogram");
  tn_type result = varying;
  assert_int_equal(
      mel_transform.infer(&env, options_of(&mel_transform, PAIRS("bins", "8")), 1, &varying, &result), TN_OK);
  assert_int_equal(result.dims[1], -1);
}

int main(void) {
#define CASE(test) cmocka_unit_test_setup_teardown(test, start, stop)
  const struct CMUnitTest tests[] = {
      CASE(transforms_of_every_size_are_sums), CASE(spectrograms_are_those_of_librosa),
      CASE(channels_are_independent),          CASE(coefficients_are_those_of_librosa),
      CASE(stripes_cover_bins_and_frames),     CASE(wrong_options_and_fields_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
