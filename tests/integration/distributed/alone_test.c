/* The collectives of one rank: `tenon bench --ranks 1` with a communicator that the configuration names. A
 * training on one device has none, also where its configuration names a communicator. */
#include "nets.h"

static const json_t *bench(const char *more) {
  return program_json(
      0, "bench model.ini --steps 2 --rounds 2 --set backend.use=sim --set distributed.bucket=4KiB %s", more);
}

static void one_rank_runs_the_collectives_of_a_named_communicator(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  const json_t *result = bench("--ranks 1 --set distributed.communicator=sim");
  assert_string_equal(program_text(result, "communicator"), "sim");
  assert_true(program_number(result, "devices") == 1);
  assert_true(program_number(result, "captured_parts") == 1);
  assert_int_equal(json_array_size(program_member(result, "uncaptured")), 0);
  assert_true(program_number(result, "overlap.measured.communication_ms") > 0);
  assert_true(program_number(result, "overlap.predicted.communication_ms") > 0);
  assert_true(program_number(result, "overlap.measured.exposed_ms") >= 0);
  result = bench("--ranks 1 --set distributed.communicator=sim --set optimizer.accumulate=2 --batch 4");
  assert_true(program_number(result, "overlap.measured.communication_ms") > 0);
}

/* Each of the two alone changes nothing. */
static void without_a_name_or_a_number_there_is_no_communicator(void **state) {
  (void)state;
  static const char *const more[] = {"", "--ranks 1", "--set distributed.communicator=sim",
                                     "--ranks 1 --set distributed.communicator=sim --mode infer"};
  file_write("model.ini", nets_lenet);
  for (int i = 0; i < 4; i++) {
    const json_t *result = bench(more[i]);
    assert_null(json_object_get(result, "communicator"));
    assert_null(json_object_get(result, "overlap"));
    assert_int_equal(json_array_size(program_member(result, "uncaptured")), 0);
  }
}

static void a_training_on_one_device_has_no_collectives(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  const json_t *plan =
      program_json(0, "plan model.ini --set backend.use=sim --set distributed.communicator=sim");
  assert_true(program_number(plan, "collectives") == 0);
  nets_train("named", 1,
             "--set distributed.communicator=sim --set distributed.bucket=4KiB --set run.max_steps=4");
  nets_train("plain", 1, "--set run.max_steps=4");
  checkpoints_equal("named", "plain");
}

static void a_communicator_of_other_devices_is_refused(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  assert_int_equal(
      program_run("bench model.ini --ranks 1 --set backend.use=cpu --set distributed.communicator=sim"), 65);
  if (strstr(program_err,
             "[distributed] communicator = sim serves devices of sim, not those of backend 'cpu'") == NULL)
    fail_msg("%s", program_err);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(one_rank_runs_the_collectives_of_a_named_communicator),
      CASE(without_a_name_or_a_number_there_is_no_communicator),
      CASE(a_training_on_one_device_has_no_collectives),
      CASE(a_communicator_of_other_devices_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
