/* The ranges that Nsight Systems would show of a training on the doubles of CUDA's libraries. */
#include "program.h"

static const char net[] = "[run]\nname = run\nepochs = 1\nsave_every = 5\nsteps_per_launch = "
                          "1\n[data]\nsource = random\nshape = 1, 6, 6\n"
                          "classes = 4\nsamples = 80\nbatch = 8\n[model]\ninputs = image: f32[1, 6, 6]\n"
                          "layers =\n    flatten\n    fc1: linear(16)\n    relu\n    fc2: linear(4)\n"
                          "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.05\nmomentum = 0.9\n"
                          "[backend]\nuse = cuda\n[backend.cuda]\nlibraries = " DOUBLES "\n";

static int count(const char *text, const char *part) {
  int n = 0;
  for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) n++;
  return n;
}

static void programs_launches_and_waits_are_ranges(void **state) {
  (void)state;
  file_write("net.ini", net);
  program_json(0, "train net.ini");
  size_t n;
  const char *ranges = file_read("ranges", &n); /* ends with 0 */
  assert_int_equal(count(ranges, "domain Tenon\n"), 1);
  assert_int_equal(count(ranges, "another domain"), 0);
  assert_int_equal(count(ranges, "+"), count(ranges, "-"));
  assert_int_equal(count(ranges, "+wait for samples\n"), 10);
  assert_int_equal(count(ranges, "\n+step\n"), 10);
  assert_int_equal(count(ranges, "+validation\n"), 1);
  assert_true(count(ranges, "+checkpoint\n") >= 2);
  assert_true(count(ranges, "  +eval") > 0);      /* within the validation */
  assert_true(count(ranges, " of fc1\n  -") > 0); /* a launch within a program */
  assert_int_equal(count(ranges, "stream compute\n"), 1);
}

static int open_with_tool(void **state) {
  int status = program_open(state);
  setenv("NVTX_INJECTION64_PATH", TOOL, 1);
  setenv("RANGES", "ranges", 1);
  return status;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(programs_launches_and_waits_are_ranges, open_with_tool, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
