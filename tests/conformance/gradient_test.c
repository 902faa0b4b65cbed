/* Every gradient rule of the core against finite differences (core/conformance/trial/finite_differences.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/conformance/trial/finite_differences.h"
#include "fixture.h"

enum { DRAWS = 60 };

static void run_family(void **state, const tn_case *cases) {
  fixture *f = *state;
  const tn_trial_site site = {.env = &f->env, .registry = f->registry, .ops = f->ops};
  for (const tn_case *c = cases; c->op != NULL; c++)
    for (int64_t draw = 0; draw < DRAWS; draw++) {
      const tn_trial trial = {.c = c, .dtype = TN_F64, .draw = draw, .gradient = true};
      tn_verdict verdict;
      assert_int_equal(tn_finite_differences_run(&site, &trial, &verdict), TN_OK);
      if (verdict.what != TN_VERDICT_PASSED && verdict.what != TN_VERDICT_NOTHING)
        fail_msg("%s, draw %lld: %s", c->op, (long long)draw, verdict.text);
    }
}

static void pointwise(void **state) { run_family(state, tn_pointwise_cases); }
static void tensors_of_positions(void **state) { run_family(state, tn_fill_cases); }
static void reductions_and_pooling(void **state) { run_family(state, tn_reduce_cases); }
static void products_attention_embedding(void **state) { run_family(state, tn_product_cases); }
static void normalization(void **state) { run_family(state, tn_norm_cases); }
static void softmax_and_cross_entropy(void **state) { run_family(state, tn_loss_cases); }
static void movement(void **state) { run_family(state, tn_movement_cases); }
static void indices_sorts_and_running_sums(void **state) { run_family(state, tn_index_cases); }

static int open_fixture(void **state) {
  static fixture f;
  *state = &f;
  return fixture_open(&f) == TN_OK ? 0 : -1;
}
static int close_fixture(void **state) {
  fixture_close(*state);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pointwise),
      cmocka_unit_test(tensors_of_positions),
      cmocka_unit_test(reductions_and_pooling),
      cmocka_unit_test(products_attention_embedding),
      cmocka_unit_test(normalization),
      cmocka_unit_test(softmax_and_cross_entropy),
      cmocka_unit_test(movement),
      cmocka_unit_test(indices_sorts_and_running_sums),
  };
  return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
