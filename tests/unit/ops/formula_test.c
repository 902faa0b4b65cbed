/* Tests of formulas: their values, the emitted ops, and the errors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/conformance/reference/reference.h"
#include "core/graph/op/schema.h"
#include "tests/unit/ops/graph_text.h"
#include "tenon/ops.h"

/* ---- an op with a formula ---- */

typedef struct options {
  double beta;
  int64_t order;
  int32_t inverse, kind;
  const char *label;
} options;

static const tn_option option_table[] = {TN_OPT(options, beta, TN_OPT_FLOAT, "0.5", NULL, "a factor"),
                                         TN_OPT(options, order, TN_OPT_INT, "3", NULL, "an exponent"),
                                         TN_OPT(options, inverse, TN_OPT_FLAG, "no", NULL, "which branch"),
                                         TN_OPT(options, kind, TN_OPT_ENUM, "b", "a|b", "which kind"),
                                         TN_OPT(options, label, TN_OPT_TEXT, "none", NULL, "no number"),
                                         TN_OPT_END};
static const options defaults = {0.5, 3, 0, 1, "none"};

static tn_op op_with(const char *schema, const char *formula) {
  return (tn_op){.item = TN_ITEM(tn_op, TN_OP, "test", "of formulas", options, option_table),
                 .schema = schema,
                 .op_class = TN_CLASS_POINTWISE,
                 .formula = formula};
}

/* A graph with the op's decomposition: inputs x, z and c, output y. */
typedef struct bench {
  tn_arena arena;
  tn_op op;
  const tn_op_def *def;
  tn_graph *graph;
  tn_builder *builder;
} bench;

static tn_status bench_open(bench *t, fixture *f, const char *schema, const char *formula,
                            const tn_type *types) {
  static const char *const names[] = {"x", "z", "c"};
  tn_val in[3], out;
  *t = (bench){.arena = tn_arena_new(&f->env), .op = op_with(schema, formula)};
  TN_TRY(tn_op_def_create(&f->env, &t->arena, &t->op, &t->def));
  TN_TRY(tn_graph_create(&f->env, f->ops, &t->graph));
  TN_TRY(tn_builder_create(t->graph, &t->builder));
  for (int32_t i = 0; i < t->def->n_operands; i++) in[i] = tn_graph_input(t->graph, names[i], &types[i]);
  tn_status status =
      tn_decompose(tn_builder_handle(t->builder), t->def, &defaults, in, t->def->n_operands, 1, &out);
  if (status != TN_OK) return tn_error_move(&f->env, tn_builder_handle(t->builder));
  return tn_graph_output(t->graph, "y", out);
}

static void bench_close(bench *t) {
  tn_builder_destroy(t->builder);
  tn_graph_destroy(t->graph);
  tn_arena_free(&t->arena);
}

/* The emitted ops, "mul affine". */
static void list_ops(const tn_graph *g, char *text, size_t size) {
  size_t n = 0;
  text[0] = '\0';
  for (size_t i = 0; i < g->nodes.n; i++) {
    const char *op = g->nodes.v[i].op->item.name;
    if (strcmp(op, "input") == 0) continue;
    n += (size_t)snprintf(text + n, size - n, "%s%s", n > 0 ? " " : "", op);
  }
}

/* ---- values ---- */

static const double X = 0.75, Z = -1.25;
typedef struct example {
  const char *formula;
  double y;        /* for x = 0.75, z = -1.25 */
  const char *ops; /* NULL: not checked */
} example;

static void compute(fixture *f, const example *e) {
  static const tn_type scalars[3] = {{TN_F64, 0, {0}}, {TN_F64, 0, {0}}, {TN_BOOL, 0, {0}}};
  bench t;
  char ops[256];
  tn_reference *r = NULL;
  if (bench_open(&t, f, "(x:T, z:T, c:bool) -> (y:T)", e->formula, scalars) != TN_OK)
    fail_msg("%s: %s", e->formula, tn_error_text(&f->env));
  list_ops(t.graph, ops, sizeof ops);
  if (e->ops != NULL && strcmp(ops, e->ops) != 0)
    fail_msg("%s emits %s, expected %s", e->formula, ops, e->ops);
  assert_int_equal(tn_reference_create(t.graph, &r), TN_OK);
  double *in[3] = {tn_reference_input(r, "x"), tn_reference_input(r, "z"), tn_reference_input(r, "c")};
  if (in[0] != NULL) in[0][0] = X;
  if (in[1] != NULL) in[1][0] = Z;
  if (in[2] != NULL) in[2][0] = 1;
  assert_int_equal(tn_reference_run(r), TN_OK);
  double y = tn_reference_output(r, "y", NULL)[0];
  if (!(fabs(y - e->y) <= 1e-12)) fail_msg("%s is %.17g, expected %.17g", e->formula, y, e->y);
  tn_reference_destroy(r);
  bench_close(&t);
}

static const example values[] = {
    {"y = x", 0.75, ""},
    {"y=2*x+1", 2.5, "affine"},
    {"y = 1 - 2 * x", -0.5, "affine"},
    {"y = x - 1", -0.25, "affine"},
    {"y = -x", -0.75, "neg"},
    {"y = x * beta", 0.375, "affine"},
    {"y = (1 + 2) * beta", 1.5, "full"},
    {"y = x / 4", 0.1875, "affine"},
    {"y = x / 3", 0.25, "full div"},
    {"y = 1 / x", 1 / 0.75, "reciprocal"},
    {"y = 3 / x", 4, "full div"},
    {"y = x * z + x - z", 0.75 * -1.25 + 0.75 + 1.25, "mul add sub"},
    {"y = x - z - x", 1.25, NULL},
    {"y = x / z / x", -0.8, NULL},
    {"y = x^2", 0.5625, "mul"},
    {"y = x^order", 0.421875, "mul mul"},
    {"y = x^4", 0.31640625, "mul mul"},
    {"y = x^-1", 1 / 0.75, "reciprocal"},
    {"y = x^0.5", 0.8660254037844386, "sqrt"},
    {"y = x^-0.5", 1.1547005383792517, "rsqrt"},
    {"y = x^z", 1.4327599090980558, "pow"},
    {"y = 2^3^2", 512, NULL},
    {"y = -2^2", -4, NULL},
    {"y = -x^2", -0.5625, "mul neg"},
    {"y = (-x)^2", 0.5625, "neg mul"},
    {"y = 1e-2 * x + 1.5E+1", 15.0075, "affine"},
    {"y = x / (1 + exp(-beta * x))", 0.75 / (1 + 0.6872892787909722), "affine exp affine div"},
    {"y = maximum(x, z) + minimum(x, 0)", 0.75, NULL},
    {"y = sqrt(4) * x", 1.5, NULL},
    {"y = x if x > 0 else z", 0.75, "full gt where"},
    {"y = x if x < z else z if c else 0", -1.25, NULL},
    {"y = 1 if not c else 2", 2, NULL},
    {"y = 1 if c and x > 0 or z > 0 else 0", 1, NULL},
    {"y = x if inverse else z", -1.25, ""},
    {"y = x if kind == 1 and not inverse else z", 0.75, ""},
    {"y = x if c and kind == 0 else z", -1.25, ""},
    {"y = where(c, x, 3)", 0.75, NULL},
    {"w = x * z; y = w + w", 2 * 0.75 * -1.25, "mul add"},
    {"u = 2 * beta; w = u * x; y = w * w", 0.5625, "mul"},
    {"a = x if inverse else z; b = exp(a); y = b if kind else 1 / b", 0.28650479686019, "exp"},
    {"y = exp(x) if inverse else sin(x) if kind else cos(x)", 0.68163876002333, "sin"},
    {"y = (exp(x) if c else sin(x)) if not inverse else cos(x)", 2.11700001661267, "exp sin where"},
    {"y = leaky_relu(z, slope=beta / 2)", -0.3125, "leaky_relu"},
    {"y = gelu(x, approximate = 2 > 1)", 0.57996055516562028, NULL},
    {"y = sin(pi * x)", 0.70710678118654752, "affine sin"},
    {"y = x if x < inf else nan", 0.75, NULL},
    {"y = 1 if x < largest and not whole else 0", 1, NULL},
    {"y = x if 1 <= 2 and 2 >= 2 and 1 != 2 and 3 > 2 else z", 0.75, ""},
};

static void arithmetic_follows_the_precedence_of_python(void **state) {
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) compute(*state, &values[i]);
}

/* ---- types ---- */

static void the_result_has_the_broadcast_dims_of_all_operands(void **state) {
  static const tn_type types[2] = {{TN_F32, 2, {3, 1}}, {TN_F32, 3, {2, 1, 4}}};
  bench t;
  assert_int_equal(bench_open(&t, *state, "(x:T, z:T) -> (y:T)", "y = x + 1", types), TN_OK);
  const tn_type expected = {TN_F32, 3, {2, 3, 4}};
  assert_true(tn_type_equal(tn_graph_type(t.graph, tn_graph_find_output(t.graph, "y")), &expected));
  bench_close(&t);
}

static void half_floats_are_computed_in_f32(void **state) {
  static const tn_type types[1] = {{TN_BF16, 1, {3}}};
  bench t;
  char ops[256];
  assert_int_equal(bench_open(&t, *state, "(x:T) -> (y:T)", "y = x * x + x", types), TN_OK);
  list_ops(t.graph, ops, sizeof ops);
  assert_string_equal(ops, "cast mul add cast");
  bench_close(&t);
}

static void comparisons_and_integers_work(void **state) {
  static const tn_type types[1] = {{TN_I32, 1, {3}}};
  bench t;
  char ops[256];
  assert_int_equal(bench_open(&t, *state, "(x:T) -> (y:bool)", "y = x * 2 + 1 > 3", types), TN_OK);
  list_ops(t.graph, ops, sizeof ops);
  assert_string_equal(ops, "full mul full add full gt");
  bench_close(&t);
}

/* One step that rounds rounds as the kernel does anyway; exact ones do not count. */
static void one_rounded_step_needs_no_cast(void **state) {
  static const tn_type types[2] = {{TN_F16, 1, {3}}, {TN_F16, 1, {3}}};
  static const struct {
    const char *formula, *ops;
  } rows[] = {{"y = maximum(x, 0)", "full maximum"},
              {"y = x * z if x > 0 else -x", "full gt mul neg where"},
              {"y = x if x > 0.1 else z", "cast full gt cast where cast"},
              {"y = x * beta", "cast affine cast"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    bench t;
    char ops[256];
    assert_int_equal(bench_open(&t, *state, "(x:T, z:T) -> (y:T)", rows[i].formula, types), TN_OK);
    list_ops(t.graph, ops, sizeof ops);
    assert_string_equal(ops, rows[i].ops);
    bench_close(&t);
  }
}

static void division_of_integers_is_refused(void **state) {
  static const tn_type types[2] = {{TN_I32, 1, {3}}, {TN_I32, 1, {3}}};
  bench t;
  assert_int_not_equal(bench_open(&t, *state, "(x:T, z:T) -> (y:T)", "y = x / 2", types), TN_OK);
  bench_close(&t);
}

/* ---- errors ---- */

typedef struct mistake {
  const char *formula, *says;
} mistake;

static const mistake mistakes[] = {
    {"", "column 1: expected the name of the op's result, found the end"},
    {"z = x", "column 1: expected a new name, found \"z = x\""},
    {"y x", "column 3: expected \"=\", found \"x\""},
    {"y = ", "expected a number, a name or \"(\", found the end"},
    {"y = x +", "expected a number, a name or \"(\", found the end"},
    {"y = (x", "expected \")\", found the end"},
    {"y = x) + 1", "column 6: expected an operator, \";\" or the end, found \") + 1\""},
    {"y = gamma * x",
     "column 5: expected an operand, an earlier name or a numeric option, found \"gamma * x\""},
    {"y = label * x", "expected an operand, an earlier name or a numeric option"},
    {"y = x if x > 0", "expected \"else\""},
    {"y = exp(x", "expected \",\" or \")\""},
    {"y = 1.2.3 * x", "expected a number"},
    {"y = x; z = x", "column 8: expected a new name, found \"z = x\""},
    {"y = x; w = x", "column 8: expected the name of the op's result, or a name that a later statement uses"},
    {"w = w; y = w", "column 5: expected an operand, an earlier name or a numeric option"},
    {"w = x; w = z; y = w", "column 8: expected a new name"},
    {"pi = x; y = pi", "column 1: expected a new name"},
    {"w = x; y", "column 9: expected \"=\""},
    {"w = x;", "column 7: expected the name of the op's result, found the end"},
    {"w = x y", "column 7: expected an operator, \";\" or the end"},
    {"y = leaky_relu(x, slope=z)", "column 19: expected an attribute that is known while compiling"},
    {"y = leaky_relu(x, incline=2)", "incline"},
    {"y = softmax(x)", "column 5: expected a pointwise op, found \"softmax(x)\""},
    {"y = expp(x)", "expp"},
    {"y = exp(x, z)", "exp"},
    {"y = maximum(1,2,3,4,5,6,7,8,9)", "expected at most 8 arguments"},
};

static void mistakes_are_shown_with_their_column(void **state) {
  static const tn_type types[2] = {{TN_F32, 1, {2}}, {TN_F32, 1, {2}}};
  fixture *f = *state;
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    bench t;
    if (bench_open(&t, f, "(x:T, z:T) -> (y:T)", mistakes[i].formula, types) == TN_OK)
      fail_msg("\"%s\" was accepted", mistakes[i].formula);
    if (strstr(tn_error_text(&f->env), mistakes[i].says) == NULL)
      fail_msg("\"%s\" says\n  %s\nexpected\n  %s", mistakes[i].formula, tn_error_text(&f->env),
               mistakes[i].says);
    bench_close(&t);
  }
}

static void brackets_without_end_are_refused(void **state) {
  fixture *f = *state;
  char formula[4096] = "y = ";
  memset(formula + 4, '(', 4000);
  tn_op op = op_with("(x:T) -> (y:T)", formula);
  const tn_op_def *def = NULL;
  tn_arena arena = tn_arena_new(&f->env);
  assert_int_not_equal(tn_op_def_create(&f->env, &arena, &op, &def), TN_OK);
  memset(formula + 4, '-', 4000);
  assert_int_not_equal(tn_op_def_create(&f->env, &arena, &op, &def), TN_OK);
  tn_arena_free(&arena);
}

static void long_chains_of_operators_are_accepted(void **state) {
  static const tn_type types[1] = {{TN_F64, 0, {0}}};
  enum { TERMS = 1000 }; /* a formula has at most 4096 bytes */
  static char formula[4 * TERMS + 8] = "y = x";
  for (int32_t i = 1; i < TERMS; i++) strcpy(formula + 5 + 4 * (i - 1), " + x");
  bench t;
  assert_int_equal(bench_open(&t, *state, "(x:T) -> (y:T)", formula, types), TN_OK);
  assert_int_equal(t.def->formula.stack, 2);
  assert_int_equal(t.graph->nodes.n, TERMS);
  bench_close(&t);
}

static void an_absent_operand_is_refused(void **state) {
  fixture *f = *state;
  tn_op op = op_with("(x:T, z?:T) -> (y:T)", "y = x");
  const tn_op_def *def = NULL;
  tn_arena arena = tn_arena_new(&f->env);
  tn_graph *graph = NULL;
  tn_builder *builder = NULL;
  tn_type type = {TN_F32, 0, {0}};
  tn_val in[2] = {0, 0}, out;
  assert_int_equal(tn_op_def_create(&f->env, &arena, &op, &def), TN_OK);
  assert_int_equal(tn_graph_create(&f->env, f->ops, &graph), TN_OK);
  assert_int_equal(tn_builder_create(graph, &builder), TN_OK);
  in[0] = tn_graph_input(graph, "x", &type);
  assert_int_equal(tn_decompose(tn_builder_handle(builder), def, &defaults, in, 2, 1, &out), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(tn_builder_handle(builder)), "operand z is absent"));
  tn_builder_destroy(builder);
  tn_graph_destroy(graph);
  tn_arena_free(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arithmetic_follows_the_precedence_of_python),
      cmocka_unit_test(the_result_has_the_broadcast_dims_of_all_operands),
      cmocka_unit_test(half_floats_are_computed_in_f32),
      cmocka_unit_test(comparisons_and_integers_work),
      cmocka_unit_test(one_rounded_step_needs_no_cast),
      cmocka_unit_test(division_of_integers_is_refused),
      cmocka_unit_test(mistakes_are_shown_with_their_column),
      cmocka_unit_test(brackets_without_end_are_refused),
      cmocka_unit_test(long_chains_of_operators_are_accepted),
      cmocka_unit_test(an_absent_operand_is_refused),
  };
  return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
