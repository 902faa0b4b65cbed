/* NCCL with one rank, on the doubles: what `tenon bench --ranks 1` measures on a machine with one GPU. */
#include "tests/integration/distributed/nets.h"

#include <stdlib.h>
#include <unistd.h>

static int doubles_open(void **state) {
  setenv("FAKECUDA_LOG", "doubles.log", 1);
  setenv("FAKENCCL_LOG", "doubles.log", 1);
  setenv("FAKECUDA_COUNTS", "counts", 1);
  return program_open(state);
}

static int doubles_close(void **state) {
  unsetenv("FAKECUDA_COUNTS");
  unsetenv("FAKENCCL_VERSION");
  return program_close(state);
}

static const json_t *bench(int steps, const char *more) {
  const json_t *result = program_json(
      0,
      "bench model.ini --ranks 1 --rounds 2 --steps %d --set backend.use=cuda --set backend.fallback=error "
      "--set backend.cuda.libraries=" DOUBLES " --set communicator.nccl.libraries=" DOUBLES
      " --set distributed.communicator=nccl --set distributed.bucket=32KiB %s",
      steps, more);
  if (access("doubles.log", F_OK) == 0 && *file_read("doubles.log", NULL) != '\0')
    fail_msg("the doubles say: %s", file_read("doubles.log", NULL));
  assert_string_equal(program_text(result, "communicator"), "nccl");
  return result;
}

/* The calls that the doubles have counted, of one function. */
static long calls(const char *function) {
  char line[64];
  snprintf(line, sizeof line, "%s ", function);
  const char *at = strstr(file_read("counts", NULL), line);
  return at != NULL ? atol(at + strlen(line)) : 0;
}

/* Timed steps replay the graph, which has the collectives: only the profiled steps call NCCL again, as many
 * as the steps of a round. */
static void collectives_are_in_the_graph(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  const json_t *result = bench(1, "");
  long one = calls("ncclAllReduce");
  assert_true(program_number(result, "captured_parts") == 1);
  assert_int_equal(json_array_size(program_member(result, "uncaptured")), 0);
  assert_true(program_number(result, "overlap.measured.step_ms") > 0);
  unlink("counts");
  bench(2, "");
  long two = calls("ncclAllReduce"), a_step = two - one;
  assert_true(a_step > 1); /* several buckets */
  assert_int_equal(one,
                   4 * a_step); /* the first step, a capture for each of two slots, and a profiled step */
  unlink("counts");
  bench(1, "--set backend.capture=no");
  assert_true(calls("ncclAllReduce") > one);
}

static void memory_of_nccl_serves_one_rank(void **state) {
  (void)state;
  static const char *const frees[] = {"ncclCommDeregister", "ncclCommWindowDeregister"};
  file_write("model.ini", nets_lenet);
  for (int i = 0; i < 2; i++) {
    unlink("counts");
    if (i == 1) setenv("FAKENCCL_VERSION", "22907", 1); /* the first whose windows hear an abort */
    bench(1,
          i == 0 ? "--set communicator.nccl.memory=registered" : "--set communicator.nccl.memory=symmetric");
    assert_true(calls("ncclMemAlloc") > 0);
    assert_int_equal(calls("ncclMemFree"), calls("ncclMemAlloc"));
    assert_true(calls(frees[i]) > 0);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, doubles_open, doubles_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(collectives_are_in_the_graph),
      TEST(memory_of_nccl_serves_one_rank),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
