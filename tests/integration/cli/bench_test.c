/* `tenon bench --ops`: the time of every launch, and the limits of the machine. */
#include <math.h>

#include "configs.h"
#include "program.h"

static double item(const json_t *array, size_t i) { return json_number_value(json_array_get(array, i)); }

static void ops_are_every_launch_of_the_plan_slowest_first(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *plan = program_json(0, "plan noise.ini");
  const json_t *r = program_json(0, "bench noise.ini --ops --steps 2 --rounds 3");
  const json_t *launches = program_member(r, "launches");
  double sum = 0, last = 1e9;
  assert_int_equal(json_array_size(launches), json_array_size(program_member(plan, "ops")));
  for (size_t i = 0; i < json_array_size(launches); i++) {
    const json_t *one = json_array_get(launches, i), *ms = program_member(one, "ms");
    assert_true(item(ms, 0) > 0 && item(ms, 0) <= item(ms, 1) && item(ms, 1) <= item(ms, 2));
    assert_true(item(ms, 1) <= last);
    last = item(ms, 1);
    sum += last;
    assert_non_null(program_text(one, "kernel"));
    assert_true(program_number(one, "bytes") > 0);
    double reached = program_number(one, "flops") / (last * 1e-3) * 1e-9;
    assert_true(fabs(program_number(one, "gflops") - reached) <= 1e-6 * reached);
    assert_true(program_number(one, "of_limit") > 0);
  }
  assert_true(fabs(program_number(r, "launched_ms") - sum) < 1e-6 * sum);
  assert_true(program_number(r, "between_ms") >= 0);
  assert_true(item(program_member(r, "launched_step_ms"), 0) > 0);
  assert_true(program_number(r, "least_ms") > 0);
}

static void inference_has_no_gradients_and_ceilings_of_its_own_run(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, "bench noise.ini --ops --mode infer --steps 1 --rounds 1 --threads 1");
  assert_int_equal(program_number(r, "threads"), 1);
  assert_string_equal(program_text(r, "mode"), "infer");
  assert_true(program_number(r, "ceilings.gemm_gflops.f32") > 0);
  assert_true(program_number(r, "ceilings.multiply_add_gflops") > 0);
  assert_true(program_number(r, "ceilings.copy_gb_s") > 0);
  assert_true(program_number(r, "ceilings.cached_copy_gb_s") > 0);
  double launches = 0;
  for (size_t i = 0; i < json_array_size(program_member(r, "kernels")); i++)
    launches += program_number(json_array_get(program_member(r, "kernels"), i), "launches");
  assert_int_equal(launches, json_array_size(program_member(r, "launches")));
  for (size_t i = 0; i < json_array_size(program_member(r, "launches")); i++) {
    const json_t *one = json_array_get(program_member(r, "launches"), i);
    if (strstr(program_text(one, "op"), "grad")) fail_msg("a gradient while inferring");
  }
}

/* A device without matmul has no rate of it. */
static void ceilings_are_those_of_the_configured_device(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, "bench noise.ini --ops --mode infer --steps 1 --rounds 1 "
                                    "--set backend.use=sim --set backend.sim.threads=1 "
                                    "--set backend.sim.lacks=matmul");
  assert_int_equal(json_object_size(program_member(r, "ceilings.gemm_gflops")), 0);
  r = program_json(0, "bench noise.ini --ops --mode infer --steps 1 --rounds 1 --set backend.use=sim");
  assert_true(program_number(r, "ceilings.gemm_gflops.f32") > 0);
}

static void micro_batches_and_the_update_are_one_step(void **state) {
  (void)state;
  static const char *const names[] = {"weigh", "micro", "step"};
  double sum = 0;
  int seen[3] = {0};
  file_write("noise.ini", noise_ini);
  const json_t *r =
      program_json(0, "bench noise.ini --ops --steps 2 --rounds 3 --set optimizer.accumulate=3");
  const json_t *launches = program_member(r, "launches");
  assert_int_equal(program_number(r, "accumulate"), 3);
  assert_int_equal(program_number(r, "batch"), 8);
  double median = item(program_member(r, "ms"), 1), per_s = program_number(r, "per_s");
  assert_true(fabs(per_s - 3 * 8 / median * 1e3) < 1e-6 * per_s);
  for (size_t i = 0; i < json_array_size(launches); i++) {
    const json_t *one = json_array_get(launches, i);
    for (int k = 0; k < 3; k++) {
      if (strcmp(program_text(one, "program"), names[k]) != 0) continue;
      assert_int_equal(program_number(one, "runs"), 3 - k);
      seen[k]++;
    }
    sum += item(program_member(one, "ms"), 1);
  }
  assert_true(seen[1] > 0 && seen[2] > 0);
  assert_int_equal(seen[0] + seen[1] + seen[2], json_array_size(launches));
  assert_true(fabs(program_number(r, "launched_ms") - sum) < 1e-6 * sum);
  assert_true(program_number(r, "planned_peak_mib") == program_number(r, "measured_peak_mib"));
}

static void the_table_ends_with_the_time_between_launches(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("bench noise.ini --ops --steps 1 --rounds 1"), 0);
  assert_non_null(strstr(program_out, "% limit"));
  assert_non_null(strstr(program_out, "between launches"));
  assert_non_null(strstr(program_out, "ceilings   matmul f32"));
}

static void threads_must_be_a_number(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("bench noise.ini --threads none"), 2);
  assert_non_null(strstr(program_err, "expected a number from 1, not 'none'"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(ops_are_every_launch_of_the_plan_slowest_first, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(ceilings_are_those_of_the_configured_device, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(inference_has_no_gradients_and_ceilings_of_its_own_run, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(micro_batches_and_the_update_are_one_step, program_open, program_close),
      cmocka_unit_test_setup_teardown(the_table_ends_with_the_time_between_launches, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(threads_must_be_a_number, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
