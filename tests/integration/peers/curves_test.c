/* Losses step by step against PyTorch's, from the same weights over the same samples
 * (tests/golden/make_curves.py). */
#include <stdlib.h>

#include "peers.h"

static const char shakespeare_ini[] = "include = " ROOT "/docs/examples/shakespeare_char.ini\n"
                                      "[run]\n"
                                      "seed = 1\n"
                                      "max_steps = 200\n"
                                      "[data]\n"
                                      "file = " DATA "/text/tinyshakespeare.txt\n"
                                      "shuffle = no\n"
                                      "[data.valid]\n"
                                      "epoch = 12\n"
                                      "[schedule]\n" /* a constant rate */
                                      "warmup = 0\n"
                                      "floor = 1\n";

static void a_character_transformer_learns_as_in_pytorch(void **state) {
  (void)state;
  double losses[PEERS_MOST_STEPS];
  peers_need("text/tinyshakespeare.txt");
  file_write("run.ini", shakespeare_ini);
  assert_int_equal(peers_train("run.ini", losses, NULL), 200);
  const json_t *golden = json_object_get(peers_golden("curves/shakespeare_char.json"), "losses");
  peers_compare(losses, golden, 0, 20, 1e-3, 0);
  peers_compare(losses, golden, 20, 200, 0.02, 0);
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
      cmocka_unit_test_setup_teardown(a_character_transformer_learns_as_in_pytorch, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(a_resnet_on_jpegs_learns_as_in_pytorch, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
