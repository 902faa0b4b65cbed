/* Files of GGUF: `tenon generate` draws the tokens that transformers draws from the same weights
 * (tests/golden/make_gguf.py), `tenon import` writes them as a configuration, weights and a tokenizer, and
 * parts that are not known are named. */
#include <stdlib.h>

#include "program.h"

static void says(const char *part) {
  if (strstr(program_err, part) == NULL) fail_msg("expected '%s', it said: %s", part, program_err);
}

static json_t *golden_of(const char *name) {
  char path[512];
  snprintf(path, sizeof path, GGUF "/%s.json", name);
  json_t *golden = json_load_file(path, 0, NULL);
  assert_non_null(golden);
  return golden;
}

/* Generates behind the golden's prompt by `model`, and compares tokens. */
static void check_tokens(const char *model, const char *name) {
  json_t *golden = golden_of(name);
  const json_t *ids = json_object_get(golden, "ids"), *expected = json_object_get(golden, "tokens");
  program_expect(program_run("generate %s --prompt %s --tokens 24 --temperature 0 --json", model,
                             program_text(golden, "prompt")),
                 0);
  json_t *result = json_loads(program_out, 0, NULL);
  assert_non_null(result);
  assert_int_equal((int)program_number(result, "prompt_tokens"), json_array_size(ids));
  if (!json_equal(json_object_get(result, "tokens"), expected))
    fail_msg("%s: other tokens: %s", model, program_out);
  json_decref(result);
  json_decref(golden);
}

static void tokens_are_those_of_the_reference(void **state) {
  (void)state;
  check_tokens(GGUF "/llama.gguf", "llama");
  check_tokens(GGUF "/qwen2.gguf", "qwen2");
}

static void check_ids(const char *file, const char *text, const char *ids) {
  file_write("t.txt", text);
  program_expect(program_run("tokenize t.txt --tokenizer " GGUF "/%s", file), 0);
  if (strncmp(program_out, ids, strlen(ids)) != 0) fail_msg("%s: '%s' is %s", file, text, program_out);
}

/* The pieces of make_gguf.py: words, letters, and bytes where there is no letter. */
static void a_tokenizer_may_be_gguf(void **state) {
  (void)state;
  check_ids("llama.gguf", "the on \u00e9", "264 272 259 198 172\n");
  check_ids("qwen2.gguf", "the time 12", "257 266 32 49 50\n");
}

static void a_file_becomes_a_configuration(void **state) {
  (void)state;
  const json_t *result = program_json(0, "import " GGUF "/llama.gguf");
  assert_string_equal(program_text(result, "configuration"), "llama.ini");
  assert_string_equal(program_text(result, "weights"), "llama.safetensors");
  assert_string_equal(program_text(result, "tokenizer"), "llama.tokenizer.json");
  assert_int_equal((int)program_number(result, "parameters"), 106816);
  check_tokens("llama.ini", "llama");
  result = program_json(0, "plan llama.ini");
  assert_int_equal((int)program_number(result, "parameters"), 106816);
  result = program_json(0, "import " GGUF "/qwen2.gguf --output q.ini");
  assert_int_equal((int)program_number(result, "tensors"), 26);
  check_tokens("q.ini", "qwen2");
  program_json(65, "import " GGUF "/llama.gguf");
  says("llama.ini: exists, and is not overwritten");
}

static void weights_of_a_configuration_may_be_gguf(void **state) {
  (void)state;
  program_json(0, "import " GGUF "/llama.gguf");
  const json_t *result =
      program_json(0, "train llama.ini --weights " GGUF
                      "/llama.gguf --set run.max_steps=2 --set run.epochs=1 --set run.output=runs "
                      "--set data.source=random --set data.tokens=64 --set data.classes=352 --set "
                      "data.samples=4 --set data.batch=2 "
                      "--set optimizer.type=sgd --set optimizer.lr=0.01");
  assert_int_equal((int)program_number(result, "steps"), 2);
}

/* A copy of llama.gguf in which the first `from` is replaced by a text of the same length. */
static void write_changed(const char *from, const char *to) {
  size_t n;
  const char *bytes = file_read(GGUF "/llama.gguf", &n);
  static char copy[1 << 20];
  assert_true(n < sizeof copy && strlen(from) == strlen(to));
  memcpy(copy, bytes, n);
  char *at = memmem(copy, n, from, strlen(from));
  assert_non_null(at);
  memcpy(at, to, strlen(to));
  file_write_bytes("x.gguf", (const unsigned char *)copy, n);
}

static void other_models_are_named(void **state) {
  (void)state;
  write_changed("llama.attention.head_count_kv", "llama.attention.head_count_kx");
  program_json(65, "generate x.gguf --prompt a");
  says("tensor 'blk.0.attn_k.weight' has another shape than its keys say, expected 64 x 64");
  write_changed("llama.block_count", "llama.block_coxnt");
  program_json(65, "import x.gguf");
  says("x.gguf: llama.block_count is 0, expected a whole number from 1");
  write_changed("blk.0.attn_q.weight", "blk.0.attn_x.weight");
  program_json(65, "import x.gguf");
  says("x.gguf: has no tensor 'blk.0.attn_q.weight'");
  write_changed("blk.1.ffn_up.weight", "blk.1.ffn_ux.weight");
  program_json(65, "generate x.gguf --prompt a");
  says("blk.1.ffn_ux.weight");
  write_changed("llama.rope.dimension_count", "llama.attention.key_length");
  program_json(0, "generate x.gguf --prompt a --tokens 1");
}

static void damaged_files_are_refused(void **state) {
  (void)state;
  file_write("x.gguf", "GGUF");
  program_json(65, "import x.gguf");
  says("x.gguf: it is cut off, expected a file of GGUF");
  file_write("x.gguf", "hello, this is a text");
  program_json(65, "generate x.gguf --prompt a");
  says("x.gguf: it does not begin with GGUF");
  program_json(74, "generate none.gguf --prompt a");
  assert_false(file_exists("x.ini"));
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, program_open, program_close)
  const struct CMUnitTest tests[] = {IN_FOLDER(tokens_are_those_of_the_reference),
                                     IN_FOLDER(a_file_becomes_a_configuration),
                                     IN_FOLDER(a_tokenizer_may_be_gguf),
                                     IN_FOLDER(weights_of_a_configuration_may_be_gguf),
                                     IN_FOLDER(other_models_are_named),
                                     IN_FOLDER(damaged_files_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
