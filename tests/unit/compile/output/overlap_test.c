/* The predicted times of collectives beside other steps. */
#include "core/compile/output/overlap.h"

#include <math.h>

#include "tests/unit/compile/fixture.h"
#include "tests/unit/compile/kernels.h"

static const tn_item *const plain[] = {KERNELS_PLAIN, NULL};
static fixture F;

static int set_up(void **state) {
  (void)state;
  fixture_open(&F, plain);
  F.target.interconnect = (tn_interconnect){2, 2, {1e9, 1e-5}, {1e9, 1e-5}};
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  fixture_close(&F);
  return 0;
}

/* Two buckets; the second is ready when the backward pass ends. */
static const char buckets[] = "x: f32[16, 16] = input(name=x)\n"
                              "a = transpose(x, order=[1, 0])\n"
                              "b = transpose(a, order=[1, 0])\n"
                              "c = transpose(b, order=[1, 0])\n"
                              "p = pack(a, offsets=[0], count=256)\n"
                              "q = pack(b, c, offsets=[0, 256], count=512)\n"
                              "r = all_reduce(p)\n"
                              "s = all_reduce(q)\n"
                              "f = pack(r, s, offsets=[0, 256], count=768)\n"
                              "y = reduce_sum(f)\n"
                              "output y = y\n";

/* The same program with other costs, by the kind of the step. */
static void set_costs(const tn_program *p, double compute_s, double first_s, double second_s) {
  double collective_s = first_s;
  for (int32_t i = 0; i < p->n_steps; i++) {
    bool comm = p->steps[i].group->role == TN_STREAM_COMM;
    ((tn_group *)(uintptr_t)p->steps[i].group)->choice.cost_s = comm ? collective_s : compute_s;
    if (comm) collective_s = second_s;
  }
}

static void expect(const tn_program *p, double exposed_s, double step_s) {
  tn_step_times times[16];
  assert_true(p->n_steps <= 16);
  tn_overlap o = tn_overlap_predict(p, times), alone = tn_overlap_predict(p, NULL);
  double sum = 0;
  for (int32_t i = 0; i < p->n_steps; i++) sum += times[i].exposed_s;
  assert_true(fabs(o.exposed_s - exposed_s) < 1e-12 && fabs(o.step_s - step_s) < 1e-12);
  assert_true(fabs(sum - exposed_s) < 1e-12);
  assert_true(fabs(o.compute_s + o.exposed_s - o.step_s) < 1e-12);
  assert_true(alone.step_s == o.step_s && alone.exposed_s == o.exposed_s);
}

/* Steps in order: a, b, first bucket, c, second bucket, y, which awaits both. */
static void what_ends_behind_the_steps_is_exposed(void **state) {
  (void)state;
  tn_program *p = fixture_program(&F, buckets);
  assert_int_equal(p->n_steps, 6);
  set_costs(p, 1, 0.5, 0.25);
  expect(p, 0.25, 4.25); /* the first is hidden */
  set_costs(p, 1, 1.5, 0.25);
  expect(p, 0.75, 4.75); /* the second waits for the first: 2 + 1.5 + 0.25, and the backward pass ends at 3 */
  set_costs(p, 1, 0, 0);
  expect(p, 0, 4);
  set_costs(p, 0, 2, 3);
  expect(p, 5, 5);
  tn_program_destroy(p);
}

static void costs_of_collectives_are_those_of_the_links(void **state) {
  (void)state;
  tn_program *p = fixture_program(&F, buckets);
  const tn_interconnect *c = &F.target.interconnect;
  int32_t seen = 0;
  for (int32_t i = 0; i < p->n_steps; i++) {
    const tn_group *g = p->steps[i].group;
    if (g->role != TN_STREAM_COMM) continue;
    double bytes = (double)tn_type_bytes(&p->steps[i].in[0].type);
    assert_true(fabs(g->choice.cost_s - tn_collective_s(c, TN_ALL_REDUCE, bytes)) < 1e-12);
    seen++;
  }
  assert_int_equal(seen, 2);
  tn_program_destroy(p);
}

static void the_report_counts_gradients(void **state) {
  (void)state;
  tn_program *p = fixture_program(&F, buckets);
  json_t *report = NULL;
  set_costs(p, 1, 0.5, 0.25);
  assert_int_equal(tn_overlap_report(p, &report), TN_OK);
  const json_t *list = json_object_get(report, "collectives"), *last = json_array_get(list, 1);
  assert_int_equal(json_array_size(list), 2);
  assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "gradients")), 1);
  assert_int_equal(json_integer_value(json_object_get(last, "gradients")), 2);
  assert_true(json_number_value(json_object_get(last, "bytes")) == 2048);
  assert_true(fabs(json_number_value(json_object_get(last, "ready_ms")) - 3000) < 1e-9);
  assert_true(fabs(json_number_value(json_object_get(last, "exposed_ms")) - 250) < 1e-9);
  assert_true(fabs(json_number_value(json_object_get(report, "exposed_percent")) - 25 / 4.25) < 1e-9);
  json_decref(report);
  tn_program_destroy(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(what_ends_behind_the_steps_is_exposed, set_up, tear_down),
      cmocka_unit_test_setup_teardown(costs_of_collectives_are_those_of_the_links, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_report_counts_gradients, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
