#include <math.h>

#include "tests/unit/plugins/sources/probe.h"

extern const tn_source random_source;

static void images_are_standard_normal_and_labels_uniform(void **state) {
  (void)state;
  probe p;
  const char *const *options = PAIRS("shape", "[2, 5, 5]", "classes", "4", "samples", "2000");
  assert_int_equal(probe_open(&p, &random_source, options, TN_SPLIT_TRAIN), TN_OK);
  assert_int_equal(p.description.count, 2000);
  assert_int_equal(p.description.fields[0].type.rank, 3);
  double sum = 0, squares = 0;
  int labels[4] = {0};
  for (int64_t i = 0; i < 2000; i++) {
    assert_int_equal(probe_read(&p, i, tn_hash_mix(1, (uint64_t)i)), TN_OK);
    const float *x = p.value[0];
    for (int k = 0; k < 50; k++) sum += (double)x[k], squares += (double)x[k] * (double)x[k];
    labels[*(int32_t *)p.value[1]]++;
  }
  assert_true(fabs(sum / 100000) < 0.02 && fabs(squares / 100000 - 1) < 0.02);
  for (int i = 0; i < 4; i++) assert_in_range(labels[i], 400, 600);
  probe_close(&p);
}

static void an_odd_number_of_elements_is_filled_to_the_last(void **state) {
  (void)state;
  probe p;
  assert_int_equal(probe_open(&p, &random_source, PAIRS("shape", "7"), TN_SPLIT_TRAIN), TN_OK);
  assert_int_equal(probe_read(&p, 0, 3), TN_OK);
  for (int i = 0; i < 7; i++) assert_true(((float *)p.value[0])[i] != 0);
  probe_close(&p);
}

static void tokens_come_with_the_ones_after_them(void **state) {
  (void)state;
  probe p;
  assert_int_equal(probe_open(&p, &random_source, PAIRS("tokens", "16", "classes", "9"), TN_SPLIT_TRAIN),
                   TN_OK);
  assert_string_equal(p.description.fields[1].name, "next");
  assert_int_equal(probe_read(&p, 0, 3), TN_OK);
  const int32_t *tokens = p.value[0], *next = p.value[1];
  for (int i = 0; i < 16; i++) assert_in_range(tokens[i], 0, 8);
  for (int i = 0; i < 15; i++) assert_int_equal(next[i], tokens[i + 1]);
  probe_close(&p);
}

static void validation_is_fixed(void **state) {
  (void)state;
  probe p;
  assert_int_equal(probe_open(&p, &random_source, PAIRS("shape", "4"), TN_SPLIT_VALID), TN_OK);
  float first[4];
  assert_int_equal(probe_read(&p, 2, 1), TN_OK);
  memcpy(first, p.value[0], sizeof(first));
  assert_int_equal(probe_read(&p, 2, 2), TN_OK);
  assert_memory_equal(p.value[0], first, sizeof(first));
  probe_close(&p);
}

static void fields_have_the_names_and_types_of_the_text(void **state) {
  (void)state;
  probe p;
  const char *const *options = PAIRS("fields", "ids: i64[26]\nmask: bool[2, 3]", "targets",
                                     "click: f32[], kind: i32[] 1..3", "classes", "5");
  assert_int_equal(probe_open(&p, &random_source, options, TN_SPLIT_TRAIN), TN_OK);
  assert_int_equal(p.description.n_fields, 4);
  assert_string_equal(p.description.fields[1].name, "mask");
  assert_int_equal(p.description.fields[1].type.dtype, TN_BOOL);
  assert_int_equal(p.description.fields[1].type.rank, 2);
  assert_int_equal(p.description.fields[2].role, TN_FIELD_TARGET);
  assert_int_equal(p.description.fields[2].classes, 0);
  assert_int_equal(p.description.fields[3].classes, 4);
  int kinds[2] = {0};
  for (int64_t k = 0; k < 100; k++) {
    assert_int_equal(probe_read(&p, k, tn_hash_mix(1, (uint64_t)k)), TN_OK);
    for (int i = 0; i < 26; i++) assert_in_range(((int64_t *)p.value[0])[i], 0, 4);
    for (int i = 0; i < 6; i++) kinds[((uint8_t *)p.value[1])[i]]++;
    assert_true(*(float *)p.value[2] >= 0 && *(float *)p.value[2] < 1);
    assert_in_range(*(int32_t *)p.value[3], 1, 3);
  }
  assert_in_range(kinds[0], 240, 360);
  probe_close(&p);
}

static void a_field_that_is_none_is_refused(void **state) {
  (void)state;
  static const char *const wrong[] = {
      "ids",          "ids: i64",       "ids: i46[2]",     "ids: i64[0]",   "ids: i64[2", "a b: f32[]",
      "ids: i64[2]]", "id: i32[] 4..3", "id: u8[] 0..256", "x: f32[] 0..1", "id: i32[] 3"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char text[200];
    snprintf(text, sizeof text,
             "'%s' is no field, expected NAME: TYPE[DIMENSIONS] with f32, f64, i32, i64, i8, u8 or bool, "
             "as in ids: i64[26]",
             wrong[i]);
    probe_refused(&random_source, PAIRS("fields", wrong[i]), TN_SPLIT_TRAIN, TN_EINVAL, text);
  }
  probe_refused(&random_source, PAIRS("fields", "a: f32[], a: f32[]"), TN_SPLIT_TRAIN, TN_EINVAL,
                "the field 'a' appears twice, expected once");
  probe_refused(&random_source, PAIRS("targets", "a: f32[]"), TN_SPLIT_TRAIN, TN_EINVAL,
                "targets stands without fields, expected both, as in ids: i64[26]");
  probe_refused(&random_source, PAIRS("fields", "a: f32[]", "tokens", "4"), TN_SPLIT_TRAIN, TN_EINVAL,
                "fields replaces image and tokens, expected neither shape nor tokens");
}

static void too_many_dimensions_are_refused(void **state) {
  (void)state;
  probe_refused(&random_source, PAIRS("shape", "[1, 1, 1, 1, 1, 1, 1, 1]"), TN_SPLIT_TRAIN, TN_EINVAL,
                "shape has 8 dimensions, expected at most 7");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(images_are_standard_normal_and_labels_uniform),
      cmocka_unit_test(an_odd_number_of_elements_is_filled_to_the_last),
      cmocka_unit_test(tokens_come_with_the_ones_after_them),
      cmocka_unit_test(validation_is_fixed),
      cmocka_unit_test(fields_have_the_names_and_types_of_the_text),
      cmocka_unit_test(a_field_that_is_none_is_refused),
      cmocka_unit_test(too_many_dimensions_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
