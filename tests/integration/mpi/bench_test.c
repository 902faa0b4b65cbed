/* `tenon bench` by mpirun, with a rank in each process. */
#include "tests/integration/distributed/nets.h"

#include <stdlib.h>
#include <sys/wait.h>

/* Runs a benchmark of model.ini by n processes; both streams are in files. Returns the exit code. */
static int bench_ranks(int n, const char *more) {
  char command[1024];
  snprintf(command, sizeof command,
           "timeout 900 " MPIRUN " -n %d " TENON " bench model.ini --json --steps 3 --rounds 2 "
           "--set backend.use=cpu --set run.threads=1 --set distributed.timeout=1h %s >out.txt 2>err.txt",
           n, more);
  int status = system(command);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* One object and nothing else. */
static void measured(int n, const char *more) {
  int code = bench_ranks(n, more);
  if (code != 0) fail_msg("exit code %d: %s", code, file_read("err.txt", NULL));
  const json_t *r = file_json("out.txt");
  assert_int_equal(program_number(r, "devices"), n);
  assert_int_equal(program_number(r, "ranks"), n);
  assert_int_equal(program_number(r, "processes"), n);
  assert_int_equal(program_number(r, "batch"), 8);
  assert_string_equal(program_text(r, "communicator"), "mpi");
  assert_true(json_number_value(json_array_get(program_member(r, "ms"), 0)) > 0);
  assert_true(program_number(r, "overlap.measured.communication_ms") > 0);
  assert_true(program_number(r, "overlap.measured.exposed_ms") > 0);
  assert_true(program_number(r, "overlap.worst.exposed_ms") >=
              program_number(r, "overlap.measured.exposed_ms"));
}

static void the_first_process_prints_the_result_of_all(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  measured(2, "");
  measured(4, "--set optimizer.accumulate=2");
  file_write("model.ini", nets_resnet);
  measured(2, "--set distributed.reduce_dtype=bf16");
}

static void a_batch_that_cannot_be_divided_is_refused(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  assert_int_equal(bench_ranks(3, ""), 65);
  const char *errors = file_read("err.txt", NULL);
  if (strstr(errors, "a batch of 8 cannot be divided among 3 devices") == NULL) fail_msg("%s", errors);
}

static int open_mpi(void **state) {
  return setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1) + setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1) +
         setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1) +
         setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1) + program_open(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(the_first_process_prints_the_result_of_all, open_mpi, program_close),
      cmocka_unit_test_setup_teardown(a_batch_that_cannot_be_divided_is_refused, open_mpi, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
