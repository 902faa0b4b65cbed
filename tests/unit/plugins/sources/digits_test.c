#include "plugins/sources/digits/draw.h"
#include "tests/unit/plugins/sources/probe.h"

extern const tn_source digits_source, random_source;

static void training_is_endless_and_validation_is_not(void **state) {
  (void)state;
  probe p;
  assert_int_equal(probe_open(&p, &digits_source, NO_PAIRS, TN_SPLIT_TRAIN), TN_OK);
  assert_int_equal(p.description.count, -1);
  assert_int_equal(p.description.epoch, 20000);
  assert_int_equal(p.description.fields[1].classes, 10);
  assert_string_equal(p.description.fields[1].class_names[7], "7");
  probe_close(&p);
  assert_int_equal(probe_open(&p, &digits_source, NO_PAIRS, TN_SPLIT_VALID), TN_OK);
  assert_int_equal(p.description.count, 10000);
  probe_close(&p);
}

static void a_training_sample_follows_from_its_key_alone(void **state) {
  (void)state;
  probe p;
  uint8_t first[DIGIT_PIXELS];
  assert_int_equal(probe_open(&p, &digits_source, NO_PAIRS, TN_SPLIT_TRAIN), TN_OK);
  assert_int_equal(probe_read(&p, 5, 77), TN_OK);
  int32_t label = *(int32_t *)p.value[1];
  memcpy(first, p.value[0], sizeof(first));
  assert_int_equal(probe_read(&p, 123456789, 77), TN_OK);
  assert_memory_equal(p.value[0], first, sizeof(first));
  assert_int_equal(*(int32_t *)p.value[1], label);
  assert_int_equal(probe_read(&p, 5, 78), TN_OK);
  assert_memory_not_equal(p.value[0], first, sizeof(first));
  probe_close(&p);
}

static void validation_does_not_depend_on_the_runs_seed(void **state) {
  (void)state;
  probe p;
  uint8_t first[DIGIT_PIXELS];
  assert_int_equal(probe_open(&p, &digits_source, NO_PAIRS, TN_SPLIT_VALID), TN_OK);
  assert_int_equal(probe_read(&p, 5, 77), TN_OK);
  memcpy(first, p.value[0], sizeof(first));
  assert_int_equal(probe_read(&p, 5, 999), TN_OK);
  assert_memory_equal(p.value[0], first, sizeof(first));
  assert_int_equal(probe_read(&p, 6, 77), TN_OK);
  assert_memory_not_equal(p.value[0], first, sizeof(first));
  probe_close(&p);
}

static void every_label_is_about_as_frequent(void **state) {
  (void)state;
  probe p;
  int count[10] = {0};
  assert_int_equal(probe_open(&p, &digits_source, NO_PAIRS, TN_SPLIT_VALID), TN_OK);
  for (int64_t i = 0; i < 2000; i++) {
    assert_int_equal(probe_read(&p, i, 0), TN_OK);
    int32_t label = *(int32_t *)p.value[1];
    assert_in_range(label, 0, 9);
    count[label]++;
  }
  for (int i = 0; i < 10; i++) assert_in_range(count[i], 150, 250);
  probe_close(&p);
}

static void strokes_are_seen_and_seldom_leave_the_frame(void **state) {
  (void)state;
  uint8_t pixels[DIGIT_PIXELS];
  int outside = 0;
  for (int i = 0; i < 2000; i++) {
    tn_rng rng = tn_rng_at((uint64_t)i, 0);
    digit_draw(&rng, i % 10, pixels);
    int bright = 0, border = 0;
    for (int k = 0; k < DIGIT_PIXELS; k++) {
      int y = k / DIGIT_SIDE, x = k % DIGIT_SIDE;
      bright += pixels[k] > 128;
      border += pixels[k] > 128 && (y == 0 || x == 0 || y == DIGIT_SIDE - 1 || x == DIGIT_SIDE - 1);
    }
    assert_in_range(bright, 8, 300);
    outside += border > 6;
  }
  assert_true(outside < 60);
}

static void refused_memory_is_survived(void **state) {
  (void)state;
  probe_starve(&digits_source, NO_PAIRS);
  probe_starve(&random_source, PAIRS("shape", "3"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(training_is_endless_and_validation_is_not),
      cmocka_unit_test(a_training_sample_follows_from_its_key_alone),
      cmocka_unit_test(validation_does_not_depend_on_the_runs_seed),
      cmocka_unit_test(every_label_is_about_as_frequent),
      cmocka_unit_test(strokes_are_seen_and_seldom_leave_the_frame),
      cmocka_unit_test(refused_memory_is_survived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
