/* `tenon compare` of the cpu and the double of CUDA, on a residual network and a transformer. */
#include "double.h"

#include "nets.h"

#define COMPARE                                                                                              \
  "compare model.ini --backends cpu,cuda --set backend.cuda.libraries=" DOUBLES " --steps 3 --launches 3 "

static void agree(const char *ini) {
  static const char *const policies[] = {"fp32", "fp16", "bf16"};
  file_write("model.ini", ini);
  for (int i = 0; i < 3; i++) {
    const json_t *r = program_json(0, COMPARE "--set precision.policy=%s", policies[i]);
    double_is_content();
    assert_int_equal(program_number(r, "departing"), 0);
    assert_int_equal(program_number(r, "skipped"), 0);
    assert_true(program_number(r, "compared") > 20);
  }
}

static void a_resnet_agrees(void **state) {
  (void)state;
  agree(resnet_ini);
}

static void a_transformer_agrees(void **state) {
  (void)state;
  agree(transformer_ini);
}

/* The broken kernel is the first that departs, and its launch alone departs in the same way. */
static void is_found(const char *ini, const char *plugin, const char *kernel, int repetition) {
  file_write("model.ini", ini);
  const json_t *r =
      program_json(3, COMPARE "--steps 1 --launches 12 --plugin " BROKEN "/broken_cuda_%s.so", plugin);
  assert_string_equal(program_text(r, "first.kernel"), kernel);
  assert_string_equal(program_text(r, "first.verdict"), "departs");
  assert_int_equal(program_number(r, "first.repetition"), repetition);
  const json_t *again =
      program_json(3, COMPARE "--repeat departs.safetensors --plugin " BROKEN "/broken_cuda_%s.so", plugin);
  assert_string_equal(program_text(again, "kernel"), kernel);
  assert_true(program_number(again, "largest") == program_number(r, "first.largest"));
  assert_int_equal(program_number(again, "repetition"), repetition);
  double_is_content();
}

static void a_wrong_corner_is_found(void **state) {
  (void)state;
  is_found(transformer_ini, "corner", "corner_matmul", 1);
}

static void a_wrong_eleventh_launch_is_found(void **state) {
  (void)state;
  is_found(transformer_ini, "eleventh", "eleventh_matmul", 11);
}

static void a_wrong_layout_is_found(void **state) {
  (void)state;
  is_found(transformer_ini, "layout", "layout_matmul", 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_resnet_agrees, double_open, program_close),
      cmocka_unit_test_setup_teardown(a_transformer_agrees, double_open, program_close),
      cmocka_unit_test_setup_teardown(a_wrong_corner_is_found, double_open, program_close),
      cmocka_unit_test_setup_teardown(a_wrong_eleventh_launch_is_found, double_open, program_close),
      cmocka_unit_test_setup_teardown(a_wrong_layout_is_found, double_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
