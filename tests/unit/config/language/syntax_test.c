/* Lines of the model language as trees, and syntax errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <stdio.h>
#include <stdlib.h>

#include "core/config/language/syntax.h"
#include "tests/support/test_env.h"

typedef struct fixture {
  test_env t;
  tn_arena arena;
  tn_ini ini;
} fixture;

static void start(fixture *f) {
  memset(f, 0, sizeof(*f));
  test_env_start(&f->t);
  f->arena = tn_arena_new(&f->t);
}

static void end(fixture *f) {
  tn_arena_free(&f->arena);
  if (f->ini.arena.handle != NULL) tn_ini_free(&f->ini);
  assert_int_equal(f->t.live, 0);
}

static tn_status try_lines(fixture *f, const char *text, tn_line **lines, int32_t *n) {
  if (tn_ini_parse(&f->t, text, "t.ini", ".", &f->ini) != TN_OK) fail_msg("%s", tn_error_text(&f->t));
  return tn_syntax_lines(&f->t, &f->arena, &f->ini.sections[0].keys[0], NULL, lines, n);
}

static tn_line *parse_lines(fixture *f, const char *text, int32_t expected) {
  tn_line *lines;
  int32_t n;
  if (try_lines(f, text, &lines, &n) != TN_OK) fail_msg("%s", tn_error_text(&f->t));
  assert_int_equal(n, expected);
  return lines;
}

/* An expression fully in parentheses, so that a test sees its precedence. */
static void show(const tn_expr *e, char *out) {
  static const char *const ops[] = {"or", "and", "==", "!=", "<", "<=", ">", ">=", "+",
                                    "-",  "*",   "/",  "//", "%", "**", "-", "not"};
  char a[512] = "", b[512] = "";
  switch (e->kind) {
  case TN_EXPR_NUMBER: sprintf(out, "%g%s", e->number, e->is_integer ? "" : "f"); return;
  case TN_EXPR_WORD: strcpy(out, e->word); return;
  case TN_EXPR_SHARED: sprintf(out, "@%s", e->word); return;
  case TN_EXPR_DIM:
    if (e->n_items == 0) {
      sprintf(out, "dims(%s)", e->word);
      return;
    }
    show(e->items[0], a);
    sprintf(out, "dim(%s;%s)", e->word, a);
    return;
  case TN_EXPR_UNARY:
    show(e->items[0], a);
    sprintf(out, "(%s %s)", ops[e->op], a);
    return;
  case TN_EXPR_BINARY:
    show(e->items[0], a);
    show(e->items[1], b);
    sprintf(out, "(%s %s %s)", a, ops[e->op], b);
    return;
  case TN_EXPR_CHOOSE: {
    char c[512] = "";
    show(e->items[0], a);
    show(e->items[1], c);
    show(e->items[2], b);
    sprintf(out, "(%s if %s else %s)", a, c, b);
    return;
  }
  case TN_EXPR_LIST:
    strcpy(out, "[");
    for (int32_t i = 0; i < e->n_items; i++) {
      show(e->items[i], a);
      strcat(strcat(out, i > 0 ? "," : ""), a);
    }
    strcat(out, "]");
    return;
  default:
    sprintf(out, "%s(", e->word);
    for (int32_t i = 0; i < e->n_args; i++) {
      show(e->args[i].value, a);
      sprintf(out + strlen(out), "%s%s%s%s", i > 0 ? "," : "", e->args[i].name ? e->args[i].name : "",
              e->args[i].name ? "=" : "", a);
    }
    strcat(out, ")");
  }
}

static void parses_as(const char *text, const char *expected) {
  fixture f;
  tn_expr *expr;
  char shown[1024];
  start(&f);
  if (tn_syntax_expr(&f.t, &f.arena, text, &expr) != TN_OK) fail_msg("%s", tn_error_text(&f.t));
  show(expr, shown);
  assert_string_equal(shown, expected);
  end(&f);
}

static void precedence_is_pythons(void **state) {
  (void)state;
  parses_as("1 + 2 * 3", "(1 + (2 * 3))");
  parses_as("(1 + 2) * 3", "((1 + 2) * 3)");
  parses_as("1 - 2 - 3", "((1 - 2) - 3)");
  parses_as("8 // 3 / 2 % 5", "(((8 // 3) / 2) % 5)");
  parses_as("-a * b", "((- a) * b)");
  parses_as("a - -b", "(a - (- b))");
  parses_as("- - 1", "(- (- 1))");
  parses_as("not a == b", "(not (a == b))");
  parses_as("not not a", "(not (not a))");
  parses_as("not a and b or c", "(((not a) and b) or c)");
  parses_as("a or b and c", "(a or (b and c))");
  parses_as("a + 1 < b * 2 and c", "(((a + 1) < (b * 2)) and c)");
  parses_as("a < b < c", "((a < b) and (b < c))");
  parses_as("a<=b>=c!=d", "(((a <= b) and (b >= c)) and (c != d))");
  parses_as("notable or orange", "(notable or orange)");
  parses_as("-a ** 2", "(- (a ** 2))");
  parses_as("2 ** -1 ** b", "(2 ** (- (1 ** b)))");
  parses_as("a * b ** c", "(a * (b ** c))");
  parses_as("a if b else c if d else e", "(a if b else (c if d else e))");
  parses_as("f(a or b if c else not d)", "f(((a or b) if c else (not d)))");
}

static void all_kinds_of_expressions_are_read(void **state) {
  (void)state;
  parses_as("42", "42");
  parses_as("dims(data.x)", "dims(data.x)");
  parses_as("layer1.0 + op.add(data.x, 1)", "(layer1.0 + op.add(data.x,1))");
  parses_as("1e-3", "0.001f");
  parses_as(".5", "0.5f");
  parses_as("2.", "2f");
  parses_as("[1, [2, x], f(3)]", "[1,[2,x],f(3)]");
  parses_as("[]", "[]");
  parses_as("normal(0, std=0.02)", "normal(0,std=0.02f)");
  parses_as("f()", "f()");
  parses_as("@transformer.wte.weight", "@transformer.wte.weight");
  parses_as("dim(in, -1)", "dim(in;(- 1))");
  parses_as("dim(data.label, 0) == 3", "(dim(data.label;0) == 3)");
  parses_as("dim", "dim");
  parses_as(" a\n + b ", "(a + b)");
}

static void a_line_has_names_items_refs_and_a_condition(void **state) {
  fixture f;
  (void)state;
  start(&f);
  tn_line *l =
      parse_lines(&f,
                  "[m]\nx =\n  a, b.0.c{i}: conv(64, kernel=3, bias=no) * 2, @d.e, relu() <- in, data.x.1 "
                  "if n > 1\n",
                  1);
  assert_int_equal(l->n_names, 2);
  assert_string_equal(l->names[1], "b.0.c{i}");
  assert_int_equal(l->n_items, 3);
  assert_string_equal(l->items[0].layer, "conv");
  assert_int_equal(l->items[0].n_args, 3);
  assert_null(l->items[0].args[0].name);
  assert_string_equal(l->items[0].args[2].name, "bias");
  assert_string_equal(l->items[0].args[2].value->word, "no");
  assert_true(l->items[0].repeat->number == 2);
  assert_null(l->items[1].layer);
  assert_string_equal(l->items[1].shared, "d.e");
  assert_string_equal(l->items[2].layer, "relu");
  assert_int_equal(l->items[2].n_args, 0);
  assert_int_equal(l->n_refs, 2);
  assert_string_equal(l->refs[1], "data.x.1");
  assert_int_equal(l->condition->op, TN_BIN_GT);
  assert_string_equal(l->file, "t.ini");
  assert_int_equal(l->line, 3);
  end(&f);
}

static void lines_join_in_brackets_and_after_commas(void **state) {
  fixture f;
  (void)state;
  start(&f);
  tn_line *l = parse_lines(
      &f, "[m]\nlayers =\n  a: conv(1,\n    2\n  )\n  b: x,\n\n  # note\n     y <- a,\n   b\n  z\n", 3);
  assert_int_equal(l[0].line, 3);
  assert_int_equal(l[0].items[0].n_args, 2);
  assert_int_equal(l[1].line, 6);
  assert_int_equal(l[1].n_items, 2);
  assert_int_equal(l[1].n_refs, 2);
  assert_int_equal(l[2].line, 11);
  assert_int_equal(l[2].n_names, 0);
  end(&f);
}

static void an_empty_value_has_no_lines(void **state) {
  fixture f;
  (void)state;
  start(&f);
  parse_lines(&f, "[m]\nlayers =\n", 0);
  end(&f);
}

static void the_resnet_block_of_the_guide_is_read(void **state) {
  fixture f;
  (void)state;
  start(&f);
  tn_line *l = parse_lines(&f,
                           "[block bottleneck]\nlayers =\n    conv1: conv2d(planes, kernel=1, bias=no)\n"
                           "    bn1:   batch_norm\n           relu\n"
                           "    downsample: conv2d(4*planes, kernel=1, stride=stride, bias=no),\n"
                           "                batch_norm <- in if stride != 1 or dim(in, 1) != 4*planes\n"
                           "           add <- conv1, downsample\n",
                           5);
  char shown[512];
  show(l[3].condition, shown);
  assert_string_equal(shown, "((stride != 1) or (dim(in;1) != (4 * planes)))");
  assert_int_equal(l[3].n_items, 2);
  assert_string_equal(l[3].refs[0], "in");
  assert_int_equal(l[4].n_refs, 2);
  end(&f);
}

static void a_line_can_come_from_text(void **state) {
  fixture f;
  tn_line line;
  (void)state;
  start(&f);
  assert_int_equal(tn_syntax_line(&f.t, &f.arena, " linear(128) ", "x.ini", 9, &line), TN_OK);
  assert_string_equal(line.items[0].layer, "linear");
  assert_int_equal(line.line, 9);
  assert_int_equal(tn_syntax_line(&f.t, &f.arena, "a\nb", "x.ini", 9, &line), TN_EINVAL);
  assert_string_equal(tn_error_text(&f.t), "x.ini:9: expected a single line, found 'b'");
  assert_int_equal(tn_syntax_line(&f.t, &f.arena, "", "x.ini", 9, &line), TN_EINVAL);
  assert_string_equal(tn_error_text(&f.t), "x.ini:9: expected a layer, found the end of the line");
  assert_int_equal(tn_syntax_line(&f.t, &f.arena, "f(", NULL, 0, &line), TN_EINVAL);
  assert_string_equal(tn_error_text(&f.t), "'(' is never closed");
  end(&f);
}

static void an_override_has_no_line_but_a_place(void **state) {
  fixture f;
  tn_line *lines;
  int32_t n;
  (void)state;
  start(&f);
  assert_int_equal(tn_ini_parse(&f.t, "", "t.ini", ".", &f.ini), TN_OK);
  assert_int_equal(tn_ini_set(&f.t, &f.ini, "model.layers=a b"), TN_OK);
  assert_int_equal(tn_syntax_lines(&f.t, &f.arena, &f.ini.sections[0].keys[0], NULL, &lines, &n), TN_EINVAL);
  assert_string_equal(
      tn_error_text(&f.t),
      "--set model.layers: expected '(', '*', ',', '<-', 'if' or the end of the line, found 'b'");
  end(&f);
}

/* Lines with syntax errors and their messages. */
static const char *const wrong_lines[][2] = {
    {"conv(64", "t.ini:3: '(' is never closed"},
    {"a: relu\n  conv([1, 2)\n  b: relu", "t.ini:4: '(' is never closed"},
    {"conv(64 3)", "t.ini:3: expected ',' or ')', found '3'"},
    {"conv(64,)", "t.ini:3: expected a value, found ')'"},
    {"conv(,64)", "t.ini:3: expected a value, found ','"},
    {"conv(kernel=)", "t.ini:3: expected a value, found ')'"},
    {"conv(kernel=3, 64)", "t.ini:3: a positional argument follows 'kernel=', expected name=value"},
    {"conv(k=3, k=4)", "t.ini:3: the argument 'k' is given twice"},
    {"conv(3k)", "t.ini:3: expected a number, found '3k'"},
    {"conv(1.2.3)", "t.ini:3: expected a number, found '1.2.3'"},
    {"conv(9007199254740993)", "t.ini:3: the number 9007199254740993 is too large"},
    {"conv(1e999)", "t.ini:3: the number 1e999 is too large"},
    {"conv(1))", "t.ini:3: expected '(', '*', ',', '<-', 'if' or the end of the line, found ')'"},
    {"conv[1]", "t.ini:3: '[' stands behind a layer, expected a line that computes, as in `y = relu(x)[0]`"},
    {"a: b: relu", "t.ini:3: expected '(', '*', ',', '<-', 'if' or the end of the line, found ':'"},
    {"a:", "t.ini:3: expected a layer, found the end of the line"},
    {"a: 3", "t.ini:3: expected a layer, found '3'"},
    {"relu,", "t.ini:3: expected a layer, found the end of the line"},
    {"relu relu", "t.ini:3: expected '(', '*', ',', '<-', 'if' or the end of the line, found 'relu'"},
    {"relu <-", "t.ini:3: expected the name of a value, found the end of the line"},
    {"relu <- a b", "t.ini:3: expected ',', 'if' or the end of the line, found 'b'"},
    {"relu <- 1x", "t.ini:3: expected a number, found '1x'"},
    {"relu <- a{i}", "t.ini:3: expected ',', 'if' or the end of the line, found '{'"},
    {"relu if", "t.ini:3: expected a value, found the end of the line"},
    {"relu if a b", "t.ini:3: expected an operator or the end of the line, found 'b'"},
    {"relu if a = b", "t.ini:3: expected an operator or the end of the line, found '='"},
    {"relu if a <- b", "t.ini:3: expected an operator or the end of the line, found '<-'"},
    {"relu if if", "t.ini:3: expected a value, found 'if'"},
    {"relu *", "t.ini:3: expected a value, found the end of the line"},
    {"if: relu", "t.ini:3: the name 'if' is a word of the language, expected another"},
    {"a{i}.b{i}: relu", "t.ini:3: the name 'a{i}.b{i}' has '{i}' twice, expected at most once"},
    {"not", "t.ini:3: expected a layer, found 'not'"},
    {"@", "t.ini:3: expected a name after '@', found the end of the line"},
    {"f(dim(in))", "t.ini:3: expected ',' and a dimension, found ')'"},
    {"f(dim(in, 1, 2))", "t.ini:3: expected ')', found ','"},
    {"f(dim(3+4, 1))", "t.ini:3: expected ',' and a dimension, found '+'"},
    {"f([1, 2)]", "t.ini:3: expected ',' or ']', found ')'"},
    {"f((1, 2))", "t.ini:3: expected ')', found ','"},
    {"f(a,\n\n  b\n  c)", "t.ini:6: expected ',' or ')', found 'c'"},
    {"f(\"a\")", "t.ini:3: expected a value, found '\"'"},
    {"f(\xC3\xA4)", "t.ini:3: expected a value, found '\xC3\xA4'"},
    {"a.: relu", "t.ini:3: expected '(', '*', ',', '<-', 'if' or the end of the line, found '.'"},
    {"f(a = = 3)", "t.ini:3: expected a value, found '='"},
    {"f(1 +)", "t.ini:3: expected a value, found ')'"},
    {"y = a <- b", "t.ini:3: '<-' stands in a line with '=', expected the values in brackets, as in `y = "
                   "relu(x)`, or ':' in place of '='"},
    {"y = a @ b", "t.ini:3: '@' is no operator here, expected matmul(a, b)"},
    {"y = a ^ 2", "t.ini:3: '^' is no operator here, expected a ** b for a power"},
    {"y = (a > 0) & b", "t.ini:3: '&' is no operator here, expected a and b"},
    {"y = a[]", "t.ini:3: expected an index, as in x[:, -1], found ']'"},
    {"y = a[0", "t.ini:3: '[' is never closed"},
    {"y = a[0:1:2:3]", "t.ini:3: expected ',' or ']', found ':'"},
    {"y = a[,0]", "t.ini:3: expected an index, as in x[:, -1], found ','"},
    {"y = a[0 1]", "t.ini:3: expected ',', ':' or ']', found '1'"},
    {"y = a[..., 0)]", "t.ini:3: expected ',', ':' or ']', found ')'"},
    {"y: relu(a)[0]",
     "t.ini:3: '[' stands behind a layer, expected a line that computes, as in `y = relu(x)[0]`"},
    {"y = f(a).mean()",
     "t.ini:3: '.' stands behind a bracket, expected the value in brackets, as in sum(abs(x))"},
    {"y = a if b", "t.ini:3: expected 'else' and the other value, found the end of the line"},
    {"y = a if b else", "t.ini:3: expected a value, found the end of the line"},
    {"y =", "t.ini:3: expected a value, found the end of the line"},
    {"y = a, b", "t.ini:3: expected an operator or the end of the line, found ','"},
    {"y = a **", "t.ini:3: expected a value, found the end of the line"},
    {"y{i} = a",
     "t.ini:3: the name 'y{i}' has '{i}', expected none in front of '=', where nothing is repeated"},
    {"a{i+}: relu", "t.ini:3: expected '(', '*', ',', '<-', 'if' or the end of the line, found '{'"},
    {"relu <- a + ", "t.ini:3: expected a value, found the end of the line"},
    {"relu <- a + b if c else d", "t.ini:3: expected an operator or the end of the line, found 'else'"},
    {"f(dims())", "t.ini:3: expected the name of a value, found ')'"},
    {"f(dims(a, 1))", "t.ini:3: expected ')', found ','"},
    {"f(a.)", "t.ini:3: expected the name of a value, found 'a.'"},
    {"f(* 2)", "t.ini:3: expected a value, found '*'"},
};

static void every_wrong_line_has_its_message(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(wrong_lines) / sizeof(wrong_lines[0]); i++) {
    fixture f;
    tn_line *lines;
    int32_t n;
    char text[256];
    start(&f);
    snprintf(text, sizeof(text), "[m]\nlayers =\n  %s\n", wrong_lines[i][0]);
    tn_status status = try_lines(&f, text, &lines, &n);
    if (status != TN_EINVAL || strcmp(tn_error_text(&f.t), wrong_lines[i][1]) != 0)
      fail_msg("%s: status %d\n   got: %s\nwanted: %s", wrong_lines[i][0], status, tn_error_text(&f.t),
               wrong_lines[i][1]);
    end(&f);
  }
}

static void an_expression_says_what_it_was(void **state) {
  fixture f;
  tn_expr *expr;
  (void)state;
  start(&f);
  assert_int_equal(tn_syntax_expr(&f.t, &f.arena, "1 +", &expr), TN_EINVAL);
  assert_string_equal(tn_error_text(&f.t), "'1 +': expected a value, found the end of the line");
  assert_null(expr);
  assert_int_equal(tn_syntax_expr(&f.t, &f.arena, "a b", &expr), TN_EINVAL);
  assert_string_equal(tn_error_text(&f.t),
                      "'a b': expected an operator or the end of the expression, found 'b'");
  end(&f);
}

static char *append(char *at, const char *text) {
  size_t n = strlen(text);
  memcpy(at, text, n + 1);
  return at + n;
}

/* prefix n times, middle, suffix n times */
static char *nest(const char *prefix, const char *middle, const char *suffix, int n) {
  char *text = malloc((strlen(prefix) + strlen(suffix)) * (size_t)n + strlen(middle) + 1), *at = text;
  assert_non_null(text);
  for (int i = 0; i < n; i++) at = append(at, prefix);
  at = append(at, middle);
  for (int i = 0; i < n; i++) at = append(at, suffix);
  return text;
}

static tn_status parse_nested(const char *prefix, const char *suffix, int n, char *message) {
  fixture f;
  tn_expr *expr;
  char *text = nest(prefix, "1", suffix, n);
  start(&f);
  tn_status status = tn_syntax_expr(&f.t, &f.arena, text, &expr);
  const char *end_of_text = strrchr(tn_error_text(&f.t), ':');
  strcpy(message, end_of_text != NULL ? end_of_text + 2 : "");
  end(&f);
  free(text);
  return status;
}

static void deep_nesting_is_an_error_and_no_crash(void **state) {
  static const char *const pairs[][2] = {{"(", ")"}, {"[", "]"},   {"f(", ")"},
                                         {"- ", ""}, {"not ", ""}, {"f(a=", ")"}};
  char message[2048];
  (void)state;
  for (size_t i = 0; i < 6; i++) {
    assert_int_equal(parse_nested(pairs[i][0], pairs[i][1], 99, message), TN_OK);
    assert_int_equal(parse_nested(pairs[i][0], pairs[i][1], 101, message), TN_EINVAL);
    assert_int_equal(parse_nested(pairs[i][0], pairs[i][1], 200000, message), TN_EINVAL);
  }
  fixture f;
  tn_line line;
  start(&f);
  char *text = nest("f(", "1", ")", 200);
  assert_int_equal(tn_syntax_line(&f.t, &f.arena, text, "t.ini", 1, &line), TN_EINVAL);
  assert_string_equal(tn_error_text(&f.t), "t.ini:1: the expression nests deeper than 100 levels");
  free(text);
  end(&f);
}

static void endless_chains_of_operators_are_an_error(void **state) {
  fixture f;
  tn_line line;
  (void)state;
  start(&f);
  char *sum = nest("", "a * 1", " + 1", 900);
  assert_int_equal(tn_syntax_line(&f.t, &f.arena, sum, "t.ini", 1, &line), TN_OK);
  free(sum);
  char *chain = nest("", "a if 1", " < 1", 100000);
  assert_int_equal(tn_syntax_line(&f.t, &f.arena, chain, "t.ini", 1, &line), TN_EINVAL);
  assert_string_equal(tn_error_text(&f.t), "t.ini:1: the line has more than 1000 operators");
  free(chain);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(precedence_is_pythons),
      cmocka_unit_test(all_kinds_of_expressions_are_read),
      cmocka_unit_test(a_line_has_names_items_refs_and_a_condition),
      cmocka_unit_test(lines_join_in_brackets_and_after_commas),
      cmocka_unit_test(an_empty_value_has_no_lines),
      cmocka_unit_test(the_resnet_block_of_the_guide_is_read),
      cmocka_unit_test(a_line_can_come_from_text),
      cmocka_unit_test(an_override_has_no_line_but_a_place),
      cmocka_unit_test(every_wrong_line_has_its_message),
      cmocka_unit_test(an_expression_says_what_it_was),
      cmocka_unit_test(deep_nesting_is_an_error_and_no_crash),
      cmocka_unit_test(endless_chains_of_operators_are_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
