/* Training by mpirun, with a rank in each process. Sums are in the order of ranks, as with the communicator
 * `sim`, and the kernels of cpu are those of sim: so the bits are those of as many devices of sim. */
#include "nets.h"

#include <stdlib.h>
#include <sys/wait.h>

static const char eager[] = "--set backend.sim.order=eager";

/* Trains model.ini with a rank in each of n processes. Returns the exit code; what they print is in out.txt.
 */
static int run_ranks(int n, const char *backend, const char *folder, const char *more) {
  char command[1024];
  snprintf(command, sizeof command,
           "timeout 900 " MPIRUN " -n %d " TENON " train model.ini --output %s --set backend.use=%s "
           "--set run.threads=1 --set distributed.timeout=1h %s >out.txt 2>&1",
           n, folder, backend, more);
  int status = system(command);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void train_ranks(int n, const char *backend, const char *folder, const char *more) {
  int code = run_ranks(n, backend, folder, more);
  if (code != 0) fail_msg("exit code %d: %s", code, file_read("out.txt", NULL));
}

static void same_bits(const char *ini, int n, const char *more) {
  char all[512];
  snprintf(all, sizeof all, "%s %s", eager, more);
  file_write("model.ini", ini);
  nets_train("sim", n, all);
  train_ranks(n, "cpu", "mpi", more);
  checkpoints_equal("mpi", "sim");
  assert_int_equal(system("rm -rf mpi sim"), 0);
}

static void processes_have_the_bits_of_simulated_devices(void **state) {
  (void)state;
  same_bits(nets_lenet, 2, "--set distributed.bucket=32KiB");
  same_bits(nets_lenet, 4, "--set communicator.mpi.piece=1000");
  same_bits(nets_lenet, 3, "--set data.train.batch=6 --set data.valid.batch=18");
  same_bits(nets_resnet, 2, "");
  same_bits(nets_transformer, 2, "--set data.train.batch=4 --set optimizer.accumulate=2");
  same_bits(nets_two_losses, 4, "");
  same_bits(nets_dropout, 2, "");
}

static void halves_have_the_bits_of_simulated_devices(void **state) {
  (void)state;
  same_bits(nets_lenet, 3,
            "--set data.train.batch=6 --set data.valid.batch=18 --set distributed.reduce_dtype=bf16");
  same_bits(nets_lenet, 2, "--set distributed.reduce_dtype=f16");
  same_bits(nets_lenet, 2, "--set precision.policy=bf16");
  /* 2^40 overflows: the first updates are skipped on all ranks */
  same_bits(nets_lenet, 2, "--set precision.policy=fp16 --set precision.init_scale=1099511627776");
}

/* The fast CPU's kernels depend on the size of the batch, so its bits are those of one rank up to rounding.
 */
static void the_fast_cpu_trains_to_the_weights_of_one_rank(void **state) {
  static const char *const inis[] = {nets_lenet, nets_transformer, nets_resnet};
  (void)state;
  if (!FAST_CPU) skip();
  for (size_t i = 0; i < sizeof inis / sizeof *inis; i++)
    for (int n = 2; n <= 4; n += 2) {
      file_write("model.ini", inis[i]);
      train_ranks(1, "onednn", "one", "");
      train_ranks(n, "onednn", "several", "");
      nets_compare("by mpirun", "several", "one", NETS_BAND);
      assert_int_equal(system("rm -rf one several"), 0);
    }
}

static void several_runs_have_the_same_bits(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  train_ranks(3, "cpu", "first", "--set data.train.batch=6 --set data.valid.batch=18");
  for (int time = 0; time < 5; time++) {
    train_ranks(3, "cpu", "again", "--set data.train.batch=6 --set data.valid.batch=18");
    checkpoints_equal("again", "first");
    assert_int_equal(system("rm -rf again"), 0);
  }
}

/* No mpirun has started these, so the host takes the next communicator that serves the CPU. */
static void other_launchers_have_another_communicator(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  train_ranks(2, "cpu", "mpi", "");
  assert_int_equal(system("timeout 900 " TENON
                          " launch -n 2 model.ini --output launched --set backend.use=cpu "
                          "--set run.threads=1 >out.txt 2>&1"),
                   0);
  checkpoints_equal("launched", "mpi");
  assert_int_not_equal(system("timeout 900 " TENON
                              " launch -n 2 model.ini --output named --set backend.use=cpu "
                              "--set distributed.communicator=mpi >out.txt 2>&1"),
                       0);
  const char *out = file_read("out.txt", NULL);
  if (strstr(out, "mpi: started without mpirun: mpirun -n 2 tenon train FILE.ini") == NULL)
    fail_msg("%s", out);
}

static void more_ranks_in_a_process_are_refused(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  assert_int_not_equal(run_ranks(2, "sim", "o",
                                 "--set backend.sim.devices=4 --set distributed.devices=2 "
                                 "--set distributed.communicator=mpi"),
                       0);
  const char *out = file_read("out.txt", NULL);
  if (strstr(out, "communicator = mpi serves devices of cpu,onednn, not those of backend 'sim'") == NULL)
    fail_msg("%s", out);
}

static int open_mpi(void **state) {
  return setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1) + setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1) +
         setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1) +
         setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1) + program_open(state);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_mpi, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(processes_have_the_bits_of_simulated_devices),   CASE(halves_have_the_bits_of_simulated_devices),
      CASE(the_fast_cpu_trains_to_the_weights_of_one_rank), CASE(several_runs_have_the_same_bits),
      CASE(other_launchers_have_another_communicator),      CASE(more_ranks_in_a_process_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
