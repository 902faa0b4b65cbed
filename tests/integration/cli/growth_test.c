/* Compile time grows with the number of layers, not with its square. The time of a large model is compared
 * with that of a small one, so the test does not depend on the machine. */
#include <sys/resource.h>

#include "program.h"

/* Seconds of the processor that the programs so far have taken. */
static double used_seconds(void) {
  struct rusage used;
  assert_int_equal(getrusage(RUSAGE_CHILDREN, &used), 0);
  return (double)used.ru_utime.tv_sec + 1e-6 * (double)used.ru_utime.tv_usec;
}

static double seconds_of_plan(const char *layers, int n, const char *blocks) {
  char text[1024], line[128];
  snprintf(line, sizeof line, layers, n);
  snprintf(text, sizeof text,
           "[data]\nsource = random\nshape = [4]\nclasses = 4\nsamples = 8\nbatch = 8\n"
           "[model]\ninputs = image: f32[4]\ntargets = label: i32[]\nlayers =\n%sloss = cross_entropy\n"
           "[optimizer]\ntype = sgd\nlr = 0.01\nmomentum = 0.9\n%s",
           line, blocks);
  file_write("model.ini", text);
  double before = used_seconds();
  assert_int_equal(program_run("plan model.ini"), 0);
  return used_seconds() - before;
}

/* 8 times the layers take about 8 times as long; the square would be 64 times. */
static void expect_linear_growth(const char *layers, const char *blocks) {
  program_stdout("/dev/null");
  double small = seconds_of_plan(layers, 1000, blocks), large = seconds_of_plan(layers, 8000, blocks);
  program_stdout(NULL);
  if (large > 20 * small) fail_msg("%g s for 8000 layers, %g s for 1000", large, small);
}

static void a_chain_of_layers(void **state) {
  (void)state;
  expect_linear_growth("    net: linear(4) * %d\n", "");
}

static void a_chain_of_residual_blocks(void **state) {
  (void)state;
  expect_linear_growth("    net: part * %d\n",
                       "[block part]\nlayers =\n    y: linear(4)\n    add <- y, in\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_chain_of_layers, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_chain_of_residual_blocks, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
