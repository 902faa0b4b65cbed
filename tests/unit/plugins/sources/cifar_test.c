/* tests/unit/plugins/sources/cifar_test.c: records of CIFAR-10 and CIFAR-100. */
#include <sys/stat.h>

#include "tests/unit/plugins/sources/probe.h"

extern const tn_source cifar_source;

static char *folder;
static uint8_t bytes[3 * 3074];

static int start(void **state) {
  (void)state;
  folder = make_folder();
  return 0;
}

static int stop(void **state) {
  (void)state;
  remove_folder(folder);
  return 0;
}

/* `n` records with `labels` labels each, those of record i are 7 i + 2 and 3 i + 1. */
static void put(const char *name, int n, int labels) {
  int size = 3072 + labels;
  for (int i = 0; i < n * size; i++) bytes[i] = (uint8_t)(i % 251);
  for (int i = 0; i < n; i++) {
    bytes[i * size] = (uint8_t)(3 * i + 1);
    bytes[i * size + labels - 1] = (uint8_t)(labels == 2 ? 7 * i + 2 : 3 * i + 1);
  }
  write_file(in_folder(folder, name), bytes, (size_t)(n * size));
}

static void open_part(probe *p, const char *const *pairs, int32_t split) {
  if (probe_open(p, &cifar_source, pairs, split) != TN_OK) fail_msg("%s", probe_error(p));
}

static void several_files_are_one_part(void **state) {
  (void)state;
  probe p;
  static const char names[] = "airplane\ncar\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";
  put("data_batch_1.bin", 2, 1);
  put("data_batch_2.bin", 3, 1);
  put("test_batch.bin", 1, 1);
  write_file(in_folder(folder, "batches.meta.txt"), names, sizeof names - 1);
  open_part(&p, PAIRS("folder", folder), TN_SPLIT_TRAIN);
  assert_int_equal(p.description.count, 5);
  assert_int_equal(p.description.fields[1].classes, 10);
  assert_string_equal(p.description.fields[1].class_names[9], "truck");
  assert_int_equal(probe_read(&p, 4, 0), TN_OK);
  assert_int_equal(*(int32_t *)p.value[1], 7);
  put("data_batch_2.bin", 3, 1);
  assert_memory_equal(p.value[0], bytes + 2 * 3073 + 1, 3072);
  probe_expect_class(&p, 3, 4);
  probe_close(&p);
  open_part(&p, PAIRS("folder", folder), TN_SPLIT_VALID);
  assert_int_equal(p.description.count, 1);
  probe_close(&p);
}

static void two_labels_are_coarse_and_fine(void **state) {
  (void)state;
  probe p;
  put("train.bin", 3, 2);
  open_part(&p, PAIRS("folder", folder), TN_SPLIT_TRAIN);
  assert_int_equal(p.description.fields[1].classes, 100);
  assert_null(p.description.fields[1].class_names);
  assert_int_equal(probe_read(&p, 2, 0), TN_OK);
  assert_int_equal(*(int32_t *)p.value[1], 16);
  assert_memory_equal(p.value[0], bytes + 2 * 3074 + 2, 3072);
  probe_close(&p);
  open_part(&p, PAIRS("folder", folder, "labels", "coarse"), TN_SPLIT_TRAIN);
  assert_int_equal(p.description.fields[1].classes, 20);
  assert_int_equal(probe_read(&p, 2, 0), TN_OK);
  assert_int_equal(*(int32_t *)p.value[1], 7);
  probe_close(&p);
}

static void other_files_are_refused(void **state) {
  (void)state;
  const char *const *pairs = PAIRS("folder", folder);
  probe_refused(&cifar_source, pairs, TN_SPLIT_TRAIN, TN_EUNAVAILABLE,
                "has neither data_batch_1.bin (CIFAR-10) nor train.bin (CIFAR-100)");
  write_file(in_folder(folder, "data_batch_1.bin"), bytes, 3000);
  probe_refused(&cifar_source, pairs, TN_SPLIT_TRAIN, TN_EINVAL,
                "data_batch_1.bin: has 3000 bytes, expected a multiple of 3073");
  put("data_batch_1.bin", 3, 1);
  bytes[3073] = 10;
  write_file(in_folder(folder, "data_batch_1.bin"), bytes, 3 * 3073);
  probe_refused(&cifar_source, pairs, TN_SPLIT_TRAIN, TN_EINVAL,
                "label 10 of picture 1 is out of range, expected 0 to 9");
  probe_refused(&cifar_source, PAIRS("folder", folder, "labels", "coarse"), TN_SPLIT_TRAIN, TN_EINVAL,
                "has the files of CIFAR-10, which has no coarse labels");
  put("data_batch_1.bin", 2, 1);
  probe_starve(&cifar_source, pairs);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(several_files_are_one_part),
      CASE(two_labels_are_coarse_and_fine),
      CASE(other_files_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
