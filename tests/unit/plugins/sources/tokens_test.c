#include "tests/unit/plugins/sources/probe.h"

extern const tn_source tokens_source;

/* The tokens of the files of make_files.py. */
static const int32_t text[] = {0, 5, 6, 7, 0, 8, 9, 0, 0, 3, 4, 5, 6, 7, 8, 9, 11};
enum { N = sizeof text / sizeof *text };

static char *folder; /* for files that a test writes */

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

#define IN_FILES(...) PAIRS("folder", FILES, __VA_ARGS__)

static void open_or_fail(probe *p, const char *const *pairs, int32_t split, int64_t count) {
  if (probe_open(p, &tokens_source, pairs, split) != TN_OK) fail_msg("%s", probe_error(p));
  assert_int_equal(p->description.count, count);
}

/* Window i has n tokens of the text from `first` on, and targets; then `fill` and -100. */
static void check_window(probe *p, int64_t i, int first, int n, int length, int32_t fill) {
  assert_int_equal(probe_read(p, i, 0), TN_OK);
  const int32_t *tokens = p->value[0], *next = p->value[1];
  assert_memory_equal(tokens, text + first, (size_t)n * sizeof *text);
  assert_memory_equal(next, text + first + 1, (size_t)n * sizeof *text);
  for (int k = n; k < length; k++) assert_true(tokens[k] == fill && next[k] == -100);
}

static void files_of_all_kinds_have_their_tokens(void **state) {
  (void)state;
  static const char *const files[] = {"plain.bin", "gpt2.bin", "llama3.bin", "tokens.npy"};
  for (int i = 0; i < 4; i++) {
    probe p;
    open_or_fail(&p, IN_FILES("files", files[i], "tokens", "4"), TN_SPLIT_TRAIN, 4);
    assert_int_equal(p.description.fields[1].classes, 12);
    for (int k = 0; k < 4; k++) check_window(&p, k, 4 * k, 4, 4, 0);
    probe_close(&p);
    open_or_fail(&p, IN_FILES("files", files[i], "tokens", "4", "stride", "3", "classes", "50"),
                 TN_SPLIT_TRAIN, 5);
    assert_int_equal(p.description.fields[1].classes, 50);
    check_window(&p, 4, 12, 4, 4, 0);
    probe_close(&p);
  }
  static const uint32_t wide[] = {70000, 1, 70000};
  probe p;
  write_file(in_folder(folder, "wide"), wide, sizeof wide);
  open_or_fail(&p, PAIRS("folder", folder, "files", "wide", "type", "u32", "tokens", "2"), TN_SPLIT_TRAIN, 1);
  assert_int_equal(p.description.fields[1].classes, 70001);
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  assert_int_equal(((int32_t *)p.value[1])[1], 70000);
  probe_close(&p);
}

static void shards_follow_each_other(void **state) {
  (void)state;
  probe p;
  char name[128];
  open_or_fail(&p, IN_FILES("files", "{gpt2,plain}.bin,\n  tok*.npy ", "tokens", "8"), TN_SPLIT_TRAIN, 6);
  for (int k = 0; k < 6; k++) check_window(&p, k, 8 * (k % 2), 8, 8, 0);
  assert_int_equal(tokens_source.name(&p.host.pub.env, p.self, 3, name, sizeof name), TN_OK);
  assert_non_null(strstr(name, "plain.bin, token 8"));
  probe_close(&p);
}

/* Two files of 17 tokens: the last 17 of 34 are for validation, or the last 12. */
static void validation_is_the_end(void **state) {
  (void)state;
  probe p;
  const char *const *half = IN_FILES("files", "*n.bin, gpt*.bin", "tokens", "4", "split", "0.5");
  for (int part = 0; part < 2; part++) {
    open_or_fail(&p, half, part, 4);
    check_window(&p, 3, 12, 4, 4, 0);
    probe_close(&p);
  }
  const char *const *less = IN_FILES("files", "plain.bin, gpt2.bin", "tokens", "4", "split", "0.36");
  open_or_fail(&p, less, TN_SPLIT_TRAIN, 5); /* 17 and 5 tokens */
  check_window(&p, 4, 0, 4, 4, 0);
  probe_close(&p);
  open_or_fail(&p, less, TN_SPLIT_VALID, 2); /* 12 tokens */
  check_window(&p, 0, 5, 4, 4, 0);
  probe_close(&p);
  open_or_fail(&p, IN_FILES("files", "plain.bin", "valid", "gpt2.bin", "tokens", "16"), TN_SPLIT_VALID, 1);
  probe_close(&p);
  probe_refused(&tokens_source, IN_FILES("files", "plain.bin"), TN_SPLIT_VALID, TN_EUNAVAILABLE,
                "no tokens are for validation; set split = 0.1");
}

/* Documents 0 5 6 7, 0 8 9, 0, and 0 3 4 5 6 7 8 9 (11 is the last target). */
static void windows_end_with_their_document(void **state) {
  (void)state;
  probe p;
  open_or_fail(&p, IN_FILES("files", "plain.bin", "tokens", "3", "document", "0"), TN_SPLIT_TRAIN, 7);
  static const int windows[][2] = {{0, 3}, {3, 1}, {4, 3}, {7, 1}, {8, 3}, {11, 3}, {14, 2}};
  for (int i = 0; i < 7; i++) check_window(&p, i, windows[i][0], windows[i][1], 3, 0);
  probe_close(&p);
  open_or_fail(&p, IN_FILES("files", "plain.bin", "tokens", "3", "document", "0", "stride", "2"),
               TN_SPLIT_TRAIN, 8);
  check_window(&p, 1, 2, 2, 3, 0);
  check_window(&p, 7, 14, 2, 3, 0);
  probe_close(&p);
}

static void targets_behind_a_document_may_be_masked(void **state) {
  (void)state;
  probe p;
  const char *const *options =
      IN_FILES("files", "plain.bin", "tokens", "8", "document", "0", "crossing", "mask");
  open_or_fail(&p, options, TN_SPLIT_TRAIN, 2);
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  static const int32_t masked[] = {5, 6, 7, 0, -100, -100, -100, -100};
  assert_memory_equal(p.value[0], text, 8 * sizeof *text);
  assert_memory_equal(p.value[1], masked, sizeof masked);
  check_window(&p, 1, 8, 8, 8, 0); /* begins with a document */
  probe_close(&p);
  open_or_fail(&p, IN_FILES("files", "plain.bin", "tokens", "8", "document", "0", "crossing", "yes"),
               TN_SPLIT_TRAIN, 2);
  check_window(&p, 0, 0, 8, 8, 0);
  probe_close(&p);
}

#define REFUSED(text, ...)                                                                                   \
  probe_refused(&tokens_source, IN_FILES(__VA_ARGS__), TN_SPLIT_TRAIN, TN_EINVAL, text)

static void mistakes_are_told(void **state) {
  (void)state;
  probe p;
  REFUSED("plain.bin: this part has 17 tokens, expected more than 17, the window", "files", "plain.bin",
          "tokens", "17");
  REFUSED("files names no file", "files", " , ");
  probe_refused(&tokens_source, PAIRS("files", "plain.bin"), TN_SPLIT_TRAIN, TN_EINVAL,
                "plain.bin is relative, and folder is not set");
  REFUSED("plain.bin: has 34 bytes, expected a multiple of 4", "files", "plain.bin", "type", "u32");
  REFUSED("gpt2.bin: its header says tokens of 2 bytes, expected type = u16", "files", "gpt2.bin", "type",
          "u32");
  REFUSED("llama3.bin: has tokens of 4 bytes, but ", "files", "gpt2.bin, llama3.bin");
  REFUSED("x.npy: has 3 dimensions of f32, expected one of u16 or u32", "files", "x.npy");
  REFUSED("document = 12, but the 12 classes are tokens below it", "files", "plain.bin", "document", "12");
  REFUSED("split = 0.1 has no effect beside valid", "files", "plain.bin", "valid", "plain.bin", "split",
          "0.1");
  probe_refused(&tokens_source, IN_FILES("files", "none_*.bin"), TN_SPLIT_TRAIN, TN_EINVAL,
                "files: no file is called ");
  open_or_fail(&p, IN_FILES("files", "plain.bin", "tokens", "4", "classes", "11"), TN_SPLIT_TRAIN, 4);
  assert_int_equal(probe_read(&p, 2, 0), TN_OK);
  assert_int_equal(probe_read(&p, 3, 0), TN_EINVAL);
  assert_string_equal(probe_error(&p), "window 3 has token 11, expected tokens below classes = 11");
  probe_close(&p);
}

static void damaged_headers_are_refused(void **state) {
  (void)state;
  static uint8_t bytes[2048];
  char path[1024];
  snprintf(path, sizeof path, "%s/gpt2.bin", FILES);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t n = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  write_file(in_folder(folder, "a"), bytes, n - 2);
  probe_refused(&tokens_source, PAIRS("folder", folder, "files", "a"), TN_SPLIT_TRAIN, TN_EINVAL,
                "a: has 32 bytes of tokens, but its header says 17 tokens of 2 bytes: it is cut off");
  bytes[8] = bytes[11] = 255;
  write_file(in_folder(folder, "b"), bytes, n);
  probe_refused(&tokens_source, PAIRS("folder", folder, "files", "b"), TN_SPLIT_TRAIN, TN_EINVAL,
                "b: has 34 bytes of tokens, but its header says 4278190335 tokens");
  bytes[4] = 2;
  write_file(in_folder(folder, "c"), bytes, n);
  probe_refused(&tokens_source, PAIRS("folder", folder, "files", "c"), TN_SPLIT_TRAIN, TN_EINVAL,
                "c: has magic 20240520 of llm.c and version 2, expected version 1");
  write_file(in_folder(folder, "d"), bytes, 0);
  probe_refused(&tokens_source, PAIRS("folder", folder, "files", "d"), TN_SPLIT_TRAIN, TN_EINVAL,
                "d: this part has 0 tokens");
}

static void refused_memory_is_survived(void **state) {
  (void)state;
  probe_starve(&tokens_source, IN_FILES("files", "plain.bin, gpt2.bin", "valid", "tokens.npy", "tokens", "3",
                                        "document", "0"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(files_of_all_kinds_have_their_tokens),
      CASE(shards_follow_each_other),
      CASE(validation_is_the_end),
      CASE(windows_end_with_their_document),
      CASE(targets_behind_a_document_may_be_masked),
      CASE(mistakes_are_told),
      CASE(damaged_headers_are_refused),
      CASE(refused_memory_is_survived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
