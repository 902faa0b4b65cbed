/* [group.NAME] freeze: the epochs in which names are frozen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/freeze.h"
#include "tests/support/test_env.h"

static void the_first_pattern_that_matches_decides(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_arena arena = tn_arena_new(&t);
  tn_freeze freeze = {.n = 0};
  tn_words words;
  assert_int_equal(tn_frozen_until(&freeze, "fc.weight"), 0);
  assert_false(tn_is_frozen(&freeze, "fc.weight", 0));
  assert_int_equal(tn_words_split(&arena, "stem.*", &words), TN_OK);
  assert_int_equal(tn_freeze_add(&arena, &freeze, &words, TN_FROZEN_FOREVER), TN_OK);
  assert_int_equal(tn_words_split(&arena, "layer4.*, fc.*", &words), TN_OK);
  assert_int_equal(tn_freeze_add(&arena, &freeze, &words, 0), TN_OK);
  assert_int_equal(tn_words_split(&arena, "*", &words), TN_OK);
  assert_int_equal(tn_freeze_add(&arena, &freeze, &words, 3), TN_OK);
  assert_int_equal(freeze.n, 4);
  assert_true(tn_frozen_until(&freeze, "stem.weight") == TN_FROZEN_FOREVER);
  assert_int_equal(tn_frozen_until(&freeze, "fc.weight"), 0);
  assert_int_equal(tn_frozen_until(&freeze, "layer3.weight"), 3);
  assert_true(tn_is_frozen(&freeze, "stem.weight", 1000000));
  assert_true(tn_is_frozen(&freeze, "layer3.weight", 1) && tn_is_frozen(&freeze, "layer3.weight", 3));
  assert_false(tn_is_frozen(&freeze, "layer3.weight", 4) || tn_is_frozen(&freeze, "layer4.weight", 1));
  tn_arena_free(&arena);
  assert_int_equal(t.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_pattern_that_matches_decides)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
