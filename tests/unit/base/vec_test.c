/* Growable arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/base/vec.h"
#include "tests/support/test_env.h"

static void pushing_keeps_the_order(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  TN_VEC(int32_t) v = {0};
  for (int32_t i = 0; i < 1000; i++) assert_int_equal(tn_vec_push(&t, &v, i), TN_OK);
  assert_int_equal(v.n, 1000);
  for (int32_t i = 0; i < 1000; i++) assert_int_equal(v.v[i], i);
  assert_true(t.asked < 20);
  tn_vec_free(&t, &v);
  assert_int_equal(t.live, 0);
  assert_null(v.v);
}

static void a_refused_push_leaves_the_array_as_it_was(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  TN_VEC(int64_t) v = {0};
  for (int64_t i = 0; i < 8; i++) assert_int_equal(tn_vec_push(&t, &v, i), TN_OK);
  t.fail_at = 1;
  assert_int_equal(tn_vec_push(&t, &v, 8), TN_ENOMEM);
  assert_int_equal(v.n, 8);
  assert_int_equal(v.v[7], 7);
  assert_int_equal(tn_vec_reserve(&t, &v, SIZE_MAX / 2), TN_ENOMEM);
  tn_vec_free(&t, &v);
  assert_int_equal(t.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pushing_keeps_the_order),
      cmocka_unit_test(a_refused_push_leaves_the_array_as_it_was),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
