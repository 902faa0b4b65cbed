#include <math.h>
#include <sys/stat.h>

#include "plugins/sources/audio/resample.h"
#include "plugins/sources/audio/wav.h"
#include "tests/unit/plugins/sources/probe.h"
#include "tests/unit/plugins/sources/sound_numbers.h"

extern const tn_source audio_folder_source;

enum { RATE = 8000, MOST = 1 << 16, PCM = 1, IEEE = 3 };

static char *folder;
static uint8_t file[MOST];
static size_t used;

static int start(void **state) {
  (void)state;
  folder = make_folder();
  return mkdir(in_folder(folder, "no"), 0777) != 0 || mkdir(in_folder(folder, "yes"), 0777) != 0;
}

static int stop(void **state) {
  (void)state;
  remove_folder(folder);
  return 0;
}

static void put(uint32_t value, int bytes) {
  for (int i = 0; i < bytes; i++) file[used++] = (uint8_t)(value >> 8 * i);
}

static void put_text(const char *text) {
  memcpy(file + used, text, 4);
  used += 4;
}

/* The header, for n bytes of data. */
static void begin(int kind, int bits, int channels, int rate, size_t n) {
  used = 0;
  put_text("RIFF");
  put((uint32_t)n + 36, 4);
  put_text("WAVE");
  put_text("LIST"); /* a chunk that is skipped, with its padding */
  put(3, 4);
  put(0, 4);
  put_text("fmt ");
  put(16, 4);
  put((uint32_t)kind, 2);
  put((uint32_t)channels, 2);
  put((uint32_t)rate, 4);
  put((uint32_t)(rate * channels * bits / 8), 4);
  put((uint32_t)(channels * bits / 8), 2);
  put((uint32_t)bits, 2);
  put_text("data");
  put((uint32_t)n, 4);
}

/* 16 bits, one channel: frame i is i + first. */
static void write_ramp(const char *name, int first, int frames, int rate) {
  begin(PCM, 16, 1, rate, (size_t)frames * 2);
  for (int i = 0; i < frames; i++) put((uint32_t)(i + first), 2);
  write_file(in_folder(folder, name), file, used);
}

static void put_three(void) {
  write_ramp("no/a.wav", 0, 10, RATE);
  write_ramp("yes/a.WAV", 100, 4, RATE);
  write_ramp("yes/b.wav", 200, 6, RATE);
  write_file(in_folder(folder, "yes/notes.txt"), "x", 1);
}

static void open_part(probe *p, const char *const *pairs, int32_t split) {
  if (probe_open(p, &audio_folder_source, pairs, split) != TN_OK) fail_msg("%s", probe_error(p));
}

static void sounds_have_the_class_of_their_folder(void **state) {
  (void)state;
  probe p;
  put_three();
  open_part(&p, PAIRS("folder", folder), TN_SPLIT_TRAIN);
  assert_int_equal(p.description.count, 3);
  assert_int_equal(p.description.fields[0].type.dims[0], -1);
  assert_string_equal(p.description.fields[1].class_names[1], "yes");
  for (int64_t i = 0; i < 3; i++) {
    assert_int_equal(probe_read(&p, i, 0), TN_OK);
    assert_int_equal(*(const int32_t *)p.value[1], i > 0);
    probe_expect_class(&p, i, i > 0);
  }
  assert_int_equal(p.type[0].dims[0], 6);
  for (int i = 0; i < 6; i++)
    assert_float_equal(((const float *)p.value[0])[i], (float)(200 + i) / 32768.0f, 0);
  probe_close(&p);
}

static void a_fixed_length_cuts_and_fills(void **state) {
  (void)state;
  probe p;
  put_three();
  open_part(&p, PAIRS("folder", folder, "seconds", "0.00075"), TN_SPLIT_TRAIN);
  assert_int_equal(p.description.fields[0].type.dims[0], 6);
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  const float *sound = p.value[0];
  assert_float_equal(sound[5], 5.0f / 32768.0f, 0);
  assert_int_equal(probe_read(&p, 1, 0), TN_OK);
  sound = p.value[0];
  assert_float_equal(sound[3], 103.0f / 32768.0f, 0);
  assert_true(sound[4] == 0 && sound[5] == 0);
  probe_close(&p);
}

static void numbers_of_every_size_are_read(void **state) {
  (void)state;
  static const struct {
    int kind, bits;
    uint32_t low, high; /* the words of one number of each of two channels */
    float expected;     /* their mean */
  } cases[] = {{PCM, 8, 0xC0, 0x80, 0.25f},
               {PCM, 16, 0x4000, 0xC000, 0},
               {PCM, 24, 0x200000, 0x200000, 0.25f},
               {PCM, 32, 0x80000000u, 0x80000000u, -1},
               {IEEE, 32, 0x3F000000, 0x3F800000, 0.75f}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wav sound;
    float mixed;
    tn_error_record record;
    tn_env env;
    tn_error_record_init_root(&env, &record, &tn_host_api);
    begin(cases[i].kind, cases[i].bits, 2, RATE, (size_t)cases[i].bits / 4);
    put(cases[i].low, cases[i].bits / 8);
    put(cases[i].high, cases[i].bits / 8);
    assert_int_equal(wav_find(&env, "x.wav", file, used, &sound), TN_OK);
    assert_int_equal(sound.frames, 1);
    assert_int_equal(sound.rate, RATE);
    wav_mix(&sound, 0, 1, &mixed);
    assert_float_equal(mixed, cases[i].expected, 0);
  }
}

/* A sine of 440 Hz stays one; the ends lack the samples beyond them. */
static void another_rate_keeps_the_sound(void **state) {
  (void)state;
  static const int64_t rates[][2] = {{8000, 16000}, {16000, 8000}, {44100, 16000}, {8000, 8000}};
  static float in[4096], out[16384];
  for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
    int64_t from = rates[i][0], to = rates[i][1], n = 2000, count = resample_count(n, from, to);
    assert_int_equal(count, (n * to + from - 1) / from);
    for (int64_t k = 0; k < n; k++) in[k] = (float)sin(2 * 3.14159265358979 * 440 * (double)k / (double)from);
    resample_sound(in, n, from, to, out);
    for (int64_t k = 50; k < count - 50; k++)
      assert_float_equal(out[k], sin(2 * 3.14159265358979 * 440 * (double)k / (double)to), 0.01);
  }
}

static void sounds_of_another_rate_are_converted(void **state) {
  (void)state;
  probe p;
  put_three();
  write_ramp("yes/b.wav", 0, 100, 2 * RATE);
  open_part(&p, PAIRS("folder", folder), TN_SPLIT_TRAIN);
  assert_int_equal(probe_read(&p, 2, 0), TN_OK);
  assert_int_equal(p.type[0].dims[0], 50);
  assert_float_equal(((const float *)p.value[0])[25], 50.0f / 32768.0f, 1e-4);
  probe_close(&p);
}

static void expect_damage(const char *text) {
  probe p;
  open_part(&p, PAIRS("folder", folder, "rate", "8000"), TN_SPLIT_TRAIN);
  assert_int_equal(probe_read(&p, 0, 0), TN_EINVAL);
  if (strstr(probe_error(&p), text) == NULL) fail_msg("'%s' lacks '%s'", probe_error(&p), text);
  probe_close(&p);
}

static void damaged_sounds_are_named(void **state) {
  (void)state;
  char path[1024];
  put_three();
  snprintf(path, sizeof path, "%s", in_folder(folder, "no/a.wav"));
  write_file(path, "RIFF", 4);
  expect_damage("no/a.wav: is no WAV, which begins with RIFF and WAVE");
  write_file(path, "text", 4);
  expect_damage("no/a.wav: is no sound: it begins as none of WAV, FLAC, Ogg");
  begin(PCM, 16, 1, RATE, 4);
  write_file(path, file, 42);
  expect_damage("no/a.wav: damaged WAV: its format is cut off");
  write_file(path, file, used - 8);
  expect_damage("no/a.wav: damaged WAV: it has no data");
  write_file(path, file, used);
  expect_damage("no/a.wav: has 0 samples at 8000 a second");
  begin(7, 8, 1, RATE, 4);
  write_file(path, file, used);
  expect_damage("no/a.wav: a WAV of kind 7 with 8 bits, expected PCM");
  begin(PCM, 16, 0, RATE, 4);
  write_file(path, file, used);
  expect_damage("no/a.wav: damaged WAV: 0 channels");
}

static void wrong_folders_and_parts_are_refused(void **state) {
  (void)state;
  probe p;
  int64_t count = 0;
  write_ramp("no/a.wav", 0, 10, RATE);
  probe_refused(&audio_folder_source, PAIRS("folder", folder), TN_SPLIT_TRAIN, TN_EINVAL,
                "yes: has no sounds");
  put_three();
  probe_refused(&audio_folder_source, PAIRS("folder", folder), TN_SPLIT_VALID, TN_EUNAVAILABLE,
                "no sounds are for validation");
  probe_refused(&audio_folder_source, PAIRS("folder", folder, "valid", folder, "split", "0.5"),
                TN_SPLIT_TRAIN, TN_EINVAL, "split = 0.5 has no effect beside valid");
  for (int32_t split = 0; split < 2; split++) {
    open_part(&p, PAIRS("folder", folder, "split", "0.5"), split);
    count += p.description.count;
    probe_close(&p);
  }
  assert_int_equal(count, 3);
}

/* ---- the formats of libsndfile ---- */

static uint8_t *sound_bytes(const char *name, size_t *n) {
  static uint8_t bytes[MOST];
  char path[1024];
  snprintf(path, sizeof path, "%s/sounds/%s", FILES, name);
  FILE *from = fopen(path, "rbe");
  assert_non_null(from);
  *n = fread(bytes, 1, sizeof bytes, from);
  fclose(from);
  return bytes;
}

#ifdef AUDIO_SNDFILE
/* The name of a file does not decide how it is decoded. */
static void packed_sounds_have_the_numbers_of_libsndfile(void **state) {
  (void)state;
  probe p;
  size_t n;
  put_three();
  for (size_t i = 0; i < sizeof sound_numbers / sizeof *sound_numbers; i++) {
    const uint8_t *bytes = sound_bytes(sound_numbers[i].name, &n);
    write_file(in_folder(folder, "no/a.wav"), bytes, n);
    open_part(&p, PAIRS("folder", folder), TN_SPLIT_TRAIN);
    if (probe_read(&p, 0, 0) != TN_OK) fail_msg("%s", probe_error(&p));
    assert_int_equal(p.type[0].dims[0], SOUND_FRAMES);
    for (int k = 0; k < SOUND_FRAMES / SOUND_STEP; k++)
      assert_float_equal(((const float *)p.value[0])[k * SOUND_STEP], sound_numbers[i].numbers[k], 1e-5);
    probe_close(&p);
  }
}

static void packed_sounds_are_found_by_their_endings(void **state) {
  (void)state;
  probe p;
  size_t n;
  put_three();
  const uint8_t *bytes = sound_bytes("mono.flac", &n);
  write_file(in_folder(folder, "no/z.FLAC"), bytes, n);
  open_part(&p, PAIRS("folder", folder), TN_SPLIT_TRAIN);
  assert_int_equal(p.description.count, 4);
  probe_close(&p);
}

/* Every length and every damaged byte ends in numbers or in an error. */
static void damaged_packed_sounds_are_errors(void **state) {
  (void)state;
  static const char *const names[] = {"mono.flac", "mono.ogg"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    size_t n;
    uint8_t *bytes = sound_bytes(names[i], &n);
    int failures = 0;
    put_three();
    for (size_t cut = 0; cut < 24; cut++) {
      probe p;
      uint8_t damaged[MOST];
      memcpy(damaged, bytes, n);
      if (cut % 2 == 1) damaged[4 + cut * (n - 5) / 24] ^= 0xFF;
      write_file(in_folder(folder, "no/a.wav"), damaged, cut % 2 == 1 ? n : 4 + cut * (n - 4) / 24);
      open_part(&p, PAIRS("folder", folder, "rate", "8000"), TN_SPLIT_TRAIN);
      tn_status status = probe_read(&p, 0, 0);
      assert_true(status == TN_OK || status == TN_EINVAL);
      assert_true(status == TN_OK || strstr(probe_error(&p), "no/a.wav: ") != NULL);
      failures += status != TN_OK;
      probe_close(&p);
    }
    assert_true(failures > 6);
  }
}

/* A header of FLAC that tells of 2^36 - 1 samples. */
static void more_samples_than_fit_are_refused(void **state) {
  (void)state;
  size_t n;
  uint8_t *bytes = sound_bytes("mono.flac", &n);
  put_three();
  bytes[21] |= 0x0F; /* the lower half of STREAMINFO's byte 13, and the four behind it */
  memset(bytes + 22, 0xFF, 4);
  write_file(in_folder(folder, "no/a.wav"), bytes, n);
  expect_damage("no/a.wav: tells of 68719476735 samples in 1 channels at 8000 a second");
}
#else
static void a_build_without_libsndfile_says_so(void **state) {
  (void)state;
  size_t n;
  probe p;
  put_three();
  const uint8_t *bytes = sound_bytes("mono.flac", &n);
  write_file(in_folder(folder, "no/a.wav"), bytes, n);
  open_part(&p, PAIRS("folder", folder, "rate", "8000"), TN_SPLIT_TRAIN);
  assert_int_equal(probe_read(&p, 0, 0), TN_EUNSUPPORTED);
  assert_non_null(
      strstr(probe_error(&p), "is FLAC, which this build of Tenon cannot decode; install libsndfile1-dev"));
  probe_close(&p);
}
#endif

static void every_refused_allocation_is_survived(void **state) {
  (void)state;
  put_three();
  probe_starve(&audio_folder_source, PAIRS("folder", folder, "rate", "16000"));
}

int main(void) {
#define CASE(test) cmocka_unit_test_setup_teardown(test, start, stop)
  const struct CMUnitTest tests[] = {
      CASE(sounds_have_the_class_of_their_folder),
      CASE(a_fixed_length_cuts_and_fills),
      CASE(numbers_of_every_size_are_read),
      CASE(another_rate_keeps_the_sound),
      CASE(sounds_of_another_rate_are_converted),
      CASE(damaged_sounds_are_named),
      CASE(wrong_folders_and_parts_are_refused),
      CASE(every_refused_allocation_is_survived),
#ifdef AUDIO_SNDFILE
      CASE(packed_sounds_have_the_numbers_of_libsndfile),
      CASE(packed_sounds_are_found_by_their_endings),
      CASE(damaged_packed_sounds_are_errors),
      CASE(more_samples_than_fit_are_refused),
#else
      CASE(a_build_without_libsndfile_says_so),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
