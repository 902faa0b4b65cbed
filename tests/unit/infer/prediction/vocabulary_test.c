/* The tokenizer of a language model. */
#include "tests/support/check_status.h"
#include "tests/support/test_env.h"

#include "core/records/learnt/vocabulary.h"
#include "core/tokenizer/calls.h"

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

static void check_tokens(const tn_tokenizer *v, const char *text, size_t bytes, const int32_t *expected,
                         size_t n) {
  tn_token_ids tokens = {0};
  char *back;
  size_t length;
  assert_ok(&B, tn_host_tokenizer_encode(&B, v, text, bytes, 0, &tokens));
  assert_int_equal(tokens.n, n);
  for (size_t i = 0; i < n; i++) assert_int_equal(tokens.v[i], expected[i]);
  assert_ok(&B, tn_host_tokenizer_decode(&B, v, tokens.v, n, 0, &back, &length));
  assert_int_equal(length, bytes);
  assert_memory_equal(back, text, bytes);
  tn_release(&B, back);
  tn_release(&B, tokens.v);
}

static void the_longest_name_is_taken(void **state) {
  (void)state;
  json_t *names = json_loads("[\"b\", \"a\", \"ab\", \"\", \"abc\", \"\\u00e9\", \"\\n\"]", 0, NULL);
  tn_tokenizer *v;
  tn_token_ids tokens = {0};
  assert_non_null(names);
  assert_ok(&B, tn_vocabulary_of_names(&B, names, 7, &v));
  check_tokens(v, "abcabab", 7, (const int32_t[]){4, 2, 2}, 3);
  check_tokens(v, "ba\xc3\xa9\n", 5, (const int32_t[]){0, 1, 5, 6}, 4);
  check_tokens(v, "", 0, NULL, 0);
  assert_error(&B, tn_host_tokenizer_encode(&B, v, "ab\xc3\xa8", 4, 0, &tokens), TN_EINVAL,
               "the text has '\xc3\xa8' at byte 2, which is not among the 7 tokens");
  assert_error(&B, tn_host_tokenizer_encode(&B, v, "bc", 2, 0, &tokens), TN_EINVAL, "has 'c' at byte 1");
  tn_host_tokenizer_close(&B, v);
  json_decref(names);
}

static void without_names_256_tokens_are_bytes(void **state) {
  (void)state;
  tn_tokenizer *v;
  assert_ok(&B, tn_vocabulary_of_names(&B, NULL, 256, &v));
  check_tokens(v, "a\xff\x00\x80", 4, (const int32_t[]){97, 255, 0, 128}, 4);
  tn_host_tokenizer_close(&B, v);
  assert_ok(&B, tn_vocabulary_of_names(&B, NULL, 65, &v));
  assert_null(v);
}

/* Classes that are no tokens have no names; of fewer classes than tokens the tokenizer is not used. */
static void the_tokenizer_of_the_weights_is_used(void **state) {
  (void)state;
  static const char note[] = "{\"text\": {\"model\": {\"type\": \"Pieces\", \"pieces\": [\"x\", \"y\"]}}}";
  tn_tokenizer *v;
  int64_t unfit;
  assert_ok(&B, tn_vocabulary_of_note(&B, note, 3, &v, &unfit));
  check_tokens(v, "yx", 2, (const int32_t[]){1, 0}, 2);
  json_t *texts = tn_vocabulary_names(&B, v, 3);
  assert_string_equal(json_string_value(json_array_get(texts, 1)), "y");
  assert_true(json_is_null(json_array_get(texts, 2)));
  json_decref(texts);
  tn_host_tokenizer_close(&B, v);
  assert_ok(&B, tn_vocabulary_of_note(&B, note, 1, &v, &unfit));
  assert_null(v);
  assert_int_equal(unfit, 2);
  assert_ok(&B, tn_vocabulary_of_note(&B, "{\"table\": {\"age\": 3}}", 1, &v, &unfit));
  assert_null(v);
  assert_int_equal(unfit, 0);
  assert_error(&B, tn_vocabulary_of_note(&B, "{\"text\": {\"model\": {}}}", 3, &v, &unfit), TN_EINVAL,
               "the tokenizer of the weights: model.type: is absent, expected a text");
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      CASE(the_longest_name_is_taken),
      CASE(without_names_256_tokens_are_bytes),
      CASE(the_tokenizer_of_the_weights_is_used),
  };
  return cmocka_run_group_tests_name("vocabulary", tests, NULL, NULL);
}
