/* Tokenizers: kinds of Tenon's own, streams, files that are refused, and memory that runs out. The ids of
 * tokenizer.json are compared in tests/golden/tokenizers_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/text/text.h"
#include "core/tokenizer/calls.h"
#include "tests/support/test_env.h"

#define MODEL "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}"
/* Bytes of GPT-2's alphabet: U+00C3 and U+00A9 are the bytes of an e with an acute accent. */
#define BYTE_LEVEL                                                                                           \
  "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"                                   \
  "\"decoder\":{\"type\":\"ByteLevel\"},"                                                                    \
  "\"model\":{\"type\":\"BPE\",\"vocab\":{\"\xC3\x83\":0,\"\xC2\xA9\":1,\"a\":2,\"aa\":3},\"merges\":[\"a "  \
  "a\"]}"

static tn_tokenizer *open_text(const void *t, const char *json) {
  tn_tokenizer *tokenizer;
  if (tn_host_tokenizer_open_text(t, "t.json", json, strlen(json), &tokenizer) != TN_OK)
    fail_msg("%s", tn_error_text(t));
  return tokenizer;
}

static void refuses(const char *json, tn_status status, const char *message) {
  test_env t;
  tn_tokenizer *tokenizer;
  test_env_start(&t);
  assert_int_equal(tn_host_tokenizer_open_text(&t, "t.json", json, strlen(json), &tokenizer), status);
  assert_null(tokenizer);
  if (strstr(tn_error_text(&t), message) == NULL) fail_msg("\"%s\" lacks \"%s\"", tn_error_text(&t), message);
  assert_int_equal(t.live, 0);
}

static void ids_are(const void *t, const tn_tokenizer *tokenizer, const char *text, size_t bytes,
                    const int32_t *expected, size_t n) {
  tn_token_ids ids = {0};
  if (tn_host_tokenizer_encode(t, tokenizer, text, bytes, 0, &ids) != TN_OK) fail_msg("%s", tn_error_text(t));
  assert_int_equal(ids.n, n);
  assert_memory_equal(ids.v, expected, n * sizeof *expected);
  tn_release(t, ids.v);
}
#define IDS(...) (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t)

static void encoding_fails(const void *t, const tn_tokenizer *tokenizer, const char *text,
                           const char *message) {
  tn_token_ids ids = {0};
  assert_int_equal(tn_host_tokenizer_encode(t, tokenizer, text, strlen(text), 0, &ids), TN_EINVAL);
  if (strstr(tn_error_text(t), message) == NULL) fail_msg("\"%s\" lacks \"%s\"", tn_error_text(t), message);
  assert_null(ids.v);
}

/* ---- Tenon's own kinds ---- */

static void bytes_are_tokens(void **state) {
  (void)state;
  test_env t;
  tn_tokenizer *tokenizer;
  char *text;
  size_t n;
  test_env_start(&t);
  assert_int_equal(tn_host_tokenizer_open(&t, "bytes", &tokenizer), TN_OK);
  assert_int_equal(tn_host_tokenizer_size(tokenizer), 256);
  ids_are(&t, tokenizer, "a\0\xFF", 3, IDS('a', 0, 255));
  assert_int_equal(tn_host_tokenizer_decode(&t, tokenizer, IDS('a', 0, 255), 0, &text, &n), TN_OK);
  assert_int_equal(n, 3);
  assert_memory_equal(text, "a\0\xFF", 3);
  tn_release(&t, text);
  tn_host_tokenizer_close(&t, tokenizer);
  assert_int_equal(t.live, 0);
}

static void characters_are_numbered_in_the_order_of_their_code_points(void **state) {
  (void)state;
  test_env t;
  tn_tokenizer *tokenizer, *again;
  size_t n;
  test_env_start(&t);
  assert_int_equal(tn_host_tokenizer_of_characters(&t, "novel.txt", "b\xC3\xA9\na\0a", 7, 100, &tokenizer),
                   TN_OK);
  assert_int_equal(tn_host_tokenizer_size(tokenizer), 5);
  ids_are(&t, tokenizer, "ab\xC3\xA9\0\n", 6, IDS(2, 3, 4, 0, 1));
  const char *json = tn_host_tokenizer_json(tokenizer);
  assert_int_equal(tn_host_tokenizer_open_text(&t, "again", json, strlen(json), &again), TN_OK);
  ids_are(&t, again, "ab\xC3\xA9\0\n", 6, IDS(2, 3, 4, 0, 1));
  assert_string_equal(tn_host_tokenizer_token(again, 4, &n), "\xC3\xA9");
  assert_int_equal(tn_host_tokenizer_id(again, "b", 1), 3);
  assert_int_equal(tn_host_tokenizer_id(again, "x", 1), -1);
  assert_null(tn_host_tokenizer_token(again, 5, &n));
  encoding_fails(&t, again, "abx",
                 "the text has 'x' at byte 2, which is not among the 5 tokens of the model");
  tn_host_tokenizer_close(&t, again);
  tn_host_tokenizer_close(&t, tokenizer);
  assert_int_equal(t.live, 0);
}

static void texts_without_characters_or_with_too_many_are_refused(void **state) {
  (void)state;
  test_env t;
  tn_tokenizer *tokenizer;
  test_env_start(&t);
  assert_int_equal(tn_host_tokenizer_of_characters(&t, "novel.txt", "a\xFFz", 3, 100, &tokenizer), TN_EINVAL);
  assert_string_equal(tn_error_text(&t), "novel.txt: byte 1 is not UTF-8; use bytes as tokens");
  assert_int_equal(tn_host_tokenizer_of_characters(&t, "novel.txt", "abc", 3, 2, &tokenizer), TN_EINVAL);
  assert_string_equal(tn_error_text(&t),
                      "novel.txt: has 3 different characters, expected at most 2; use bytes as tokens");
  assert_int_equal(t.live, 0);
}

static void the_longest_piece_is_taken(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_tokenizer *tokenizer =
      open_text(&t, "{\"model\":{\"type\":\"Pieces\",\"pieces\":[\"a\",\"ab\",\"b\"]}}");
  ids_are(&t, tokenizer, "aabb", 4, IDS(0, 1, 2));
  tn_host_tokenizer_close(&t, tokenizer);
}

/* ---- streams ---- */

static void half_a_character_is_held_back(void **state) {
  (void)state;
  test_env t;
  tn_token_stream *stream;
  const char *text;
  size_t n;
  test_env_start(&t);
  tn_tokenizer *tokenizer = open_text(&t, "{" BYTE_LEVEL "}");
  ids_are(&t, tokenizer,
          "\xC3\xA9"
          "aaa",
          5, IDS(0, 1, 3, 2));
  assert_int_equal(tn_host_token_stream_open(&t, tokenizer, 0, &stream), TN_OK);
  assert_int_equal(tn_host_token_stream_next(&t, stream, 0, &text, &n), TN_OK);
  assert_int_equal(n, 0);
  assert_int_equal(tn_host_token_stream_next(&t, stream, 1, &text, &n), TN_OK);
  assert_int_equal(n, 2);
  assert_memory_equal(text, "\xC3\xA9", 2);
  assert_int_equal(tn_host_token_stream_next(&t, stream, 9, &text, &n), TN_EINVAL);
  assert_string_equal(tn_error_text(&t), "t.json: has no token 9, expected 0 .. 3");
  assert_int_equal(tn_host_token_stream_next(&t, stream, 0, &text, &n), TN_OK);
  assert_int_equal(tn_host_token_stream_end(&t, stream, &text, &n), TN_OK);
  assert_int_equal(n, 3);
  assert_memory_equal(text, "\xEF\xBF\xBD", 3);
  tn_host_token_stream_close(&t, stream);
  tn_host_tokenizer_close(&t, tokenizer);
  assert_int_equal(t.live, 0);
}

/* ---- files that are refused ---- */

static void what_is_wrong_is_named_with_its_place(void **state) {
  (void)state;
  refuses("{\"model\":", TN_EINVAL, "t.json:1: is no JSON: ");
  refuses("[1]", TN_EINVAL, "t.json: model: is no model: the file is no tokenizer.json");
  refuses("{\"model\":{\"type\":\"Magic\"}}", TN_EUNSUPPORTED,
          "t.json: model.type: \"Magic\" is not supported");
  refuses("{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Nmt\"}]}," MODEL "}",
          TN_EUNSUPPORTED, "t.json: normalizer.normalizers[0].type: \"Nmt\" is not supported");
  refuses("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}}", TN_EINVAL,
          "t.json: model.merges[0]: \"aa\" is not in the vocabulary");
  refuses("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a\"]}}", TN_EINVAL,
          "t.json: model.merges[0]: is no merge, expected two tokens");
  refuses("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}", TN_EINVAL,
          "t.json: model.vocab: \"a\" and \"b\" have the same id, 0");
  refuses("{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":4194304}}}", TN_EINVAL,
          "t.json: model.vocab: \"a\" has no id, expected 0 .. 4194303");
  refuses("{\"added_tokens\":[{\"id\":1,\"content\":\"x\"}]," MODEL "}", TN_EINVAL,
          "t.json: added_tokens[0]: \"x\" and \"b\" have the same id, 1");
  refuses("{\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":\"WordPiece\"}]}"
          "," MODEL "}",
          TN_EUNSUPPORTED, "t.json: decoder.decoders[1]: is not supported behind Fuse");
  refuses("{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]}," MODEL "}", TN_EUNSUPPORTED,
          "t.json: post_processor.single: has the text 0 times");
}

/* ---- models of SentencePiece ---- */

/* A piece of at most 100 bytes with a score of 0. */
#define PIECE(bytes, text_bytes, text, type) "\n" bytes "\n" text_bytes text "\x15\0\0\0\0\x18" type
#define UNKNOWN                              PIECE("\x0e", "\x05", "<unk>", "\x02")
#define LETTER(c)                            PIECE("\x0a", "\x01", c, "\x01")

static tn_status open_model(test_env *t, const void *bytes, size_t n, tn_tokenizer **tokenizer) {
  char path[] = "/tmp/tokenizer_test_XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0 && write(file, bytes, n) == (ssize_t)n && close(file) == 0);
  tn_status status = tn_host_tokenizer_open(t, path, tokenizer);
  unlink(path);
  return status;
}

static void refuses_model(const void *bytes, size_t n, tn_status status, const char *message) {
  test_env t;
  tn_tokenizer *tokenizer;
  test_env_start(&t);
  assert_int_equal(open_model(&t, bytes, n, &tokenizer), status);
  assert_null(tokenizer);
  if (strstr(tn_error_text(&t), message) == NULL) fail_msg("\"%s\" lacks \"%s\"", tn_error_text(&t), message);
  assert_int_equal(t.live, 0);
}
#define REFUSES_MODEL(bytes, status, message) refuses_model(bytes, sizeof(bytes) - 1, status, message)

static void a_model_of_sentencepiece_is_told_by_its_first_bytes(void **state) {
  (void)state;
  static const char unigram[] = UNKNOWN LETTER("a") LETTER("b");
  test_env t;
  tn_tokenizer *tokenizer;
  test_env_start(&t);
  assert_int_equal(open_model(&t, unigram, sizeof unigram - 1, &tokenizer), TN_OK);
  ids_are(&t, tokenizer, "abca", 4, IDS(0, 1, 2, 0, 1)); /* U+2581 is unknown, too */
  tn_host_tokenizer_close(&t, tokenizer);
  static const char json[] = "\n \n{\"model\":{\"type\":\"Bytes\"}}";
  assert_int_equal(open_model(&t, json, sizeof json - 1, &tokenizer), TN_OK);
  tn_host_tokenizer_close(&t, tokenizer);
  assert_int_equal(t.live, 0);
}

static void models_that_are_damaged_or_of_other_kinds_are_refused(void **state) {
  (void)state;
  static const char sound[] = UNKNOWN LETTER("a");
  for (size_t n = 1; n < 16; n++)
    if (n != sizeof UNKNOWN - 1)
      refuses_model(sound, n, TN_EINVAL, "is neither a tokenizer.json nor a sound model");
  REFUSES_MODEL(LETTER("a"), TN_EINVAL, "model.pieces: have none for unknown text");
  REFUSES_MODEL(UNKNOWN UNKNOWN, TN_EINVAL, "model.pieces[1]: is a second piece for unknown text");
  REFUSES_MODEL(UNKNOWN LETTER("\xff"), TN_EINVAL, "is neither a tokenizer.json nor a sound model");
  REFUSES_MODEL(UNKNOWN "\x0a\x04\x0a\x01"
                        "a\x80",
                TN_EINVAL, "is neither a tokenizer.json nor a sound model");
  REFUSES_MODEL(UNKNOWN PIECE("\x0a", "\x01", "a", "\x05"), TN_EUNSUPPORTED,
                "model.pieces[1]: pieces that are not used are not supported");
  REFUSES_MODEL(UNKNOWN PIECE("\x09", "\x00", "", "\x01"), TN_EINVAL, "model.pieces[1]: is empty");
  REFUSES_MODEL(UNKNOWN "\x12\x02\x18\x03", TN_EUNSUPPORTED,
                "has a model of whole words, which is not supported");
  REFUSES_MODEL(UNKNOWN "\x12\x02\x18\x09", TN_EUNSUPPORTED, "has a model of another kind");
  REFUSES_MODEL(UNKNOWN "\x12\x03\xc0\x01\x01", TN_EUNSUPPORTED, "has white space at the end of words");
  REFUSES_MODEL(UNKNOWN "\x2a\x03\x12\x01x", TN_EUNSUPPORTED, "has a normalizer of decoded texts");
  REFUSES_MODEL(UNKNOWN "\x1a\x03\x12\x01x", TN_EINVAL, "precompiled_charsmap: is no table of normal forms");
  REFUSES_MODEL(UNKNOWN PIECE("\x0b", "\x02", "ab", "\x01") "\x12\x02\x18\x02", TN_EUNSUPPORTED,
                "\"ab\" has a character that is no piece");
}

#ifdef TN_HAVE_PCRE2
static void patterns_that_pcre2_refuses_are_named(void **state) {
  (void)state;
  refuses("{\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"(a\"}}"
          "," MODEL "}",
          TN_EINVAL, "t.json: pre_tokenizer.pattern.Regex: \"(a\" is no pattern of PCRE2: ");
}

/* Each a doubles the ways in which the pattern can fail. */
static void a_pattern_that_tries_too_much_fails(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_tokenizer *tokenizer =
      open_text(&t, "{\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":"
                    "{\"Regex\":\"(a+)+(?<x>c)\\\\k<x>\"}}," MODEL "}");
  encoding_fails(&t, tokenizer, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaacb",
                 "the splitting pattern fails at byte 0 of a text of 52 bytes: match limit exceeded");
  tn_host_tokenizer_close(&t, tokenizer);
}
#endif

static void texts_that_are_no_utf8_are_refused(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_tokenizer *tokenizer = open_text(&t, "{" MODEL "}");
  encoding_fails(&t, tokenizer, "ab\xC3(",
                 "byte 2 of the text is not UTF-8; convert the text (iconv -t UTF-8)");
  tn_host_tokenizer_close(&t, tokenizer);
}

static void an_unknown_token_that_is_missing_is_named_when_it_is_needed(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_tokenizer *tokenizer =
      open_text(&t, "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"u\",\"vocab\":{\"a\":0}}}");
  ids_are(&t, tokenizer, "a", 1, IDS(0));
  encoding_fails(&t, tokenizer, "b",
                 "t.json: model.unk_token is not in the vocabulary, and the text needs it");
  tn_host_tokenizer_close(&t, tokenizer);
}

/* ---- long words, threads, memory ---- */

/* A heap merges words of more than 32 symbols: the lowest rank first, the leftmost of equals. */
static void long_words_are_merged_as_short_ones(void **state) {
  (void)state;
  test_env t;
  char text[512];
  int32_t expected[256];
  test_env_start(&t);
  tn_tokenizer *tokenizer =
      open_text(&t, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"aa\":1,\"aaaa\":2},"
                    "\"merges\":[\"a a\",\"aa aa\"]}}");
  memset(text, 'a', sizeof text);
  for (size_t n = 28; n < 512; n += 37) {
    size_t ids = n / 4;
    for (size_t i = 0; i < ids; i++) expected[i] = 2;
    if ((n & 2) != 0) expected[ids++] = 1;
    if ((n & 1) != 0) expected[ids++] = 0;
    ids_are(&t, tokenizer, text, n, expected, ids);
  }
  tn_host_tokenizer_close(&t, tokenizer);
}

static void *encode_often(void *arg) {
  test_env t;
  test_env_start(&t);
  for (int i = 0; i < 200; i++)
    ids_are(&t, arg,
            "\xC3\xA9"
            "aaa",
            5, IDS(0, 1, 3, 2));
  return t.live == 0 ? arg : NULL;
}

static void threads_share_a_tokenizer(void **state) {
  (void)state;
  tn_env env;
  tn_error_record record;
  pthread_t threads[4];
  void *result;
  tn_error_record_init_root(&env, &record, NULL); /* the allocator of a test_env is for one thread */
  tn_tokenizer *tokenizer = open_text(&env, "{" BYTE_LEVEL "}");
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, encode_often, tokenizer), 0);
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], &result);
    assert_ptr_equal(result, tokenizer);
  }
  tn_host_tokenizer_close(&env, tokenizer);
}

/* Ids of many texts are those of each, on any number of threads. */
static void texts_are_encoded_on_several_threads(void **state) {
  (void)state;
  enum { TEXTS = 3000, BYTES = 300 };
  static char bytes[TEXTS][BYTES];
  static tn_token_text texts[TEXTS];
  static size_t ends[TEXTS];
  tn_env env;
  tn_error_record record;
  tn_error_record_init_root(&env, &record, NULL);
  tn_tokenizer *tokenizer = open_text(&env, "{" MODEL "}");
  for (size_t i = 0; i < TEXTS; i++) {
    for (size_t k = 0; k < BYTES; k++) bytes[i][k] = "ab"[(i * 7 + k * k) % 3 % 2];
    texts[i] = (tn_token_text){bytes[i], i % BYTES};
  }
  for (int32_t threads = 1; threads < 4; threads += 2) {
    tn_token_ids ids = {0};
    assert_int_equal(tn_host_tokenizer_encode_all(&env, tokenizer, texts, TEXTS, 0, threads, &ids, ends),
                     TN_OK);
    assert_int_equal(ids.n, ends[TEXTS - 1]);
    for (size_t i = 0; i < TEXTS; i += 97) {
      size_t start = i > 0 ? ends[i - 1] : 0;
      ids_are(&env, tokenizer, texts[i].text, texts[i].bytes, ids.v + start, ends[i] - start);
    }
    tn_release(&env, ids.v);
  }
  tn_token_ids none = {0};
  texts[1234].text = texts[2345].text = "\xff\xff";
  texts[1234].bytes = texts[2345].bytes = 2;
  assert_int_equal(tn_host_tokenizer_encode_all(&env, tokenizer, texts, TEXTS, 0, 3, &none, ends), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(&env), "text 1235: byte 0 of the text is not UTF-8"));
  tn_release(&env, none.v);
  tn_host_tokenizer_close(&env, tokenizer);
}

static tn_status work(test_env *t, void *context) {
  const char *json = context;
  tn_tokenizer *tokenizer;
  tn_token_ids ids = {0};
  char *text = NULL;
  size_t n;
  tn_status status = tn_host_tokenizer_open_text(t, "t.json", json, strlen(json), &tokenizer);
  if (status == TN_OK)
    status = tn_host_tokenizer_encode(t, tokenizer,
                                      "\xC3\xA9"
                                      "aaa",
                                      5, 0, &ids);
  if (status == TN_OK) status = tn_host_tokenizer_decode(t, tokenizer, ids.v, ids.n, 0, &text, &n);
  tn_release(t, text);
  tn_release(t, ids.v);
  tn_host_tokenizer_close(t, tokenizer);
  return status;
}

static void memory_may_run_out_at_any_place(void **state) {
  (void)state;
  assert_true(test_env_starve(work, "{" BYTE_LEVEL "}") > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_are_tokens),
      cmocka_unit_test(characters_are_numbered_in_the_order_of_their_code_points),
      cmocka_unit_test(texts_without_characters_or_with_too_many_are_refused),
      cmocka_unit_test(the_longest_piece_is_taken),
      cmocka_unit_test(half_a_character_is_held_back),
      cmocka_unit_test(what_is_wrong_is_named_with_its_place),
      cmocka_unit_test(a_model_of_sentencepiece_is_told_by_its_first_bytes),
      cmocka_unit_test(models_that_are_damaged_or_of_other_kinds_are_refused),
#ifdef TN_HAVE_PCRE2
      cmocka_unit_test(patterns_that_pcre2_refuses_are_named),
      cmocka_unit_test(a_pattern_that_tries_too_much_fails),
#endif
      cmocka_unit_test(texts_that_are_no_utf8_are_refused),
      cmocka_unit_test(an_unknown_token_that_is_missing_is_named_when_it_is_needed),
      cmocka_unit_test(long_words_are_merged_as_short_ones),
      cmocka_unit_test(threads_share_a_tokenizer),
      cmocka_unit_test(texts_are_encoded_on_several_threads),
      cmocka_unit_test(memory_may_run_out_at_any_place),
  };
  return cmocka_run_group_tests_name("tokenizer", tests, NULL, NULL);
}
