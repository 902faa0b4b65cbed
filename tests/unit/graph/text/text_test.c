/* Tests of the text form: printing and parsing. */
#include "tests/unit/graph/rig.h"

#include "core/graph/text/lexer.h"

static rig R;

static int set_up(void **state) {
  (void)state;
  rig_init(&R);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  rig_finish(&R);
  return 0;
}

/* The text parses to a valid graph with the same text and hash. */
static void assert_round_trip(const char *text) {
  tn_graph *graph = parsed(&R, text);
  assert_verified(&R, graph);
  assert_prints(&R, graph, text);
  tn_graph_destroy(graph);
}

static void refused(const char *text, tn_status want, const char *message) {
  tn_graph *graph;
  tn_status status = tn_graph_parse(&R.env, R.ops, text, "net.txt", &graph);
  assert_error(&R, status, want, message);
  assert_null(graph);
}

/* ---- round trips ---- */

static void an_empty_graph_is_an_empty_text(void **state) {
  (void)state;
  assert_round_trip("");
}

static void every_construct_survives(void **state) {
  (void)state;
  assert_round_trip("unread f32[3] = state(path=bn1.running_var, what=buffer, init=ones)\n"
                    "unread f32[] = state(path=\"a b\", what=host)\n"
                    "image: f32[8, 3] = input(name=image)\n"
                    "@param.f32: f32[8, 1] = state(path=@param.f32, init=\"normal(0, 0.02)\")\n"
                    "momentum: f32[3] = state(path=momentum, what=slot)\n"
                    "half: f32[] = state(path=half, what=derived)\n"
                    "%5: f32[8, 3]{1, 0} = add(image, @param.f32) in layer1.0.conv1\n"
                    "%6: f32[8, 3]{0, 1; 1:16, 0:4} = fuse(%5, _, image)\n"
                    "s: f32[8, 3], %8: f32[8, 3] = sincos(%6) in \"a \\\"layer\\\"\"\n"
                    "%9: f32[8, 3] = total(s, %8, s, image)\n"
                    "report(%9)\n"
                    "%10: f32[3] = reduce_sum(%9, axes=[0])\n"
                    "%11: f32[0, 3] = full(dims=[0, 3], value=-0.1)\n"
                    "%12: bool[] = full(value=1, dtype=bool)\n"
                    "commit momentum = %10\n"
                    "commit bn1.running_var = %10 if %12\n"
                    "output loss = %9\n"
                    "output \"two words\" = %11\n");
}

static void attributes_of_every_type_survive(void **state) {
  (void)state;
  assert_round_trip("x: f32[2] = input(name=x)\n"
                    "%2: f32[2] = tagged(x)\n"
                    "%3: f32[2] = tagged(x, flag=yes, mode=fast, kind=bf16, whole=-3, size=64MiB, "
                    "real=0.1, time=90s, text=\"a, (b] \\\"c\\\"\\n\\\\\", init=normal(0, 0.02), "
                    "ints=[1, -2], floats=[0.5, 1e-300])\n");
}

static void values_with_names_that_cannot_stand_go_by_number(void **state) {
  (void)state;
  tn_val x = param(&R, "two words", TYPE(TN_F32, 2)), y = param(&R, "7", TYPE(TN_F32, 2)),
         z = param(&R, "_", TYPE(TN_F32, 2)), w = param(&R, "0.weight", TYPE(TN_F32, 2));
  assert_ok(&R, tn_graph_name(R.graph, tn_op2(R.b, "total", x, y), "0.weight")); /* in use */
  assert_ok(&R, tn_graph_name(R.graph, tn_op2(R.b, "total", z, w), "commit"));
  tn_val last = tn_neg(R.b, (tn_val)R.graph->values.n - 1);
  assert_ok(&R, tn_graph_name(R.graph, last, "if"));
  const char *text = "%1: f32[2] = state(path=\"two words\", init=zeros)\n"
                     "%2: f32[2] = state(path=7, init=zeros)\n"
                     "%3: f32[2] = state(path=_, init=zeros)\n"
                     "0.weight: f32[2] = state(path=0.weight, init=zeros)\n"
                     "%5: f32[2] = total(%1, %2)\n"
                     "commit: f32[2] = total(%3, 0.weight)\n"
                     "if: f32[2] = neg(commit)\n";
  assert_prints(&R, R.graph, text);
  assert_round_trip(text);
}

static void builders_and_text_make_the_same_graph(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 2, 3)), gradient;
  tn_val loss = tn_reduce_sum(R.b, tn_mul(R.b, tn_exp(R.b, x), x), 0, NULL, 0);
  assert_ok(&R, tn_differentiate(R.b, loss, 0, &x, 1, &gradient, NULL));
  assert_ok(&R, tn_graph_output(R.graph, "gradient", gradient));
  tn_text text = tn_text_new(&R);
  assert_ok(&R, tn_graph_print(R.graph, &text));
  tn_graph *again = parsed(&R, text.v);
  uint64_t made, read;
  assert_ok(&R, tn_graph_hash(R.graph, &made));
  assert_ok(&R, tn_graph_hash(again, &read));
  assert_true(made == read);
  assert_int_equal(again->values.n, R.graph->values.n);
  tn_graph_destroy(again);
  tn_text_free(&text);
}

/* ---- what people may write ---- */

static void types_comments_blanks_and_semicolons_are_optional(void **state) {
  (void)state;
  tn_graph *graph = parsed(&R, "# a comment\n\n"
                               "  x: f32[2,3]=input(name = x) # and another\n"
                               "s, %77 = sincos(x); y = add(s,\n"
                               "   %77)\n"
                               "output y = y");
  assert_prints(&R, graph,
                "x: f32[2, 3] = input(name=x)\n"
                "s: f32[2, 3], %3: f32[2, 3] = sincos(x)\n"
                "y: f32[2, 3] = add(s, %3)\n"
                "output y = y\n");
  tn_graph_destroy(graph);
}

static void errors_name_text_and_line(void **state) {
  (void)state;
  refused("x: f32[2] = input(name=x)\ny = neg(z)\n", TN_EINVAL, "net.txt:2: z is not defined above");
  refused("x = input(name=x)", TN_EINVAL,
          "net.txt:1: input: the type is missing, expected one as in `x: f32[8, 3] = input(name=x)`");
  refused("x: f32[2] = input(name=x)\n\n\ny: f32[3] = neg(x)", TN_EINVAL,
          "net.txt:4: neg: result y is written as f32[3], but it is f32[2]");
  refused("x: f32[2] = input(name=x)\nx = neg(x)", TN_EINVAL,
          "net.txt:2: x is defined already, expected each name once");
  refused("x: f32[2] = input(name=x)\ny: f32[2] = input(name=x)", TN_EINVAL,
          "net.txt:2: input x exists already, expected each input once");
  refused("x: f32[2] = state(path=x)\ny: f32[2] = state(path=x)", TN_EINVAL,
          "net.txt:2: state x is read already, expected one state(path=x)");
  refused("x: f32[2] = input(name=x)\ny, z = neg(x)", TN_EINVAL,
          "net.txt:2: neg: 2 results are named, expected 1");
  refused("x: f32[2] = input()", TN_EINVAL,
          "net.txt:1: input: name: input needs this option, expected a text (batch field or control value)");
}

static void broken_syntax_is_refused(void **state) {
  (void)state;
  refused("x: f32[2 = input(name=x)", TN_EINVAL, "net.txt:1: expected ']', found '='");
  refused(
      "x: f33[2] = input(name=x)", TN_EINVAL,
      "net.txt:1: 'f33' is not an element type, expected f32, f16, bf16, f64, i32, i64, i8, u8, bool or any");
  refused("x: f32[two] = input(name=x)", TN_EINVAL, "net.txt:1: expected an integer, found 'two'");
  refused("x: f32[1,1,1,1,1,1,1,1,1] = input(name=x)", TN_EINVAL,
          "net.txt:1: expected at most 8 dimensions, found '1'");
  refused("x: f32[2]", TN_EINVAL, "net.txt:1: expected '=', found the end of the text");
  refused("x: f32[2]\n= input(name=x)", TN_EINVAL, "net.txt:1: expected '=', found the end of the statement");
  refused("x: f32[2] = input(name=x) y", TN_EINVAL,
          "net.txt:1: expected the end of the statement, found 'y'");
  refused("x: f32[2] = input(name=x", TN_EINVAL, "net.txt:1: expected ')', found the end of the text");
  refused("x: f32[] = input(name=x)\ny = neg(whole=3, x)", TN_EINVAL,
          "net.txt:2: neg: whole: unknown, neg takes no options");
  refused("x: f32[] = input(name=x)\ny = tagged(x, whole=3, x)", TN_EINVAL,
          "net.txt:2: expected '=' and the attribute's value, found ')'");
  refused("x: f32[] = input(name=x)\ny = tagged(x, ints=[1, 2", TN_EINVAL,
          "net.txt:2: expected brackets that close again, found the end of the text");
  refused("= neg(x)", TN_EINVAL, "net.txt:1: expected a value such as x or %5, found '='");
  refused("commit x y", TN_EINVAL, "net.txt:1: expected '=', found 'y'");
  refused("output \"x = y", TN_EINVAL, "net.txt:1: expected '=', found '\"'");
}

static void wrong_layouts_are_refused(void **state) {
  (void)state;
  refused("x: f32[2, 3]{0} = input(name=x)", TN_EINVAL,
          "net.txt:1: expected one number for each dimension in front of the layout's end, found '='");
  refused("x: f32[2, 3]{0, 2} = input(name=x)", TN_EINVAL,
          "net.txt:1: expected a layout of dimensions below the rank, found '='");
  refused("x: f32[2]{0; 0:70000} = input(name=x)", TN_EINVAL,
          "net.txt:1: expected block dimensions and sizes below 65536, found '}'");
}

static void commits_and_outputs_are_checked(void **state) {
  (void)state;
  refused("x: f32[2] = input(name=x)\ncommit x = x", TN_EINVAL,
          "net.txt:2: commit x: there is no state of this path");
  refused("x: f32[2] = state(path=x)\ncommit x = x if x", TN_EINVAL,
          "net.txt:2: commit x: the predicate is f32[2], expected bool[]");
  refused("x: f32[2] = state(path=x)\noutput y = x\noutput y = x", TN_EINVAL,
          "net.txt:3: output y exists already, expected each output once");
  refused("output y = _", TN_EINVAL, "net.txt:1: output y: value 0 is not of this graph");
}

/* ---- the lexer alone ---- */

static void strings_give_their_characters_back(void **state) {
  (void)state;
  tn_arena arena = tn_arena_new(&R);
  tn_lexer lexer = tn_lexer_start(&R, &arena, "t", "\"a\\\"\\\\\\nb\" next");
  const char *name;
  assert_ok(&R, tn_lexer_name(&lexer, "a name", &name));
  assert_string_equal(name, "a\"\\\nb");
  assert_true(tn_lexer_is(&lexer, "next"));
  tn_arena_free(&arena);
}

static void lines_are_counted_inside_brackets_too(void **state) {
  (void)state;
  tn_arena arena = tn_arena_new(&R);
  tn_lexer lexer = tn_lexer_start(&R, &arena, "t", "f(\n# (\n\n)\n x");
  while (!tn_lexer_is(&lexer, ")")) tn_lexer_next(&lexer);
  assert_int_equal(lexer.line, 4);
  tn_lexer_next(&lexer);
  assert_int_equal(lexer.token.kind, TN_TOKEN_BREAK);
  tn_lexer_next(&lexer);
  assert_int_equal(lexer.line, 5);
  assert_int_equal(lexer.token.kind, TN_TOKEN_WORD);
  tn_arena_free(&arena);
}

static void names_are_plain_or_quoted(void **state) {
  (void)state;
  assert_true(tn_lexer_plain("layer1.0.conv1"));
  assert_true(tn_lexer_plain("0.weight"));
  assert_true(tn_lexer_plain("@param.f32"));
  assert_false(tn_lexer_plain("12"));
  assert_false(tn_lexer_plain("_"));
  assert_false(tn_lexer_plain(""));
  assert_false(tn_lexer_plain("a-b"));
  assert_false(tn_lexer_plain("%5"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(an_empty_graph_is_an_empty_text),
      CASE(every_construct_survives),
      CASE(attributes_of_every_type_survive),
      CASE(values_with_names_that_cannot_stand_go_by_number),
      CASE(builders_and_text_make_the_same_graph),
      CASE(types_comments_blanks_and_semicolons_are_optional),
      CASE(errors_name_text_and_line),
      CASE(broken_syntax_is_refused),
      CASE(wrong_layouts_are_refused),
      CASE(commits_and_outputs_are_checked),
      CASE(strings_give_their_characters_back),
      CASE(lines_are_counted_inside_brackets_too),
      CASE(names_are_plain_or_quoted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
