/* tests/integration/from_c/examples_test.c: the programs of docs/examples/c, built like an application
 * with cc and pkg-config against an installed Tenon, and run. */
#include "workshop.h"

static const char *const examples[] = {"graph", "tensors", "train_and_infer"};

static int set_up(void **state) {
  (void)state;
  workshop_open();
  workshop_install();
  for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
    workshop_do("%s -std=c11 -O2 -Wall -Wextra -Werror %s/%s.c $(pkg-config --cflags --libs tenon) -lm -o %s",
                COMPILER, FROM_C_EXAMPLES, examples[i], examples[i]);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  workshop_close();
  return 0;
}

static void a_configuration_trains_and_infers_in_forty_lines(void **state) {
  (void)state;
  workshop_do("cp %s/../digits.ini digits.ini", FROM_C_EXAMPLES);
  workshop_write("short.ini", "include = digits.ini\n[run]\nepochs = 1\nthreads = 2\n[data]\nepoch = 128\n"
                              "[data.valid]\nepoch = 128\n[schedule]\nwarmup = 0\n");
  workshop_do("./train_and_infer short.ini");
  assert_non_null(strstr(workshop_out, "\"status\": \"finished\""));
  for (int digit = 0; digit < 10; digit++) {
    char line[8];
    snprintf(line, sizeof line, "\n%d: ", digit);
    assert_non_null(strstr(workshop_out, line));
  }
  workshop_do("test $(wc -l <%s/train_and_infer.c) -le 40", FROM_C_EXAMPLES);
}

static void what_is_wrong_is_said_on_stderr(void **state) {
  (void)state;
  assert_int_equal(workshop_run("./train_and_infer missing.ini"), 1);
  assert_non_null(strstr(workshop_err, "missing.ini"));
  assert_string_equal(workshop_out, "");
}

static void tensors_are_made_computed_and_differentiated(void **state) {
  (void)state;
  workshop_do("./tensors");
  assert_string_equal(workshop_out, "gray: 0.299 0.587 0.114 1\ngradient of the kernel: 2 2 2\n");
}

static void a_model_in_c_learns_is_saved_and_used(void **state) {
  (void)state;
  double says = 0;
  workshop_do("./graph && test -s curve.safetensors");
  const char *line = strstr(workshop_out, "sin(1) is 0.84, the curve says ");
  assert_non_null(line);
  assert_int_equal(sscanf(line, "sin(1) is 0.84, the curve says %lf", &says), 1);
  assert_true(says > 0.8 && says < 0.88);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_configuration_trains_and_infers_in_forty_lines),
      cmocka_unit_test(what_is_wrong_is_said_on_stderr),
      cmocka_unit_test(tensors_are_made_computed_and_differentiated),
      cmocka_unit_test(a_model_in_c_learns_is_saved_and_used),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
