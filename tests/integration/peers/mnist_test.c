/* tests/integration/peers/mnist_test.c: the unchanged MNIST examples reach their accuracy over the 10,000
 * test images after three epochs. */
#include "peers.h"

static void learns(const char *example, double accuracy) {
  peers_need("mnist/train-images-idx3-ubyte.gz");
  const json_t *result = program_json(
      0, "train " ROOT "/docs/examples/%s.ini --output runs --set data.folder=" DATA "/mnist", example);
  double reached = program_number(result, "valid.accuracy");
  assert_int_equal(program_number(result, "epochs"), 3);
  print_message("%s: %.2f %%\n", example, 100 * reached);
  if (!(reached >= accuracy)) fail_msg("accuracy %g, expected at least %g", reached, accuracy);
}

static void the_mlp_reaches_97_5_percent(void **state) {
  (void)state;
  learns("mnist_mlp", 0.975);
}

static void lenet_reaches_98_8_percent(void **state) {
  (void)state;
  learns("mnist_lenet", 0.988);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(the_mlp_reaches_97_5_percent, program_open, program_close),
      cmocka_unit_test_setup_teardown(lenet_reaches_98_8_percent, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
