/* `tenon generate`, and `tenon predict` on texts. */
#include "npy_files.h"
#include "terminal.h"
#include "texts.h"

#include <sys/wait.h>
#include <unistd.h>

enum { WINDOW = 16 };

static const char text_ini[] = TEXT_INI("characters", "9", "yes");

static void train(const char *ini) {
  write_pattern();
  file_write("text.ini", ini);
  assert_int_equal(program_run("train text.ini"), 0);
}

static int32_t token_of(const json_t *result, size_t i) {
  return (int32_t)json_integer_value(json_array_get(program_member(result, "tokens"), i));
}

static void the_learned_line_is_continued(void **state) {
  (void)state;
  train(text_ini);
  unlink("text.txt"); /* the vocabulary is in the weights */
  assert_int_equal(program_run("generate text.ini --prompt To --tokens 37 --temperature 0 --quiet"), 0);
  assert_string_equal(program_out, "To be or not\nTo be or not\nTo be or not\n");
  assert_int_equal(program_run("generate runs/text --prompt T --tokens 12 --temperature 0"), 0);
  assert_string_equal(program_out, "To be or not\n\n");
  assert_non_null(strstr(program_err, "12 tokens, "));
  const json_t *r = program_json(0, "generate runs/text --weights runs/text --tokens 5 --temperature 0");
  assert_string_equal(program_text(r, "text"), "To be");
  assert_int_equal(program_number(r, "prompt_tokens"), 1); /* a new line */
  assert_int_equal(json_array_size(program_member(r, "tokens")), 5);
  assert_true(program_number(r, "tokens_per_s") > 0);
}

/* The token with the largest score behind the first n of a whole window. */
static int32_t best_of_window(const int32_t *tokens, int n, const char *options) {
  int32_t window[WINDOW] = {0};
  memcpy(window, tokens, (size_t)n * sizeof *window);
  write_array("window.npy", "<i4", 1, "16", window, sizeof window);
  assert_int_equal(program_run("predict text.ini --input window.npy --output scores.npy %s", options), 0);
  const float *scores = read_npy("scores.npy", "1, 16, 9", WINDOW * 9) + (n - 1) * 9;
  int32_t best = 0;
  for (int32_t i = 1; i < 9; i++) best = scores[i] > scores[best] ? i : best;
  return best;
}

/* The prompt is no part of the text, so that little is certain. The prompt is as long as that several tokens
 * are computed at once, or one. */
static void each_token_is_that_of_the_whole_window(void **state) {
  (void)state;
  static const char *const options[] = {"--set backend.use=cpu", "--set backend.use=auto",
                                        "--set backend.use=sim", "--set precision.policy=bf16"};
  train(text_ini);
  for (size_t o = 0; o < sizeof options / sizeof *options; o++) {
    int32_t tokens[WINDOW + 1] = {3, 3, 8, 1, 0};
    const json_t *r = program_json(
        0, "generate text.ini --prompt-tokens 3,3,8,1,0 --tokens 11 --temperature 0 %s", options[o]);
    assert_int_equal(json_array_size(program_member(r, "tokens")), 11);
    for (size_t i = 0; i < 11; i++) tokens[5 + i] = token_of(r, i);
    for (int n = 5; n < WINDOW; n++) assert_int_equal(tokens[n], best_of_window(tokens, n, options[o]));
  }
}

/* Behind the window the last eight tokens are all that the model sees. */
static void a_text_longer_than_the_window_goes_on_from_its_half(void **state) {
  (void)state;
  train(text_ini);
  const json_t *r = program_json(0, "generate text.ini --prompt-tokens 4 --tokens 17 --temperature 0");
  char list[128] = "";
  size_t at = 0;
  for (size_t i = 8; i < 16; i++) at += (size_t)snprintf(list + at, sizeof list - at, "%d,", token_of(r, i));
  const json_t *half =
      program_json(0, "generate text.ini --prompt-tokens %s --tokens 1 --temperature 0", list);
  assert_int_equal(token_of(r, 16), token_of(half, 0));
  r = program_json(0, "generate text.ini --tokens 200");
  assert_int_equal(json_array_size(program_member(r, "tokens")), 200);
}

static void keep_output(char to[256]) {
  size_t n = strlen(program_out);
  assert_true(n < 256);
  memcpy(to, program_out, n + 1);
}

/* The weights are those of initialization, whose scores are all alike. */
static void the_seed_decides_the_text(void **state) {
  (void)state;
  char first[256];
  write_pattern();
  file_write("text.ini", text_ini);
  assert_int_equal(program_run("train text.ini --set optimizer.lr=1e-9 --set run.epochs=1"), 0);
  assert_int_equal(program_run("generate text.ini --tokens 60 --quiet"), 0);
  keep_output(first);
  assert_int_equal(program_run("generate text.ini --tokens 60 --quiet --seed 0"), 0);
  assert_string_equal(program_out, first);
  assert_int_equal(program_run("generate text.ini --tokens 60 --quiet --seed 1"), 0);
  assert_string_not_equal(program_out, first);
  assert_int_equal(program_run("generate text.ini --tokens 60 --quiet --temperature 0"), 0);
  keep_output(first);
  assert_int_equal(program_run("generate text.ini --tokens 60 --quiet --top-k 1 --seed 3"), 0);
  assert_string_equal(program_out, first);
  assert_int_equal(program_run("generate text.ini --tokens 60 --quiet --top-p 0.01 --seed 4"), 0);
  assert_string_equal(program_out, first);
}

static void tokens_may_be_bytes(void **state) {
  (void)state;
  train(TEXT_INI("bytes", "256", "yes"));
  assert_int_equal(program_run("generate text.ini --prompt To --tokens 24 --temperature 0 --quiet"), 0);
  assert_string_equal(program_out, "To be or not\nTo be or not\n");
}

static void numbers_of_tokens_give_numbers(void **state) {
  (void)state;
  train(text_ini);
  assert_int_equal(program_run("generate text.ini --prompt-tokens 0 --tokens 3 --temperature 0 --quiet"), 0);
  assert_string_equal(program_out, " 2 6 1"); /* "To " behind a new line, in the order of code points */
}

static void predict_reads_texts(void **state) {
  (void)state;
  train(text_ini);
  file_write("a.txt", "To be or n");
  file_write("b.txt", "To be or not\nTo be or not\nTo");
  assert_int_equal(program_run("predict text.ini --input a.txt --input b.txt --top 1"), 0);
  assert_non_null(strstr(program_out, "a.txt   o "));
  assert_non_null(strstr(program_out, "b.txt   \" \" "));
  const json_t *r = program_json(0, "predict text.ini --input a.txt --top 2");
  const json_t *top = program_member(json_array_get(program_member(r, "predictions"), 0), "top");
  assert_int_equal(json_array_size(top), 2);
  assert_string_equal(program_text(json_array_get(top, 0), "name"), "o");
  assert_true(program_number(json_array_get(top, 0), "probability") > 0.5);
  file_write("empty.txt", "");
  file_write("strange.txt", "To be?");
  static const char *const wrong[][2] = {
      {"--input empty.txt", "empty.txt: the file is empty"},
      {"--input strange.txt", "strange.txt: the text has '?' at byte 5"},
      {"--input a.txt --output x.npy", "only the next token is predicted"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(program_run("predict text.ini %s", wrong[i][0]), 65);
    if (strstr(program_err, wrong[i][1]) == NULL) fail_msg("expected '%s' in: %s", wrong[i][1], program_err);
  }
  assert_int_equal(program_run("predict text.ini --input none.txt"), 74);
}

static void bad_options_are_refused(void **state) {
  (void)state;
  train(text_ini);
  static const struct {
    int code;
    const char *options, *text;
  } wrong[] = {
      {65, "--prompt Hello", "the text has 'H' at byte 0, which is not among the 9 tokens of the model"},
      {65, "--prompt-tokens 9", "token 9, expected 0 .. 8"},
      {2, "--prompt-tokens x", "--prompt-tokens: expected numbers from 0, not 'x'"},
      {2, "--prompt-tokens -1", "expected numbers from 0, not '-1'"},
      {2, "--prompt To --prompt-tokens 1", "not both"},
      {2, "--temperature -1", "expected a number from 0 to 1000, not '-1'"},
      {2, "--temperature nan", "expected a number from 0 to 1000, not 'nan'"},
      {2, "--top-p 0", "not '0'"},
      {2, "--top-p 1.5", "not '1.5'"},
      {2, "--top-k 0", "expected a number from 1, not '0'"},
      {2, "--tokens 0", "expected a number from 1, not '0'"},
      {2, "--seed x", "expected a number from 0, not 'x'"},
      {65, "--weights text.txt", "text.txt"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(program_run("generate text.ini %s", wrong[i].options), wrong[i].code);
    assert_string_equal(program_out, ""); /* no prompt either */
    if (strstr(program_err, wrong[i].text) == NULL)
      fail_msg("%s: expected '%s' in: %s", wrong[i].options, wrong[i].text, program_err);
  }
}

/* A head with more outputs than the text has characters. The others are no tokens. */
static void classes_that_are_no_tokens_are_accepted(void **state) {
  (void)state;
  train(TEXT_INI("characters", "12", "yes"));
  assert_int_equal(program_run("generate text.ini --prompt To --tokens 11 --temperature 0"), 0);
  assert_string_equal(program_out, "To be or not\n\n");
  file_write("a.txt", "To b");
  const json_t *r = program_json(0, "predict text.ini --input a.txt"),
               *top = json_object_get(json_array_get(program_member(r, "predictions"), 0), "top");
  assert_int_equal(json_array_size(top), 5);
  assert_string_equal(json_string_value(json_object_get(json_array_get(top, 0), "name")), "e");
}

/* The layer that mixes tokens is named with its line. */
static void models_that_mix_tokens_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *ini, *text;
  } wrong[] = {
      {TEXT_INI("characters", "9", "no"), "layer h.0.y: its attention mixes tokens"},
      {"[data]\nsource = text\nfile = text.txt\ntokens = 16\n[model]\ninputs = tokens: i32[16]\nlayers =\n"
       "    e: embedding(9, 4)\n       flatten\n    f: linear(9)\n",
       "text.ini:9: layer flatten@1.0: its reshape mixes tokens"},
      {"[data]\nsource = random\nshape = 4\n[model]\ninputs = x: f32[4]\nlayers =\n    f: linear(3)\n",
       "the model's input is f32[1, 4] with the batch, expected numbers of tokens"},
      {"[data]\nsource = random\n[model]\ninputs =\n    a: i32[4]\n    b: i32[4]\nlayers =\n"
       "    x: embedding(9, 4) <- a\n    y: embedding(9, 4) <- b\n    add <- x, y\n",
       "the model has 2 inputs"},
  };
  write_pattern();
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    file_write("text.ini", wrong[i].ini);
    int code = program_run("generate text.ini");
    assert_string_equal(program_out, ""); /* no prompt either */
    if (strstr(program_err, wrong[i].text) == NULL)
      fail_msg("%d: expected '%s' in: %s", code, wrong[i].text, program_err);
    assert_true(code == 65 || code == 69);
  }
}

/* ---- scores that are not finite ---- */

static const char overflowing_ini[] =
    "[run]\nname = text\n[data]\nsource = text\nfile = text.txt\ntokens = 16\n[model]\n"
    "inputs = tokens: i32[16]\nlayers =\n    e:  embedding(3, 2)\n    f1: linear(2, bias=no)\n"
    "    f2: linear(3, bias=no)\n";

/* Behind tokens 0 and 1 the scores are 0, 0.3 and 0.6; behind token 2 they are infinity times 0 and infinity.
 */
static void write_overflowing_weights(const char *path) {
  static const char header[] = "{\"e.weight\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]},"
                               "\"f1.weight\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[24,40]},"
                               "\"f2.weight\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[40,64]}}";
  static const float values[16] = {1, 1, 1, 1, 3e38f, 3e38f, 3, 3, 0, 0, 0, 0, 0.05f, 0, 0.1f, 0};
  char bytes[8 + sizeof header - 1 + sizeof values];
  uint64_t n = sizeof header - 1;
  memcpy(bytes, &n, 8);
  memcpy(bytes + 8, header, sizeof header - 1);
  memcpy(bytes + 8 + sizeof header - 1, values, sizeof values);
  file_write_bytes(path, bytes, sizeof bytes);
}

static void a_text_ends_before_scores_that_are_not_finite(void **state) {
  (void)state;
  static const char *const temperatures[] = {"0", "1e-3"};
  write_pattern();
  file_write("text.ini", overflowing_ini);
  write_overflowing_weights("w.safetensors");
  for (int i = 0; i < 2; i++) {
    const json_t *r = program_json(
        76, "generate text.ini --weights w.safetensors --prompt-tokens 0,1 --tokens 5 --temperature %s",
        temperatures[i]);
    assert_non_null(
        strstr(program_err, "1 of 2 outputs are not finite, first that of 'token 4 of prompt and text'"));
    assert_int_equal(json_array_size(program_member(r, "tokens")), 1);
    assert_int_equal(token_of(r, 0), 2);
    assert_int_equal(program_number(r, "not_finite"), 1);
  }
  assert_int_equal(program_run("generate text.ini --weights w.safetensors --prompt-tokens 2 --quiet"), 76);
  assert_string_equal(program_out, "");
  assert_non_null(
      strstr(program_err, "1 of 1 outputs are not finite, first that of 'token 2 of prompt and text'"));
}

/* ---- control sequences in a vocabulary ---- */

enum { ESCAPE_LINE = 8 };
static const char escape_line[] = "\033[2J\tab\n";

static void write_escapes(void) {
  static char text[ESCAPE_LINE * 400 + 1];
  for (int i = 0; i < ESCAPE_LINE * 400; i++) text[i] = escape_line[i % ESCAPE_LINE];
  file_write("text.txt", text);
}

/* Weights of another person are no way to their commands; a pipe gets the text as it is. */
static void a_terminal_gets_no_control_sequences(void **state) {
  (void)state;
  char *words[] = {TENON, "generate", "text.ini", "--tokens", "16", "--temperature", "0", "--quiet", NULL};
  int terminal, end;
  write_escapes();
  file_write("text.ini", TEXT_INI("characters", "8", "yes"));
  assert_int_equal(program_run("train text.ini"), 0);
  assert_int_equal(program_run("generate text.ini --tokens 16 --temperature 0 --quiet"), 0);
  assert_non_null(strstr(program_out, "\033[2J\tab\n"));
  pid_t child = terminal_start(words, 80, &terminal, &end);
  int status = terminal_read(child, terminal, end, 0, 0);
  close(end);
  close(terminal);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("it ended with %d", status);
  char expected[64], *to = expected;
  for (const char *c = program_out; *c != '\0'; c++) {
    if (*c == '\n') *to++ = '\r'; /* the terminal's own */
    *to++ = *c == '\033' ? ' ' : *c;
  }
  *to = '\0';
  assert_string_equal(terminal_output, expected);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, program_open, program_close)
  const struct CMUnitTest tests[] = {
      CASE(the_learned_line_is_continued),
      CASE(each_token_is_that_of_the_whole_window),
      CASE(a_text_longer_than_the_window_goes_on_from_its_half),
      CASE(the_seed_decides_the_text),
      CASE(tokens_may_be_bytes),
      CASE(numbers_of_tokens_give_numbers),
      CASE(predict_reads_texts),
      CASE(bad_options_are_refused),
      CASE(classes_that_are_no_tokens_are_accepted),
      CASE(models_that_mix_tokens_are_refused),
      CASE(a_text_ends_before_scores_that_are_not_finite),
      CASE(a_terminal_gets_no_control_sequences),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
