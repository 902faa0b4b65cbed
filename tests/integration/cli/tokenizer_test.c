/* `tenon tokenize`, and models of tokens: the tokenizer travels with the weights. */
#include "program.h"

#define GPT2 TOKENIZERS "/gpt2.json"

static void texts_become_ids_and_tokens(void **state) {
  (void)state;
  file_write("a.txt", "ab<|endoftext|>ab");
  assert_int_equal(program_run("tokenize a.txt --tokenizer bytes --separator b<|endoftext|>a"), 0);
  assert_string_equal(program_out, "97\n98\n");
  assert_non_null(strstr(program_err, "2 documents, 2 bytes, 2 tokens, 1.00 bytes each"));
  assert_int_equal(program_run("tokenize a.txt --tokenizer " GPT2 " --pieces"), 0);
  assert_string_equal(program_out, "\"a\" \"b\" \"<|endoftext|>\" \"a\" \"b\"\n");
  const json_t *r = program_json(0, "tokenize a.txt a.txt --tokenizer " GPT2);
  assert_int_equal(program_number(r, "documents"), 2);
  assert_int_equal(program_number(r, "tokens"), 10);
  assert_int_equal(program_number(r, "bytes"), 34);
}

static void lines_of_json_become_a_file_of_tokens(void **state) {
  (void)state;
  static const uint16_t expected[] = {'a', '\n', 'b', 'x', 0xc3, 0xa9, 'x'};
  size_t n;
  file_write("a.jsonl", "{\"id\": 1, \"t\": \"a\\nb\"}\n\n{\"t\": \"\\u00e9\"}\r\n");
  assert_int_equal(program_run("tokenize a.jsonl --tokenizer bytes --field t --end x --output a.bin"), 0);
  assert_non_null(strstr(program_out, "2 documents, 5 bytes, 7 tokens of u16"));
  const char *bytes = file_read("a.bin", &n);
  assert_int_equal(n, sizeof expected);
  assert_memory_equal(bytes, expected, n);
  assert_false(file_exists("a.bin.part"));
}

static void mistakes_are_told(void **state) {
  (void)state;
  static const struct {
    const char *arguments, *message;
    int code;
  } wrong[] = {
      {"a.jsonl", "expected --tokenizer FILE.json, or --tokenizer bytes", 2},
      {"a.jsonl --tokenizer bytes --field t --separator x", "not both", 2},
      {"a.jsonl --tokenizer bytes --field t", "a.jsonl:2: has no text 't' (--field)", 65},
      {"b.jsonl --tokenizer bytes --field t", "b.jsonl:1: is no JSON: ", 65},
      {"none --tokenizer bytes", "none: cannot be read: No such file", 74},
      {". --tokenizer bytes", ".: cannot be read: it is no regular file", 74},
      {"a.jsonl --tokenizer b.jsonl", "b.jsonl:2: is no JSON", 65},
      {"a.jsonl --tokenizer bytes --end long", "bytes has no token 'long' (--end)", 2},
      {"wrong.txt --tokenizer " GPT2, "byte 1 of the text is not UTF-8", 65},
      {"a.jsonl --tokenizer bytes --output none/x", "none/x.part: cannot be made: No such file", 74},
  };
  file_write("a.jsonl", "{\"t\": \"a\"}\n{\"u\": \"a\"}\n");
  file_write("b.jsonl", "{\"t\": \n");
  file_write("wrong.txt", "a\xff");
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    program_expect(program_run("tokenize %s", wrong[i].arguments), wrong[i].code);
    if (strstr(program_err, wrong[i].message) == NULL)
      fail_msg("'%s' lacks '%s'", program_err, wrong[i].message);
  }
}

static const char model_ini[] =
    "[run]\nname = tokens\nmax_steps = 2\n[data]\nsource = text\nfile = text.txt\ntokens = 8\nbatch = 4\n"
    "tokenizer = tokenizer.json\n[model]\ninputs = tokens: i32[8]\ntargets = next: i32[8]\nlayers =\n"
    "    wte: embedding(448, 16)\n    head: linear(448)\nloss = cross_entropy\n[optimizer]\ntype = adamw\nlr "
    "= 1e-3\n";

static void write_data(void) {
  size_t n;
  static char text[40 * 64 + 1];
  for (int i = 0; i < 64; i++)
    memcpy(text + i * 40,
           "Stra\xc3\x9f"
           "e, na\xc3\xafve caf\xc3\xa9: the quick fox 12\n  ",
           40);
  file_write("text.txt", text);
  const char *json = file_read(GPT2, &n);
  file_write_bytes("tokenizer.json", json, n);
  file_write("text.ini", model_ini);
}

static void a_tokenizer_that_is_missing_is_told(void **state) {
  (void)state;
  write_data();
  program_expect(program_run("train text.ini --set data.tokenizer=none.json"), 74);
  assert_non_null(strstr(program_err, "none.json: cannot be opened"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(texts_become_ids_and_tokens),
      CASE(lines_of_json_become_a_file_of_tokens),
      CASE(mistakes_are_told),
      CASE(a_tokenizer_that_is_missing_is_told),
  };
  return cmocka_run_group_tests_name("cli: tokenizer", tests, NULL, NULL);
}
