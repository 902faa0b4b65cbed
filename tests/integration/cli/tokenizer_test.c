/* `tenon tokenize`, and models of tokens: the tokenizer travels with the weights. */
#include "program.h"

#include <unistd.h>

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

#define MODEL(DATA, CLASSES)                                                                                 \
  "[run]\nname = tokens\nmax_steps = 2\n[data]\n" DATA "tokens = 8\nbatch = 4\ntokenizer = tokenizer.json\n" \
  "[model]\ninputs = tokens: i32[8]\ntargets = next: i32[8]\nlayers =\n    wte: embedding(" CLASSES          \
  ", 16)\n"                                                                                                  \
  "    head: linear(" CLASSES ")\nloss = cross_entropy\n[optimizer]\ntype = adamw\nlr = 1e-3\n"

static void write_data(void) {
  static const char line[] = "Stra\xc3\x9f"
                             "e, na\xc3\xafve caf\xc3\xa9: the quick fox 12\n";
  enum { LINE = sizeof line - 1, LINES = 64 };
  static char text[LINES * LINE + 1];
  size_t n;
  for (int i = 0; i < LINES; i++) memcpy(text + i * LINE, line, LINE);
  file_write("text.txt", text);
  const char *json = file_read(GPT2, &n);
  file_write_bytes("tokenizer.json", json, n);
  file_write("text.ini", MODEL("source = text\nfile = text.txt\n", "448"));
  file_write("tokens.ini", MODEL("source = tokens\nfolder = .\nfiles = text.bin\nsplit = 0.2\n", "448"));
}

/* An untrained model draws any tokens, also halves of characters. */
static void the_tokenizer_travels_with_the_weights(void **state) {
  (void)state;
  write_data();
  program_expect(program_run("train text.ini"), 0);
  unlink("text.txt");
  unlink("tokenizer.json");
  const json_t *r = program_json(0, "generate runs/tokens --prompt na\xc3\xafve --tokens 40 --temperature 2");
  assert_true(program_number(r, "prompt_tokens") < 6);
  assert_int_equal(json_array_size(program_member(r, "tokens")), 40);
  assert_true(json_is_string(program_member(r, "text"))); /* valid UTF-8 */
  file_write("prompt.txt", "the quick");
  r = program_json(0, "predict runs/tokens --input prompt.txt");
  const json_t *top = json_object_get(json_array_get(program_member(r, "predictions"), 0), "top");
  for (size_t k = 0; k < json_array_size(top); k++) { /* 28 classes are no tokens and have no names */
    const json_t *one = json_array_get(top, k);
    assert_int_equal(json_is_string(json_object_get(one, "name")),
                     json_integer_value(json_object_get(one, "class")) < 420);
  }
  assert_int_equal(json_array_size(top), 5);
}

static void validation_uses_the_tokenizer_of_the_weights(void **state) {
  (void)state;
  write_data();
  program_expect(program_run("train text.ini"), 0);
  double before = program_number(program_json(0, "eval runs/tokens"), "loss");
  file_write("tokenizer.json", "{\"model\":{\"type\":\"Bytes\"}}");
  assert_true(program_number(program_json(0, "eval runs/tokens"), "loss") == before);
}

/* Each kind of model trains, and its weights alone are evaluated and write text. */
static void a_model_of_sentencepiece_travels_with_the_weights(void **state) {
  (void)state;
  static const char *const models[] = {"sp_bpe", "sp_char", "sp_unigram"};
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    char path[1024];
    size_t n;
    write_data();
    snprintf(path, sizeof path, TOKENIZERS "/%s.model", models[i]);
    const char *model = file_read(path, &n);
    file_write_bytes("own.model", model, n);
    file_write("text.ini", MODEL("source = text\nfile = text.txt\n", "800"));
    program_expect(program_run("train text.ini --set data.tokenizer=own.model --set run.name=%s", models[i]),
                   0);
    unlink("own.model");
    const json_t *r = program_json(0, "eval runs/%s", models[i]);
    assert_true(program_number(r, "loss") > 0);
    r = program_json(0, "generate runs/%s --prompt the --tokens 20 --temperature 2", models[i]);
    assert_int_equal(json_array_size(program_member(r, "tokens")), 20);
    assert_true(json_is_string(program_member(r, "text")));
  }
}

/* The way of large texts: a file of tokens, a training on it, and text from its weights alone. */
static void a_file_of_tokens_is_trained_on(void **state) {
  (void)state;
  write_data();
  program_expect(program_run("tokenize text.txt --tokenizer tokenizer.json --output text.bin"), 0);
  program_expect(program_run("train tokens.ini"), 0);
  unlink("tokenizer.json");
  const json_t *r = program_json(0, "generate runs/tokens --prompt the --tokens 3");
  assert_int_equal(json_array_size(program_member(r, "tokens")), 3);
  assert_true(json_is_string(program_member(r, "text")));
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
      CASE(the_tokenizer_travels_with_the_weights),
      CASE(validation_uses_the_tokenizer_of_the_weights),
      CASE(a_model_of_sentencepiece_travels_with_the_weights),
      CASE(a_file_of_tokens_is_trained_on),
      CASE(a_tokenizer_that_is_missing_is_told),
  };
  return cmocka_run_group_tests_name("cli: tokenizer", tests, NULL, NULL);
}
