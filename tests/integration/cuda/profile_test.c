/* [run] profile on the doubles of CUDA's libraries: graphs are not replayed in the profiled steps, and the
 * run goes on with the same bits. */
#include "profiles.h"

/* deterministic: no measurement chooses another kernel in the second run. */
static const char net[] =
    "[run]\nname = run\nepochs = 2\ndeterministic = yes\n[data]\nsource = random\nshape = 1, 6, 6\n"
    "classes = 4\nsamples = 80\nbatch = 8\n[model]\ninputs = image: f32[1, 6, 6]\n"
    "layers =\n    flatten\n    fc1: linear(16)\n    relu\n    fc2: linear(4)\n"
    "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.05\nmomentum = 0.9\n"
    "[backend]\nuse = cuda\n[backend.cuda]\nlibraries = " DOUBLES "\n";

static void a_profile_has_the_launches_copies_and_times_of_the_device(void **state) {
  (void)state;
  file_write("net.ini", net);
  program_json(0, "train net.ini --set run.output=plain");
  program_json(0, "train net.ini --set run.output=profiled --set run.profile=3");
  checkpoints_equal("plain", "profiled");
  const json_t *p = file_json("profiled/run/profile.json"), *trace = file_json("profiled/run/trace.json"),
               *plan = file_json("profiled/run/plan.json"), *launches = program_member(p, "launches");
  profile_check_sums(p, 3, 8);
  trace_check(trace);
  assert_true(program_number(plan, "captured_parts") > 0);
  assert_string_equal(program_text(p, "clock"), "device");
  assert_int_equal(program_number(p, "copies.to_device.copies"), 3);
  assert_int_equal(program_number(p, "copies.to_host.copies"), 3);
  assert_int_equal(json_array_size(launches), json_array_size(program_member(plan, "ops")));
  for (size_t i = 0; i < json_array_size(launches); i++)
    assert_int_equal(program_number(json_array_get(launches, i), "launches"), 3);
  assert_int_equal(trace_count(trace, "compute", "launch"), 3 * json_array_size(launches));
}

static void a_benchmark_times_launches_by_events(void **state) {
  (void)state;
  file_write("net.ini", net);
  const json_t *r = program_json(0, "bench net.ini --ops --steps 2 --rounds 1 --trace bench.json"),
               *launches = program_member(r, "launches");
  assert_true(json_array_size(launches) > 0);
  for (size_t i = 0; i < json_array_size(launches); i++)
    assert_true(json_number_value(json_array_get(program_member(json_array_get(launches, i), "ms"), 1)) > 0);
  trace_check(file_json("bench.json"));
  assert_int_equal(trace_count(file_json("bench.json"), "compute", "launch"), 10 * json_array_size(launches));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_profile_has_the_launches_copies_and_times_of_the_device, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(a_benchmark_times_launches_by_events, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
