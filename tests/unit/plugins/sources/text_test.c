#include "tests/unit/plugins/sources/probe.h"

extern const tn_source text_source;

static char *folder;
static const char *path;

static int start(void **state) {
  (void)state;
  folder = make_folder();
  return 0;
}

static int stop(void **state) {
  (void)state;
  remove_folder(folder);
  return 0;
}

static void put(const char *text, size_t count) {
  path = in_folder(folder, "text.txt");
  write_file(path, text, count);
}

static void characters_are_numbered_in_order(void **state) {
  (void)state;
  probe p;
  put("banana \xC3\xA9!", 10);
  assert_int_equal(
      probe_open(&p, &text_source, PAIRS("file", path, "tokens", "8", "split", "0"), TN_SPLIT_TRAIN), TN_OK);
  assert_int_equal(p.description.count, 1);
  assert_int_equal(p.description.fields[1].classes, 6);
  assert_string_equal(p.description.fields[1].class_names[0], " ");
  assert_string_equal(p.description.fields[1].class_names[5], "\xC3\xA9");
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  static const int32_t tokens[] = {3, 2, 4, 2, 4, 2, 0, 5}, next[] = {2, 4, 2, 4, 2, 0, 5, 1};
  assert_memory_equal(p.value[0], tokens, sizeof(tokens));
  assert_memory_equal(p.value[1], next, sizeof(next));
  probe_close(&p);
}

static void bytes_are_their_own_numbers(void **state) {
  (void)state;
  probe p;
  put("\xFF\x00\x80z", 4);
  const char *const *options = PAIRS("file", path, "tokens", "3", "split", "0", "tokenizer", "bytes");
  assert_int_equal(probe_open(&p, &text_source, options, TN_SPLIT_TRAIN), TN_OK);
  assert_int_equal(p.description.fields[1].classes, 256);
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  static const int32_t next[] = {0, 128, 'z'};
  assert_memory_equal(p.value[1], next, sizeof(next));
  probe_close(&p);
}

static void windows_follow_each_other_or_overlap(void **state) {
  (void)state;
  probe p;
  put("abcdefghij", 10);
  assert_int_equal(
      probe_open(&p, &text_source, PAIRS("file", path, "tokens", "3", "split", "0"), TN_SPLIT_TRAIN), TN_OK);
  assert_int_equal(p.description.count, 3); /* abc def ghi; j is the target after i */
  assert_int_equal(probe_read(&p, 2, 0), TN_OK);
  assert_int_equal(((int32_t *)p.value[0])[0], 6);
  assert_int_equal(((int32_t *)p.value[1])[2], 9);
  probe_close(&p);
  assert_int_equal(probe_open(&p, &text_source,
                              PAIRS("file", path, "tokens", "3", "split", "0", "stride", "1"),
                              TN_SPLIT_TRAIN),
                   TN_OK);
  assert_int_equal(p.description.count, 7);
  assert_int_equal(probe_read(&p, 6, 0), TN_OK);
  assert_int_equal(((int32_t *)p.value[1])[2], 9);
  probe_close(&p);
}

static void validation_is_the_rest_of_the_text(void **state) {
  (void)state;
  probe p;
  put("abcdefghij", 10);
  const char *const *options = PAIRS("file", path, "tokens", "2", "split", "0.4");
  assert_int_equal(probe_open(&p, &text_source, options, TN_SPLIT_TRAIN), TN_OK);
  assert_int_equal(p.description.count, 2);
  probe_close(&p);
  assert_int_equal(probe_open(&p, &text_source, options, TN_SPLIT_VALID), TN_OK);
  assert_int_equal(p.description.count, 1);
  assert_int_equal(p.description.fields[1].classes, 10); /* of the whole text */
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  assert_int_equal(((int32_t *)p.value[0])[0], 6);
  probe_close(&p);
  probe_refused(&text_source, PAIRS("file", path, "tokens", "2", "split", "0"), TN_SPLIT_VALID,
                TN_EUNAVAILABLE, "is for training");
  probe_refused(
      &text_source, PAIRS("file", path, "tokens", "2", "split", "0.6"), TN_SPLIT_TRAIN, TN_EINVAL,
      "split = 0.6: the part of the text that is for validation, expected at most 0.5; to train on 0.6 "
      "of the text, set split = 0.4");
}

/* Each part has whole lines, and no names: a vocabulary is large. */
static void a_tokenizer_encodes_each_part(void **state) {
  (void)state;
  static const char json[] = "{\"model\":{\"type\":\"Pieces\",\"pieces\":[\"ab\",\"\\n\",\"c\",\"a\"]}}";
  static const int32_t first[] = {0, 2, 1}, rest[] = {2, 3, 1};
  probe p;
  const char *tokenizer = in_folder(folder, "t.json");
  write_file(tokenizer, json, sizeof json - 1);
  put("abc\nab\nca\nca\n", 13);
  const char *const *options = PAIRS("file", path, "tokens", "3", "split", "0.5", "tokenizer", tokenizer);
  assert_int_equal(probe_open(&p, &text_source, options, TN_SPLIT_TRAIN), TN_OK);
  assert_int_equal(p.description.fields[1].classes, 4);
  assert_null(p.description.fields[1].class_names);
  assert_int_equal(p.description.count, 1);
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  assert_memory_equal(p.value[0], first, sizeof first);
  probe_close(&p);
  assert_int_equal(probe_open(&p, &text_source, options, TN_SPLIT_VALID), TN_OK);
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  assert_memory_equal(p.value[0], rest, sizeof rest);
  probe_close(&p);
  put("abx", 3);
  probe_refused(&text_source, PAIRS("file", path, "tokens", "1", "split", "0", "tokenizer", tokenizer),
                TN_SPLIT_TRAIN, TN_EINVAL, "the text has 'x' at byte 2");
  probe_refused(&text_source, PAIRS("file", path, "tokenizer", in_folder(folder, "none.json")),
                TN_SPLIT_TRAIN, TN_EIO, "none.json: cannot be opened");
}

static void a_text_that_is_too_short_is_refused(void **state) {
  (void)state;
  put("abc", 3);
  probe_refused(&text_source, PAIRS("file", path, "tokens", "3", "split", "0"), TN_SPLIT_TRAIN, TN_EINVAL,
                "has 3 tokens, expected more than 3");
  put("", 0);
  probe_refused(&text_source, PAIRS("file", path), TN_SPLIT_TRAIN, TN_EINVAL, "has 0 tokens");
}

static void invalid_utf_8_is_an_error_with_its_position(void **state) {
  (void)state;
  static const char *const wrong[] = {"ab\xFFzzz",         "ab\xC0\x80z",        "ab\xED\xA0\x80",
                                      "ab\xE2\x82",        "ab\xF5\x80\x80\x80", "ab\xE0\x80\x80",
                                      "ab\xF4\x90\x80\x80"};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
    put(wrong[i], strlen(wrong[i]));
    probe_refused(&text_source, PAIRS("file", path), TN_SPLIT_TRAIN, TN_EINVAL,
                  "text.txt: byte 2 is not UTF-8");
  }
}

static void a_missing_file_is_named(void **state) {
  (void)state;
  probe_refused(&text_source, PAIRS("file", in_folder(folder, "none.txt")), TN_SPLIT_TRAIN, TN_EIO,
                "none.txt: cannot open");
  probe_refused(&text_source, PAIRS("file", folder), TN_SPLIT_TRAIN, TN_EINVAL,
                "is not a file of data but a folder");
}

static void refused_memory_is_survived(void **state) {
  (void)state;
  put("some letters", 12);
  probe_starve(&text_source, PAIRS("file", path, "tokens", "3"));
  probe_starve(&text_source, PAIRS("file", path, "tokens", "3", "tokenizer", "bytes"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(characters_are_numbered_in_order),
      CASE(bytes_are_their_own_numbers),
      CASE(windows_follow_each_other_or_overlap),
      CASE(validation_is_the_rest_of_the_text),
      CASE(a_tokenizer_encodes_each_part),
      CASE(a_text_that_is_too_short_is_refused),
      CASE(invalid_utf_8_is_an_error_with_its_position),
      CASE(a_missing_file_is_named),
      CASE(refused_memory_is_survived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
