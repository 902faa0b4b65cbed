/* `tenon bench` by two processes with two devices each: the doubles of CUDA and NCCL. */
#include "tests/integration/distributed/nets.h"

#include <stdio.h>
#include <stdlib.h>

#define BENCH                                                                                                \
  "bench model.ini --batch 8 --steps 2 --rounds 2 --set backend.use=cuda --set backend.fallback=error "      \
  "--set backend.cuda.libraries=" DOUBLES " --set communicator.nccl.libraries=" DOUBLES                      \
  " --set backend.autotune=no --set distributed.devices=2 --set distributed.timeout=60s"
#define PLACE "WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29821 "

static int doubles_open(void **state) {
  setenv("FAKECUDA_LOG", "doubles.log", 1);
  setenv("FAKENCCL_LOG", "doubles.log", 1);
  return program_open(state);
}

static void set_place(void) {
  char place[] = PLACE "RANK=0 LOCAL_RANK=0";
  for (char *one = strtok(place, " "); one != NULL; one = strtok(NULL, " ")) putenv(strdup(one));
}

static void two_processes_measure_four_devices(void **state) {
  (void)state;
  char text[256];
  file_write("model.ini", nets_lenet);
  FILE *other = popen(PLACE "RANK=1 LOCAL_RANK=1 timeout 100 " TENON " " BENCH " --json 2>other.err", "r");
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
