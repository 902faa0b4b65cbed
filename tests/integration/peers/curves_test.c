/* Losses step by step against PyTorch's, from the same weights over the same samples
 * (tests/golden/make_curves.py).
 *
 * The first steps have to be one, up to rounding. How long they stay so is a matter of the net: PyTorch's
 * twin, PyTorch again from weights that are one unit in the last place larger, says how fast it drives
 * roundings apart. From there on means over 25 steps are compared, which agree while single steps do not. A
 * run of this test is the beginning of the 500 steps on docs/results/curves.md. */
#include <stdlib.h>

#include "peers.h"

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
  const json_t *golden = train("mnist_lenet", "--set data.folder=" DATA "/mnist", 500, losses);
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
      train("shakespeare_char", "--set data.file=" DATA "/text/tinyshakespeare.txt", 100, losses);
  peers_compare(losses, golden, 0, 100, 1e-4, 0);
}

static const char cifar10_ini[] =
    "include = " ROOT "/docs/examples/cifar10_resnet18.ini\n"
    "[run]\n"
    "seed = 1\n"
    "max_steps = 20\n"
    "[data]\n"
    "folder = cifar10\n"
    "batch = 32\n"
    "shuffle = no\n"
    "[data.train]\n"
    "transforms = to_float, normalize(mean=[0.4914, 0.4822, 0.4465], std=[0.2470, 0.2435, 0.2616])\n"
    "[data.valid]\n"
    "epoch = 32\n"
    "[optimizer]\n"
    "lr = 0.01\n"
    "weight_decay = 0\n"
    "[schedule]\n"
    "type = constant\n"
    "warmup = 0\n";

/* In the order of the files the first 20 batches are of one class, so the loss falls to 0, where a relative
 * difference means nothing: below 1e-2, the losses may differ by 1e-5. */
static void a_resnet_on_jpegs_learns_as_in_pytorch(void **state) {
  (void)state;
  double losses[PEERS_MOST_STEPS];
  peers_need("cifar10-jpeg.tar.gz");
  assert_int_equal(system("mkdir cifar10 && tar -xzf '" DATA "/cifar10-jpeg.tar.gz' -C cifar10"), 0);
  file_write("run.ini", cifar10_ini);
  assert_int_equal(peers_train("run.ini", losses, NULL), 20);
  peers_compare(losses, json_object_get(peers_golden("curves/cifar10_resnet18.json"), "losses"), 0, 20, 1e-3,
                1e-5);
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
