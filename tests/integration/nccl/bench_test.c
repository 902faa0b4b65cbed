/* `tenon bench` by two processes with two devices each: the doubles of CUDA and NCCL. */
#include "tests/integration/distributed/nets.h"

#include <stdio.h>
#include <stdlib.h>

#define BENCH                                                                                                \
  "bench model.ini --batch 8 --steps 2 --rounds 2 --set backend.use=cuda --set backend.fallback=error "      \
  "--set backend.cuda.libraries=" DOUBLES " --set communicator.nccl.libraries=" DOUBLES                      \
  " --set backend.autotune=no --set distributed.devices=2 --set distributed.timeout=1h"

static char place[2][256]; /* of each process: the variables of a launcher */

static void write_place(void) {
  const char *token = program_token();
  for (int i = 0; i < 2; i++)
    snprintf(place[i], sizeof place[i],
             "WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=%d TENON_TOKEN=%s RANK=%d "
             "LOCAL_RANK=%d ",
             program_ports(), token, i, i);
}

static int doubles_open(void **state) {
  setenv("FAKECUDA_LOG", "doubles.log", 1);
  setenv("FAKENCCL_LOG", "doubles.log", 1);
  return program_open(state);
}

static void set_place(void) {
  for (char *one = strtok(place[0], " "); one != NULL; one = strtok(NULL, " ")) putenv(strdup(one));
}

static void two_processes_measure_four_devices(void **state) {
  (void)state;
  char text[256], command[2048];
  file_write("model.ini", nets_lenet);
  write_place();
  snprintf(command, sizeof command, "%s timeout 900 " TENON " " BENCH " --json 2>other.err", place[1]);
  FILE *other = popen(command, "r");
  assert_non_null(other);
  program_prepare(set_place);
  const json_t *r = program_json(0, BENCH);
  program_prepare(NULL);
  assert_int_equal(fread(text, 1, sizeof text, other), 0); /* it prints nothing */
  if (pclose(other) != 0) fail_msg("process 1: %s", file_read("other.err", NULL));
  assert_int_equal(program_number(r, "ranks"), 4);
  assert_int_equal(program_number(r, "devices"), 4);
  assert_int_equal(program_number(r, "processes"), 2);
  assert_int_equal(program_number(r, "batch"), 8);
  assert_string_equal(program_text(r, "communicator"), "nccl");
  assert_true(program_number(r, "overlap.measured.communication_ms") > 0);
  assert_true(program_number(r, "overlap.worst.exposed_ms") >=
              program_number(r, "overlap.measured.exposed_ms"));
  if (file_exists("doubles.log")) assert_string_equal(file_read("doubles.log", NULL), "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(two_processes_measure_four_devices, doubles_open, program_close)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
