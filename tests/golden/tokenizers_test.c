/* Tokenizers against Hugging Face's and SentencePiece's: ids with and without the template, the decoded text,
 * and the same text from a stream of ids.
 *
 *     tokenizers_test FILE...
 *
 * make_tokenizers.py and make_sentencepiece.py write the files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text/text.h"
#include "core/tokenizer/calls.h"
#include "tests/support/test_env.h"

static const char *const *files;
static int n_files;

/* A file beside the goldens. The JSON of the tokenizer, which travels with weights, opens the same one. */
static tn_tokenizer *open_model(test_env *t, const char *file, const char *model) {
  tn_tokenizer *first, *second;
  char path[512];
  snprintf(path, sizeof path, "%.*s%s", (int)(strrchr(file, '/') + 1 - file), file, model);
  if (tn_host_tokenizer_open(t, path, &first) != TN_OK) fail_msg("%s", tn_error_text(t));
  const char *json = tn_host_tokenizer_json(first);
  if (tn_host_tokenizer_open_text(t, file, json, strlen(json), &second) != TN_OK)
    fail_msg("%s", tn_error_text(t));
  assert_string_equal(tn_host_tokenizer_json(second), json);
  tn_host_tokenizer_close(t, first);
  return second;
}

static tn_tokenizer *open_golden(test_env *t, const char *file, const json_t *golden) {
  tn_tokenizer *tokenizer;
  const char *model = json_string_value(json_object_get(golden, "file"));
  if (model != NULL) return open_model(t, file, model);
  char *json = json_dumps(golden, 0);
  if (tn_host_tokenizer_open_text(t, file, json, strlen(json), &tokenizer) != TN_OK)
    fail_msg("%s", tn_error_text(t));
  free(json);
  return tokenizer;
}

static void judge_ids(const tn_token_ids *ids, const json_t *expected, const char *file, size_t number) {
  for (size_t i = 0; i < ids->n || i < json_array_size(expected); i++) {
    int64_t want = i < json_array_size(expected) ? json_integer_value(json_array_get(expected, i)) : -1;
    int64_t have = i < ids->n ? ids->v[i] : -1;
    if (have != want)
      fail_msg("%s: case %zu: id %zu is %lld, expected %lld", file, number, i, (long long)have,
               (long long)want);
  }
}

static void judge_text(const char *text, size_t bytes, const json_t *expected, const char *file,
                       size_t number) {
  if (bytes != json_string_length(expected) || memcmp(text, json_string_value(expected), bytes) != 0)
    fail_msg("%s: case %zu: decoded as \"%.*s\", expected \"%s\"", file, number, (int)bytes, text,
             json_string_value(expected));
}

static void encode_case(test_env *t, const tn_tokenizer *tokenizer, const json_t *text, uint32_t flags,
                        tn_token_ids *ids) {
  ids->n = 0;
  if (tn_host_tokenizer_encode(t, tokenizer, json_string_value(text), json_string_length(text), flags, ids) !=
      TN_OK)
    fail_msg("%s", tn_error_text(t));
}

static void stream_case(test_env *t, const tn_tokenizer *tokenizer, const tn_token_ids *ids,
                        tn_text *streamed) {
  tn_token_stream *stream;
  const char *text;
  size_t bytes;
  streamed->n = 0;
  assert_int_equal(tn_host_token_stream_open(t, tokenizer, TN_TOKENIZE_SPECIAL, &stream), TN_OK);
  for (size_t i = 0; i < ids->n; i++) {
    assert_int_equal(tn_host_token_stream_next(t, stream, ids->v[i], &text, &bytes), TN_OK);
    tn_text_addn(streamed, text, bytes);
  }
  assert_int_equal(tn_host_token_stream_end(t, stream, &text, &bytes), TN_OK);
  tn_text_addn(streamed, text, bytes);
  tn_host_token_stream_close(t, stream);
}

static void judge_case(test_env *t, const tn_tokenizer *tokenizer, const json_t *golden, const char *file,
                       size_t number) {
  const json_t *text = json_object_get(golden, "text"), *decoded = json_object_get(golden, "decoded");
  tn_token_ids ids = {0};
  tn_text streamed = tn_text_new(t);
  char *all;
  size_t bytes;
  encode_case(t, tokenizer, text, TN_TOKENIZE_TEMPLATE, &ids);
  judge_ids(&ids, json_object_get(golden, "ids"), file, number);
  for (int32_t again = 0; again < 2; again++) { /* the second time the words are kept ones */
    encode_case(t, tokenizer, text, 0, &ids);
    judge_ids(&ids, json_object_get(golden, "plain"), file, number);
  }
  assert_int_equal(tn_host_tokenizer_decode(t, tokenizer, ids.v, ids.n, TN_TOKENIZE_SPECIAL, &all, &bytes),
                   TN_OK);
  judge_text(all, bytes, decoded, file, number);
  stream_case(t, tokenizer, &ids, &streamed);
  judge_text(streamed.v != NULL ? streamed.v : "", streamed.n, decoded, file, number);
  tn_release(t, all);
  tn_release(t, ids.v);
  tn_text_free(&streamed);
}

static void judge_tokenizer(test_env *t, const json_t *golden, const char *file) {
  const json_t *cases = json_object_get(golden, "cases");
  tn_tokenizer *tokenizer = open_golden(t, file, golden);
  assert_true(json_array_size(cases) > 0);
  for (size_t i = 0; i < json_array_size(cases); i++)
    judge_case(t, tokenizer, json_array_get(cases, i), file, i);
  tn_host_tokenizer_close(t, tokenizer);
}

static void ids_and_texts_are_those_of_the_reference(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  for (int i = 0; i < n_files; i++) {
    json_t *golden = json_load_file(files[i], JSON_ALLOW_NUL, NULL);
    assert_non_null(golden);
    if (json_is_object(golden)) judge_tokenizer(&t, golden, files[i]);
    for (size_t k = 0; k < json_array_size(golden); k++) {
      char name[512];
      snprintf(name, sizeof name, "%s[%zu]", files[i], k);
      judge_tokenizer(&t, json_array_get(golden, k), name);
    }
    json_decref(golden);
  }
  assert_int_equal(t.live, 0);
}

int main(int argc, char **argv) {
  files = (const char *const *)argv + 1;
  n_files = argc - 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(ids_and_texts_are_those_of_the_reference)};
  return cmocka_run_group_tests_name("tokenizers", tests, NULL, NULL);
}
