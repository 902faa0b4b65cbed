/* The communicator `mpi`: mpirun starts programs that are one rank each (rank.c), and Tenon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char out[1 << 16];

/* Runs a command; what it prints is in `out`. Returns its exit code. */
static int run_command(const char *command) {
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  size_t n = fread(out, 1, sizeof out - 1, pipe);
  out[n] = '\0';
  int status = pclose(pipe);
  return status;
}

static int run_ranks(int n, const char *mode) {
  char command[1024];
  char folder[] = "/tmp/tenon-mpi-XXXXXX";
  assert_non_null(mkdtemp(folder));
  setenv("RANK_FOLDER", folder, 1);
  snprintf(command, sizeof command, "timeout 900 " MPIRUN " -n %d " RANK " " PLUGIN " %s 2>&1", n, mode);
  int status = run_command(command);
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
  return status;
}

/* Every rank has printed the line. */
static void says(int rank, const char *format) {
  char line[512];
  snprintf(line, sizeof line, "rank %d: %s", rank, format);
  if (strstr(out, line) == NULL) fail_msg("expected '%s': %s", line, out);
}

static void all_are_fine(int n, const char *mode) {
  if (run_ranks(n, mode) != 0) fail_msg("%d ranks, %s: %s", n, mode, out);
  for (int r = 0; r < n; r++) says(r, "fine");
}

static void every_collective_of_every_type(void **state) {
  (void)state;
  for (int n = 1; n <= 4; n++) all_are_fine(n, "all");
}

/* Vectors of many pieces. */
static void pieces_are_one_vector(void **state) {
  (void)state;
  all_are_fine(2, "all 7");
  all_are_fine(3, "all 64");
}

static void a_process_has_several_runs_one_after_another(void **state) {
  (void)state;
  all_are_fine(3, "again");
}

/* ---- failure ---- */

static void a_collective_to_which_a_rank_does_not_come_is_named(void **state) {
  (void)state;
  run_ranks(3, "missing");
  for (int r = 0; r < 3; r++) says(r, "11 11 after "); /* TN_ECOMM of await and of status */
  assert_non_null(strstr(out, "collective 2, 'all_reduce of bucket 7', has not ended within 10 s on rank "));
}

static void all_ranks_end_when_one_gives_up(void **state) {
  (void)state;
  run_ranks(3, "abort");
  says(0, "11 11 after ");
  says(1, "11 11 after ");
  assert_non_null(strstr(out, "rank 2 has given up"));
}

static void a_rank_that_never_opens_is_waited_for_until_the_timeout(void **state) {
  (void)state;
  run_ranks(3, "absent");
  says(0, "11 after ");
  says(1, "11 after ");
  assert_non_null(strstr(out, "of the 3 ranks did not come"));
}

static void ranks_of_two_runs_are_told_apart(void **state) {
  (void)state;
  run_ranks(3, "stranger");
  says(0, "11: mpi: process 2 of MPI is rank 2 of 3 of another run, expected rank 2 of 3 of this one");
  says(2, "11: mpi: process 0 of MPI is rank 0 of 3 of another run");
}

static void a_world_of_another_size_is_refused(void **state) {
  (void)state;
  run_ranks(2, "more");
  says(0, "4: mpi: MPI's world has 2 processes, but the run has 3 ranks: start one process for each rank");
  says(1, "4: mpi: MPI's world has 2 processes");
}

static void ranks_of_one_process_are_refused(void **state) {
  (void)state;
  assert_int_equal(run_command("timeout 900 " RANK " " PLUGIN " threads"), 0);
  says(0, "mpi: 4 ranks in 1 process, expected one rank in each: mpirun -n 4 tenon train FILE.ini");
}

static void a_run_without_mpirun_is_told_the_line(void **state) {
  (void)state;
  assert_int_not_equal(run_command("timeout 900 " RANK " " PLUGIN " all 64 2"), 0);
  assert_non_null(strstr(out, "mpi: started without mpirun: mpirun -n 2 tenon train FILE.ini"));
}

/* Open MPI's mpirun asks before it starts processes for root, or more than there are cores. */
static int allow(void **state) {
  (void)state;
  return setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1) + setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1) +
         setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1) +
         setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_collective_of_every_type),
      cmocka_unit_test(pieces_are_one_vector),
      cmocka_unit_test(a_process_has_several_runs_one_after_another),
      cmocka_unit_test(a_collective_to_which_a_rank_does_not_come_is_named),
      cmocka_unit_test(all_ranks_end_when_one_gives_up),
      cmocka_unit_test(a_rank_that_never_opens_is_waited_for_until_the_timeout),
      cmocka_unit_test(ranks_of_two_runs_are_told_apart),
      cmocka_unit_test(a_world_of_another_size_is_refused),
      cmocka_unit_test(ranks_of_one_process_are_refused),
      cmocka_unit_test(a_run_without_mpirun_is_told_the_line),
  };
  return cmocka_run_group_tests(tests, allow, NULL);
}
