/* Losses step by step against PyTorch's, from the same weights over the same samples
 * (tests/golden/make_curves.py).
 *
 * The first steps have to be one, up to rounding. How long they stay so is a matter of the net: PyTorch's
 * twin, PyTorch again from weights that are one unit in the last place larger, says how fast it drives
 * roundings apart. From there on means over 25 steps are compared, which agree while single steps do not. A
 * run of this test is the beginning of the 500 steps on docs/results/curves.md. */
#include <stdlib.h>

#include "peers.h"

#define FAST " --set backend.use=onednn,cpu" /* the fast CPU where it is built */

/* Trains `steps` steps and returns what PyTorch's losses were. */
static const json_t *train(const char *curve, const char *options, int steps, double *losses) {
  char line[1024], golden[64];
  snprintf(line, sizeof line, ROOT "/tests/golden/curves/%s.ini --set run.max_steps=%d %s", curve, steps,
           options);
  snprintf(golden, sizeof golden, "curves/%s.json", curve);
  assert_int_equal(peers_train(line, losses, NULL), steps);
  return json_object_get(peers_golden(golden), "losses");
}

/* The twin's means are 0.008 apart at most, where the loss falls from 2.3 to 0.12; another implementation,
 * which rounds at every step, gets four times that. */
static void lenet_learns_as_in_pytorch(void **state) {
  (void)state;
  double losses[PEERS_MOST_STEPS];
  peers_need("mnist/train-images-idx3-ubyte.gz");
  const json_t *golden = train("mnist_lenet", "--set data.folder=" DATA "/mnist" FAST, 500, losses);
  peers_compare(losses, golden, 0, 40, 1e-4, 0);
  peers_compare_smoothed(losses, golden, 500, 0.03);
}

static void lenet_begins_on_the_reference_as_in_pytorch(void **state) {
  (void)state;
  double losses[PEERS_MOST_STEPS];
  peers_need("mnist/train-images-idx3-ubyte.gz");
  const json_t *golden =
      train("mnist_lenet", "--set backend.use=cpu --set data.folder=" DATA "/mnist", 40, losses);
  peers_compare(losses, golden, 0, 40, 1e-4, 0);
}

/* A net that does not drive roundings apart: single losses agree. */
static void a_character_transformer_learns_as_in_pytorch(void **state) {
  (void)state;
  double losses[PEERS_MOST_STEPS];
  peers_need("text/tinyshakespeare.txt");
  const json_t *golden =
      train("shakespeare_char", "--set data.file=" DATA "/text/tinyshakespeare.txt" FAST, 100, losses);
  peers_compare(losses, golden, 0, 100, 1e-4, 0);
}

/* Batch norm over a few pictures multiplies a rounding by ten every two steps, until single losses mean
 * nothing: by step 30 means are 0.002 apart from PyTorch's with the fast CPU, 0.003 with the reference and
 * with PyTorch itself from initial weights that are one unit in the last place larger. */
static void a_resnet_on_jpegs_learns_as_in_pytorch(void **state) {
  (void)state;
  double losses[PEERS_MOST_STEPS];
  peers_need("cifar10-jpeg.tar.gz");
  assert_int_equal(system("mkdir cifar10 && tar -xzf '" DATA "/cifar10-jpeg.tar.gz' -C cifar10"), 0);
  const json_t *golden = train("cifar10_resnet18", "--set data.folder=cifar10" FAST, 30, losses);
  peers_compare(losses, golden, 0, 5, 1e-4, 0);
  peers_compare_smoothed(losses, golden, 30, 0.03);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(lenet_learns_as_in_pytorch, program_open, program_close),
      cmocka_unit_test_setup_teardown(lenet_begins_on_the_reference_as_in_pytorch, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(a_character_transformer_learns_as_in_pytorch, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(a_resnet_on_jpegs_learns_as_in_pytorch, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
