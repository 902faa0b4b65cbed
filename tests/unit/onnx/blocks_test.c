/* Parts that repeat become blocks: lines of a model, and the sections that are written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/onnx/import.h"
#include "tests/support/test_env.h"

static test_env B;

typedef struct rig {
  tn_env *env;
  tn_onnx_file file;
  onnx_import m;
  char *text;
} rig;

static char *cut(char **at, const char *mark) {
  char *end = *at != NULL ? strstr(*at, mark) : NULL, *part = *at;
  if (end != NULL) *end = '\0';
  *at = end != NULL ? end + strlen(mark) : NULL;
  return part;
}

/* "NAME: CALL <- OPERANDS" or "NAME = EXPRESSION", with * in front where it has parameters, and the module
 * behind @ where it is known. */
static tn_status rig_line(rig *r, char *text) {
  onnx_line line = {.has_weights = text[0] == '*', .n_names = 1};
  char *rest = text + line.has_weights, *scope = strstr(rest, " @");
  if (scope != NULL) *scope = '\0';
  line.scope = scope != NULL ? scope + 2 : NULL;
  line.computes = strstr(rest, " = ") != NULL;
  line.names = cut(&rest, line.computes ? " = " : ": ");
  for (const char *c = line.names; *c != '\0'; c++) line.n_names += *c == ',';
  line.call = line.computes ? rest : cut(&rest, " <- ");
  line.operands = tn_arena_alloc(&r->m.arena, 32 * sizeof *line.operands);
  if (line.operands == NULL) return TN_ENOMEM;
  while (!line.computes && rest != NULL) line.operands[line.n_operands++] = cut(&rest, ", ");
  return tn_vec_push(r->env, &r->m.lines, line);
}

static tn_status rig_read(rig *r, const char *lines, const char *output) {
  const onnx_input input = {"x", {.dtype = TN_F32, .rank = 1, .dims = {4}}};
  TN_TRY(tn_vec_push(r->env, &r->m.inputs, input));
  TN_TRY(tn_vec_push(r->env, &r->m.outputs, output));
  char *text = tn_arena_strdup(&r->m.arena, lines);
  if (text == NULL) return TN_ENOMEM;
  while (text != NULL) TN_TRY(rig_line(r, cut(&text, "\n")));
  return TN_OK;
}

static tn_status rig_find(rig *r, const char *lines, const char *output) {
  onnx_section *sections;
  int32_t n;
  TN_TRY(rig_read(r, lines, output));
  TN_TRY(onnx_find_blocks(&r->m, &sections, &n));
  return onnx_write_text(&r->m, sections, n, NULL, &r->text);
}

static void rig_open(rig *r, tn_env *env) {
  *r = (rig){.env = env, .file = {.env = env, .path = "net.onnx", .producer = "test", .opset = 20}};
  r->m = (onnx_import){.env = env, .file = &r->file, .arena = tn_arena_new(env), .input = "x"};
  r->m.modules = tn_name_index_new(env);
}

static void rig_close(rig *r) {
  tn_release(r->env, r->text);
  tn_vec_free(r->env, &r->m.lines);
  tn_vec_free(r->env, &r->m.inputs);
  tn_vec_free(r->env, &r->m.outputs);
  tn_name_index_free(&r->m.modules);
  tn_arena_free(&r->m.arena);
}

/* The text behind the inputs. */
static void expect(const char *lines, const char *output, const char *expected) {
  static const char inputs[] = "inputs = x: f32[4]\n";
  rig r;
  test_env_start(&B);
  rig_open(&r, &B.env);
  assert_int_equal(rig_find(&r, lines, output), TN_OK);
  assert_non_null(strstr(r.text, inputs));
  assert_string_equal(strstr(r.text, inputs) + strlen(inputs), expected);
  rig_close(&r);
  assert_int_equal(B.live, 0);
}

/* A residual block `name` on `in` with two layers. */
#define PART(name, in)                                                                                       \
  "*" name ".a: linear(4) <- " in "\n" name ".b: relu <- " name ".a @" name "\n*" name                       \
  ".c: linear(4) <- " name ".b\n" name ".d: add <- " name ".c, " in " @" name "\n"
#define PART_LINES "    a: linear(4)\n       relu\n    c: linear(4)\n       add <- c, "

static void lines_that_repeat_become_a_block(void **state) {
  (void)state;
  expect(PART("l.0", "x") PART("l.1", "l.0.d") PART("l.2", "l.1.d") "*fc: linear(2) <- l.2.d", "fc",
         "layers =\n    l: l * 3\n    fc: linear(2)\n\n[block l]\nlayers =\n" PART_LINES "in\n");
}

static void nothing_repeats(void **state) {
  (void)state;
  expect("*a.p: linear(4) <- x\n*a.q: linear(4) <- a.p\n*b.p: linear(4) <- a.q\nb.q: relu <- b.p\n*c: "
         "linear(2) <- b.q",
         "c",
         "layers =\n    a.p: linear(4)\n    a.q: linear(4)\n    b.p: linear(4)\n         relu\n    c: "
         "linear(2)\n");
}

/* Two lines in two places would take more lines as a block. */
static void what_saves_no_line_is_no_block(void **state) {
  (void)state;
  expect("*a.p: linear(4) <- x\n*a.q: linear(4) <- a.p\nr: relu <- a.q @\n*b.p: linear(4) <- r\n*b.q: "
         "linear(4) <- b.p",
         "b.q",
         "layers =\n    a.p: linear(4)\n    a.q: linear(4)\n         relu\n    b.p: linear(4)\n    b.q: "
         "linear(4)\n");
}

/* A convolution, an activation, and one of four times the channels. */
#define CONVS(name, in, channels, more, four)                                                                \
  "*" name ".c: conv2d(" channels ", kernel=3" more ") <- " in "\n" name ".r: relu <- " name ".c @" name     \
  "\n*" name ".d: conv2d(" four ", kernel=1) <- " name ".r\n" name ".z: relu <- " name ".d @" name "\n"

static void numbers_that_differ_become_arguments(void **state) {
  (void)state;
  expect(CONVS("s.0", "x", "8", "", "32") CONVS("s.1", "s.0.z", "16", ", stride=2", "64")
             CONVS("s.2", "s.1.z", "16", ", stride=2", "64")
                 CONVS("s.3", "s.2.z", "32", ", stride=2", "128") "*fc: linear(2) <- s.3.z",
         "fc",
         "layers =\n    s: s(8, stride=1), s(16) * 2, s(32)\n    fc: linear(2)\n"
         "\n[block s]\nargs = channels, stride=2\nlayers =\n    c: conv2d(channels, kernel=3, "
         "stride=stride)\n       relu\n"
         "    d: conv2d(4 * channels, kernel=1)\n       relu\n");
}

/* A number that stands behind an arrow, and one in an expression. */
#define SCALED(name, in, factor)                                                                             \
  "*" name ".p: linear(4) <- " in "\n" name ".m: mul <- " name ".p, " factor " @" name "\n" name             \
  ".e = " name ".m * 2 - " factor " @" name "\n*" name ".q: linear(4) <- " name ".e\n"

static void arguments_stand_for_values(void **state) {
  (void)state;
  expect(SCALED("a0", "x", "0.5") SCALED("a1", "a0.q", "0.25")
             SCALED("a2", "a1.q", "1e-05") "y: relu <- a2.q @",
         "y",
         "layers =\n    a{i}: a(0.5), a(0.25), a(1e-05)\n          relu\n"
         "\n[block a]\nargs = factor\nlayers =\n    p: linear(4)\n    m: mul <- p, (factor)\n    e = m * 2 - "
         "factor\n"
         "    q: linear(4)\n");
}

/* A block inside of a block: pairs in a0, a1, a2 and one beside them. */
#define PAIR(name, in)                                                                                       \
  PART(name ".u", in)                                                                                        \
  PART(name ".v", name ".u.d") PART(name ".w", name ".v.d") "*" name ".n: layer_norm <- " name ".w.d\n"

static void blocks_have_blocks(void **state) {
  (void)state;
  expect(PAIR("e.0", "x") PAIR("e.1", "e.0.n") PAIR("e.2", "e.1.n") "*fc: linear(2) <- e.2.n", "fc",
         "layers =\n    e: e * 3\n    fc: linear(2)\n\n[block e]\nlayers =\n"
         "    u: u\n    v: u\n    w: u\n    n: layer_norm\n\n[block u]\nlayers =\n" PART_LINES "in\n");
}

/* A mask that all read is the line's further input. */
#define MASKED(name, in)                                                                                     \
  "*" name ".q: linear(4) <- " in "\n" name ".s: add <- " name ".q, mask @" name "\n*" name                  \
  ".o: linear(4) <- " name ".s\n" name ".r: add <- " in ", " name ".o @" name "\n"

static void values_of_the_model_are_inputs(void **state) {
  (void)state;
  expect("mask = x > 0 @\n" MASKED("h.0", "x") MASKED("h.1", "h.0.r")
             MASKED("h.2", "h.1.r") "*fc: linear(2) <- h.2.r",
         "fc",
         "layers =\n    mask = x > 0\n    h: h * 3 <- x, mask\n    fc: linear(2)\n"
         "\n[block h]\ninputs = x, mask\nlayers =\n    q: linear(4)\n       add <- q, mask\n    o: "
         "linear(4)\n       add <- x, o\n");
}

/* The second one begins at another number, so names count from there. */
static void words_with_numbers_count(void **state) {
  (void)state;
  expect(PART("layer_1", "x") PART("layer_2", "layer_1.d")
             PART("layer_3", "layer_2.d") "*fc: linear(2) <- layer_3.d",
         "fc",
         "layers =\n    layer_{i+1}: layer * 3\n    fc: linear(2)\n\n[block layer]\nlayers =\n" PART_LINES
         "in\n");
}

/* A projection in the first alone: two blocks. */
static void a_branch_makes_another_block(void **state) {
  (void)state;
  expect("*p.0.s: linear(4) <- x\n*p.0.a: linear(4) <- x\np.0.b: relu <- p.0.a @p.0\n*p.0.c: linear(4) <- "
         "p.0.b\n"
         "p.0.d: add <- p.0.c, p.0.s @p.0\n" PART("p.1", "p.0.d") PART("p.2", "p.1.d")
             PART("p.3", "p.2.d") "*fc: linear(2) <- p.3.d",
         "fc",
         "layers =\n    p.0.s: linear(4)\n    p.0.a: linear(4) <- x\n           relu\n    p.0.c: linear(4)\n"
         "           add <- p.0.c, p.0.s\n    p.1: p\n    p.2: p\n    p.3: p\n    fc: linear(2)\n\n[block "
         "p]\nlayers =\n" PART_LINES "in\n");
}

/* A result that a later line reads beside the last one. */
static void blocks_have_several_results(void **state) {
  (void)state;
  expect(PART("f.0", "x") PART("f.1", "f.0.d") PART("f.2", "f.1.d") "y: add <- f.2.d, f.1.a @", "y",
         "layers =\n    f, f.1.a: f * 2\n    f.2, f.2.a: f <- f\n                add <- f.2, f.1.a\n"
         "\n[block f]\noutputs = d, a\nlayers =\n    a: linear(4)\n       relu\n    c: linear(4)\n    d: add "
         "<- c, in\n");
}

/* Nine values of each are read later: more than a block gives. */
static void many_results_are_no_block(void **state) {
  (void)state;
  char lines[4096] = "", expected[4096] = "layers =\n";
  size_t n = 0, e = strlen(expected);
  for (int g = 0; g < 3; g++)
    for (int i = 0; i < 9; i++) {
      char before[16] = "x";
      if (g + i > 0) snprintf(before, sizeof before, "g%d.a%d", i > 0 ? g : g - 1, i > 0 ? i - 1 : 8);
      n += (size_t)snprintf(lines + n, sizeof lines - n, "*g%d.a%d: linear(4) <- %s\n", g, i, before);
      e += (size_t)snprintf(expected + e, sizeof expected - e, "    g%d.a%d: linear(4)\n", g, i);
    }
  n += (size_t)snprintf(lines + n, sizeof lines - n, "y: concat");
  e += (size_t)snprintf(expected + e, sizeof expected - e, "           concat");
  for (int i = 0; i < 27; i++) {
    n += (size_t)snprintf(lines + n, sizeof lines - n, "%sg%d.a%d", i == 0 ? " <- " : ", ", i / 9, i % 9);
    e += (size_t)snprintf(expected + e, sizeof expected - e, "%sg%d.a%d", i == 0 ? " <- " : ", ", i / 9,
                          i % 9);
  }
  snprintf(lines + n, sizeof lines - n, " @");
  snprintf(expected + e, sizeof expected - e, "\n");
  expect(lines, "y", expected);
}

/* Names of lines that arguments, inputs and blocks must not take. */
#define TAKEN(name, in, n)                                                                                   \
  "*" name ".channels: conv2d(" n ", kernel=1) <- " in "\n*" name ".mask: linear(4) <- " name                \
  ".channels\n" name ".s: add <- " name ".mask, mask @" name "\n*" name ".x: linear(4) <- " name ".s\n"

static void names_do_not_collide(void **state) {
  (void)state;
  expect("mask = x > 0 @\n" TAKEN("in.0", "x", "8") TAKEN("in.1", "in.0.x", "16")
             TAKEN("in.2", "in.1.x", "24") "*fc: linear(2) <- in.2.x",
         "fc",
         "layers =\n    mask = x > 0\n    in: in_block(8), in_block(16), in_block(24) <- x, mask\n    fc: "
         "linear(2)\n"
         "\n[block in_block]\nargs = channels2\ninputs = x2, mask2\nlayers =\n    channels: "
         "conv2d(channels2, kernel=1)\n"
         "    mask: linear(4)\n          add <- mask, mask2\n    x: linear(4)\n");
}

/* Inside a block a name of digits would be a number in an expression. */
#define DIGITS(name, in)                                                                                     \
  "*" name ".0: linear(4) <- " in "\n" name ".e = " name ".0 * 2 @" name "\n*" name ".1: linear(4) <- " name \
  ".e\n" name ".r: relu <- " name ".1 @" name "\n"

static void names_of_digits_are_no_values_of_expressions(void **state) {
  (void)state;
  expect(DIGITS("d.0", "x") DIGITS("d.1", "d.0.r") DIGITS("d.2", "d.1.r") "*fc: linear(2) <- d.2.r", "fc",
         "layers =\n    d.0.0: linear(4)\n    d.0.e = d.0.0 * 2\n    d.0.1: linear(4)\n           relu\n"
         "    d.1.0: linear(4)\n    d.1.e = d.1.0 * 2\n    d.1.1: linear(4)\n           relu\n"
         "    d.2.0: linear(4)\n    d.2.e = d.2.0 * 2\n    d.2.1: linear(4)\n           relu\n    fc: "
         "linear(2)\n");
}

/* A constant that the first reader makes stands in front of all that read it. */
static void constants_go_in_front(void **state) {
  (void)state;
  expect(
      "*k.0.q: linear(4) <- x\nmask = full([4], 1)\nk.0.s: add <- k.0.q, mask @k.0\n*k.0.o: linear(4) <- "
      "k.0.s\n"
      "*k.1.q: linear(4) <- k.0.o\nk.1.s: add <- k.1.q, mask @k.1\n*k.1.o: linear(4) <- k.1.s\n"
      "*k.2.q: linear(4) <- k.1.o\nk.2.s: add <- k.2.q, mask @k.2\n*k.2.o: linear(4) <- k.2.s\n*fc: "
      "linear(2) <- k.2.o",
      "fc",
      "layers =\n    mask = full([4], 1)\n    k: k * 3 <- x, mask\n    fc: linear(2)\n"
      "\n[block k]\ninputs = x, mask\nlayers =\n    q: linear(4)\n       add <- q, mask\n    o: linear(4)\n");
}

/* Lines of nodes without a module stand where their operands do. */
static void lines_without_a_module_find_theirs(void **state) {
  (void)state;
  expect("*g.0.a: linear(4) <- x\nn1: relu <- g.0.a\n*g.0.c: linear(4) <- n1\nn2: add <- g.0.c, x\n"
         "*g.1.a: linear(4) <- n2\nn3: relu <- g.1.a\n*g.1.c: linear(4) <- n3\nn4: add <- g.1.c, n2\n"
         "*g.2.a: linear(4) <- n4\nn5: relu <- g.2.a\n*g.2.c: linear(4) <- n5\nn6: add <- g.2.c, n4\n*fc: "
         "linear(2) <- n6",
         "fc", "layers =\n    g: g * 3\n    fc: linear(2)\n\n[block g]\nlayers =\n" PART_LINES "in\n");
}

static tn_status find_starved(test_env *t, void *context) {
  rig r;
  rig_open(&r, &t->env);
  tn_status status = rig_find(&r, context, "fc");
  rig_close(&r);
  return status;
}

static void a_lack_of_memory_is_told(void **state) {
  (void)state;
  static char lines[] = PAIR("e.0", "x") PAIR("e.1", "e.0.n") PAIR("e.2", "e.1.n") "*fc: linear(2) <- e.2.n";
  assert_true(test_env_starve(find_starved, lines) > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines_that_repeat_become_a_block),
      cmocka_unit_test(nothing_repeats),
      cmocka_unit_test(what_saves_no_line_is_no_block),
      cmocka_unit_test(numbers_that_differ_become_arguments),
      cmocka_unit_test(arguments_stand_for_values),
      cmocka_unit_test(blocks_have_blocks),
      cmocka_unit_test(values_of_the_model_are_inputs),
      cmocka_unit_test(words_with_numbers_count),
      cmocka_unit_test(a_branch_makes_another_block),
      cmocka_unit_test(blocks_have_several_results),
      cmocka_unit_test(many_results_are_no_block),
      cmocka_unit_test(names_do_not_collide),
      cmocka_unit_test(names_of_digits_are_no_values_of_expressions),
      cmocka_unit_test(constants_go_in_front),
      cmocka_unit_test(lines_without_a_module_find_theirs),
      cmocka_unit_test(a_lack_of_memory_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
