/* The order in which the ranks of a process release their devices: the memory of all, then the communicators
 * of all, then the devices. NCCL frees memory on all devices of the process when its last communicator is
 * closed, and waits for the captures of all of them. */
#include "nets.h"

#include <unistd.h>

enum { DEVICES = 4 };

static void write_model(void) {
  char text[4096];
  int n = snprintf(text, sizeof text, "%s[plugins]\nload = " ORDER "\n", nets_lenet);
  assert_true((size_t)n < sizeof text);
  file_write("model.ini", text);
}

static void check_order(void) {
  char expected[2 * DEVICES + 2] = "m";
  const char *order = file_read("order", NULL), *first = strchr(order, 'c');
  memset(expected + 1, 'c', DEVICES);
  memset(expected + 1 + DEVICES, 'd', DEVICES);
  if (first == NULL || first == order || strcmp(first - 1, expected) != 0)
    fail_msg("released in the order %s", order);
  unlink("order");
}

static void a_training_releases_in_passes(void **state) {
  (void)state;
  write_model();
  program_expect(program_run("train model.ini --output o --set backend.use=ordered --set run.max_steps=2 "
                             "--set distributed.devices=%d",
                             DEVICES),
                 0);
  check_order();
}

/* A failed training as well. */
static void a_training_that_fails_releases_in_passes(void **state) {
  (void)state;
  write_model();
  program_expect(program_run("train model.ini --output o --set backend.use=ordered --set optimizer.lr=1e30 "
                             "--set distributed.devices=%d",
                             DEVICES),
                 76);
  check_order();
}

static void a_benchmark_releases_in_passes(void **state) {
  (void)state;
  write_model();
  program_expect(
      program_run("bench model.ini --set backend.use=ordered --ranks %d --steps 1 --rounds 1 --batch %d",
                  DEVICES, DEVICES),
      0);
  check_order();
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(a_training_releases_in_passes),
      CASE(a_training_that_fails_releases_in_passes),
      CASE(a_benchmark_releases_in_passes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
