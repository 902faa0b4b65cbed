/* Texts become tokens and back. */
#include "tests/support/check_status.h"
#include "tests/support/test_env.h"

#include "core/infer/prediction/vocabulary.h"

static test_env B;

static int set_up(void **state) {
  (void)state;
  test_env_start(&B);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  return B.live == 0 ? 0 : -1;
}

static void check_tokens(const tn_vocabulary *v, const char *text, size_t bytes, const int32_t *expected,
                         size_t n) {
  tn_token_list tokens = {0};
  char back[64] = "";
  size_t length = 0;
  assert_ok(&B, tn_vocabulary_encode(&B, v, text, bytes, &tokens));
  assert_int_equal(tokens.n, n);
  for (size_t i = 0; i < n; i++) {
    size_t part = 0;
    const char *one = tn_vocabulary_text(v, tokens.v[i], &part);
    assert_int_equal(tokens.v[i], expected[i]);
    memcpy(back + length, one, part);
    length += part;
  }
  assert_int_equal(length, bytes);
  assert_memory_equal(back, text, bytes);
  tn_vec_free(&B, &tokens);
}

static void the_longest_token_is_taken(void **state) {
  (void)state;
  json_t *names = json_loads("[\"b\", \"a\", \"ab\", \"\", \"abc\", \"\\u00e9\", \"\\n\"]", 0, NULL);
  tn_vocabulary v;
  assert_non_null(names);
  assert_ok(&B, tn_vocabulary_open(&B, names, 7, &v));
  check_tokens(&v, "abcabab", 7, (const int32_t[]){4, 2, 2}, 3);
  check_tokens(&v, "ba\xc3\xa9\n", 5, (const int32_t[]){0, 1, 5, 6}, 4);
  check_tokens(&v, "", 0, NULL, 0);
  tn_token_list tokens = {0};
  assert_error(&B, tn_vocabulary_encode(&B, &v, "ab\xc3\xa8", 4, &tokens), TN_EINVAL,
               "the text has '\xc3\xa8' at byte 2, which is not among the 7 tokens");
  assert_error(&B, tn_vocabulary_encode(&B, &v, "bc", 2, &tokens), TN_EINVAL, "has 'c' at byte 1");
  tn_vec_free(&B, &tokens);
  tn_vocabulary_close(&B, &v);
  json_decref(names);
}

static void without_names_256_tokens_are_bytes(void **state) {
  (void)state;
  tn_vocabulary v;
  assert_ok(&B, tn_vocabulary_open(&B, NULL, 256, &v));
  check_tokens(&v, "a\xff\x00\x80", 4, (const int32_t[]){97, 255, 0, 128}, 4);
  for (int32_t i = 0; i < 256; i++) {
    size_t bytes = 0;
    assert_int_equal((unsigned char)*tn_vocabulary_text(&v, i, &bytes), i);
    assert_int_equal(bytes, 1);
  }
  tn_vocabulary_close(&B, &v);
  assert_ok(&B, tn_vocabulary_open(&B, NULL, 65, &v));
  assert_int_equal(v.n, 0);
  tn_vocabulary_close(&B, &v);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      CASE(the_longest_token_is_taken),
      CASE(without_names_256_tokens_are_bytes),
  };
  return cmocka_run_group_tests_name("vocabulary", tests, NULL, NULL);
}
