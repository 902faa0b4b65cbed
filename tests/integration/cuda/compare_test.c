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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_resnet_agrees, double_open, program_close),
      cmocka_unit_test_setup_teardown(a_transformer_agrees, double_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
