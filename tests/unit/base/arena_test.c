/* Memory that is released all at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/base/arena.h"
#include "tests/support/test_env.h"

static void blocks_are_zeroed_aligned_and_apart(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_arena arena = tn_arena_new(&t);
  char *before = NULL;
  for (size_t n = 0; n < 300; n++) {
    char *block = tn_arena_alloc(&arena, n);
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % 16, 0);
    assert_ptr_not_equal(block, before);
    for (size_t i = 0; i < n; i++) assert_int_equal(block[i], 0);
    memset(block, 1, n);
    before = block;
  }
  tn_arena_free(&arena);
  assert_int_equal(t.live, 0);
}

static void a_large_block_leaves_the_open_chunk_in_use(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_arena arena = tn_arena_new(&t);
  char *first = tn_arena_alloc(&arena, 16);
  char *large = tn_arena_alloc(&arena, 5 << 20);
  char *second = tn_arena_alloc(&arena, 16);
  assert_ptr_equal(second, first + 16);
  memset(large, 1, 5 << 20);
  assert_int_equal(t.live, 2);
  tn_arena_free(&arena);
  assert_int_equal(t.live, 0);
}

static void refusal_is_recorded_on_the_handle(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_arena arena = tn_arena_new(&t);
  assert_null(tn_arena_alloc(&arena, SIZE_MAX));
  assert_null(tn_arena_alloc(&arena, SIZE_MAX - 20));
  assert_int_equal(t.record.code, TN_ENOMEM);
  tn_arena_free(&arena);
  assert_int_equal(t.live, 0);
}

static void texts_are_copied_and_printed(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_arena arena = tn_arena_new(&t);
  char source[] = "abc";
  char *copy = tn_arena_strdup(&arena, source);
  source[0] = 'x';
  assert_string_equal(copy, "abc");
  assert_string_equal(tn_arena_printf(&arena, "%s-%d", "layer", 3), "layer-3");
  assert_memory_equal(tn_arena_copy(&arena, "\0\1\2", 3), "\0\1\2", 3);
  assert_non_null(tn_arena_copy(&arena, NULL, 0));
  tn_arena_free(&arena);
  assert_int_equal(t.live, 0);
}

static void an_array_grows_at_powers_of_two_only(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_arena arena = tn_arena_new(&t);
  int32_t *v = NULL, moves = 0;
  for (int32_t i = 0; i < 100; i++) {
    int32_t *grown = tn_arena_grow(&arena, v, (size_t)i, sizeof(*v));
    moves += grown != v;
    v = grown;
    v[i] = i;
  }
  for (int32_t i = 0; i < 100; i++) assert_int_equal(v[i], i);
  assert_int_equal(moves, 8);
  tn_arena_free(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_are_zeroed_aligned_and_apart),
      cmocka_unit_test(a_large_block_leaves_the_open_chunk_in_use),
      cmocka_unit_test(refusal_is_recorded_on_the_handle),
      cmocka_unit_test(texts_are_copied_and_printed),
      cmocka_unit_test(an_array_grows_at_powers_of_two_only),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
