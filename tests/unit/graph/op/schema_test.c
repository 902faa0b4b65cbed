/* Op schemas and the consistency of descriptors. */
#include <stdio.h>

#include "tests/unit/graph/rig.h"

#include "core/graph/op/schema.h"

static rig R;
static tn_arena arena;

static int set_up(void **state) {
  (void)state;
  rig_start(&R, -1);
  arena = tn_arena_new(&R);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  tn_arena_free(&arena);
  return R.blocks != 0;
}

static tn_op op_with(const char *schema) {
  tn_op op = {
      .item = TN_ITEM_PLAIN(tn_op, TN_OP, "probe", ""), .schema = schema, .op_class = TN_CLASS_POINTWISE};
  return op;
}

static const tn_op_def *def_of(const tn_op *op) {
  const tn_op_def *def;
  assert_ok(&R, tn_op_def_create(&R, &arena, op, &def));
  return def;
}

static void refused(const tn_op *op, const char *text) {
  const tn_op_def *def;
  tn_status status = tn_op_def_create(&R, &arena, op, &def);
  assert_error(&R, status, TN_EABI, text);
  assert_null(def);
}

static void refused_schema(const char *schema, const char *text) {
  tn_op op = op_with(schema);
  refused(&op, text);
}

static tn_op op_with_domain(const char *domain) {
  tn_op op = op_with("(x:T, index:i64, table:T) -> (y:T); T in f32 f64");
  op.domain = domain;
  return op;
}

static void operands_know_their_domains(void **state) {
  (void)state;
  tn_op op = op_with_domain("x > 0; index [0, table.-2)");
  const tn_operand_def *in = def_of(&op)->operands;
  assert_true(in[0].has_domain && in[0].domain.low == 0 && in[0].domain.low_open);
  assert_int_equal(in[0].below, -1);
  assert_true(in[1].has_domain && in[1].domain.low == 0 && in[1].domain.high_open && !in[1].domain.low_open);
  assert_int_equal(in[1].below, 2);
  assert_int_equal(in[1].axis, -2);
  assert_false(in[2].has_domain);
}

static void a_domain_that_cannot_be_read_is_refused(void **state) {
  (void)state;
  static const char name[] = "the name of an operand and a range, as in \"x > 0\"",
                    range[] = "a range such as > 0, [0, 1) or [0, x.0) behind the name";
  static const struct {
    const char *domain, *entry, *expected;
  } examples[] = {{"z > 0", "z > 0", name},
                  {"x > 0; ; table > 0", "", name},
                  {"x", "x", range},
                  {"x > 0, table > 0", "x > 0, table > 0", range},
                  {"index [0, shelf.0)", "index [0, shelf.0)", range},
                  {"index [0, table.)", "index [0, table.)", range},
                  {"index [0, table.0", "index [0, table.0", range},
                  {"x [1, 0]", "x [1, 0]", range}};
  for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
    char text[256];
    tn_op op = op_with_domain(examples[i].domain);
    snprintf(text, sizeof text, "op probe: domain \"%s\": '%s': expected %s", examples[i].domain,
             examples[i].entry, examples[i].expected);
    refused(&op, text);
  }
}

static void operands_know_their_marks_and_types(void **state) {
  (void)state;
  tn_op op = op_with(
      "(x:T, w, bias?:A, c:bool, rest*:T) -> (y:T, index:i32, z:any); T in f16 bf16 f32 f64; A in f32");
  const tn_op_def *def = def_of(&op);
  assert_int_equal(def->n_operands, 5);
  assert_int_equal(def->n_results, 3);
  assert_true(def->variadic);
  assert_string_equal(def->operands[0].name, "x");
  assert_int_equal(def->operands[0].letter, 'T');
  assert_int_equal(def->operands[1].letter, 0);
  assert_int_equal(def->operands[1].dtype, TN_ANY);
  assert_true(def->operands[2].optional);
  assert_int_equal(def->operands[3].dtype, TN_BOOL);
  assert_true(def->operands[4].variadic);
  assert_ptr_equal(tn_op_def_operand(def, 7), &def->operands[4]);
  assert_int_equal(def->results[1].dtype, TN_I32);
  assert_int_equal(def->results[2].dtype, TN_ANY);
  assert_int_equal(def->dtypes['T' - 'A'], 1u << TN_F16 | 1u << TN_BF16 | 1u << TN_F32 | 1u << TN_F64);
  assert_int_equal(def->dtypes['A' - 'A'], 1u << TN_F32);
}

static void a_dtype_may_be_computed_in_another_one(void **state) {
  (void)state;
  tn_op op = op_with("(x:T, index:I) -> (y:T); T in i32 f32, u8 i8 as i32, bool as f32; I in i64");
  const tn_op_def *def = def_of(&op);
  assert_int_equal(def->dtypes['T' - 'A'],
                   1u << TN_I32 | 1u << TN_F32 | 1u << TN_U8 | 1u << TN_I8 | 1u << TN_BOOL);
  assert_int_equal(tn_op_def_wide(def, 0, TN_I8), TN_I32);
  assert_int_equal(tn_op_def_wide(def, 0, TN_BOOL), TN_F32);
  assert_int_equal(tn_op_def_wide(def, 0, TN_F32), TN_F32);
  assert_int_equal(tn_op_def_wide(def, 1, TN_I64), TN_I64);
}

static void an_op_may_have_no_operands_or_no_results(void **state) {
  (void)state;
  tn_op op = op_with(" ( ) -> ( ) ");
  assert_int_equal(def_of(&op)->n_operands, 0);
  assert_int_equal(def_of(&op)->n_results, 0);
}

static void a_wrong_schema_is_refused_with_the_column(void **state) {
  (void)state;
  refused_schema("x -> (y)", "op probe: schema \"x -> (y)\": column 1: expected \"(\"");
  refused_schema("(x", "op probe: schema \"(x\": column 3: expected \",\" or \")\"");
  refused_schema("(x) (y)", "op probe: schema \"(x) (y)\": column 5: expected \"->\"");
  refused_schema("(x) -> y", "op probe: schema \"(x) -> y\": column 8: expected \"(\"");
  refused_schema("(x) -> (y", "op probe: schema \"(x) -> (y\": column 10: expected \",\" or \")\"");
  refused_schema(
      "(x:f33) -> ()",
      "op probe: schema \"(x:f33) -> ()\": column 4: expected an element type such as f32, a capital "
      "letter or any");
  refused_schema("(,) -> ()", "op probe: schema \"(,) -> ()\": column 2: expected a name");
  refused_schema("(xs*, y) -> ()",
                 "op probe: schema \"(xs*, y) -> ()\": column 6: expected \")\" after the operand marked *");
  refused_schema("() -> () T", "op probe: schema \"() -> () T\": column 10: expected \";\" or the end");
  refused_schema("() -> (); t in f32",
                 "op probe: schema \"() -> (); t in f32\": column 11: expected a capital letter");
  refused_schema("() -> (); T of f32", "op probe: schema \"() -> (); T of f32\": column 13: expected \"in\"");
  refused_schema("(x:T) -> (); T in f32, u8 to f32",
                 "op probe: schema \"(x:T) -> (); T in f32, u8 to f32\": column 27: expected \"as\"");
  refused_schema(
      "(x:T) -> (); T in f32, u8 as i32",
      "op probe: schema \"(x:T) -> (); T in f32, u8 as i32\": column 33: expected behind \"as\" one of "
      "the element types in front of \",\"");
  refused_schema("() -> (); T in",
                 "op probe: schema \"() -> (); T in\": column 15: expected an element type such as f32");
  tn_op none = op_with(NULL);
  refused(&none, "op probe has no schema");
}

static tn_status some_rule(tn_build *b, const void *attributes) { return (void)b, (void)attributes, TN_OK; }

static void a_descriptor_that_contradicts_itself_is_refused(void **state) {
  (void)state;
  tn_op op = op_with("(x:T) -> (y:T)");
  op.flags = TN_OP_COMMUTATIVE;
  refused(&op, "op probe is marked TN_OP_COMMUTATIVE, expected two operands or more");
  op = op_with("() -> (y:f32)");
  op.flags = TN_OP_VIEW;
  refused(&op, "op probe is marked TN_OP_VIEW, expected an operand and a result");
  op = op_with("(x:T) -> (y:T)");
  op.formula = "y = x";
  op.grad = some_rule;
  refused(&op, "op probe has a formula: infer, decompose and grad follow from it, expected NULL");
  op = op_with("(x*:T) -> (y:T)");
  op.formula = "y = x";
  refused(&op, "op probe has a formula, expected a result and no operand marked *");
  op = op_with("(x:T) -> (y:T)");
  op.gradient = "dx = dy";
  op.grad = some_rule;
  refused(&op, "op probe has a gradient as text, expected grad NULL and no flag TN_OP_NONDIFF");
}

static void a_formula_is_checked_when_the_op_is_first_met(void **state) {
  (void)state;
  const tn_op_def *def;
  tn_op op = op_with("(x:T) -> (y:T)");
  op.formula = "y = x * ";
  assert_int_equal(tn_op_def_create(&R, &arena, &op, &def), TN_EINVAL);
  static char text[4098] = "y = x";
  while (strlen(text) < 4096) strcat(text, strlen(text) == 4095 ? " " : "*x");
  op.formula = text;
  def_of(&op);
  strcat(text, " ");
  assert_error(
      &R, tn_op_def_create(&R, &arena, &op, &def), TN_EINVAL,
      "formula of op probe: longer than 4096 bytes, expected at most so many; make ops of its parts");
  op.formula = "y = x * x";
  assert_string_equal(def_of(&op)->formula.given[0], "x");
  assert_string_equal(def_of(&op)->formula.targets[0], "y");
  op.gradient = "dx = 2 * x * dy + y";
  assert_string_equal(def_of(&op)->gradient.given[2], "dy");
  op.gradient = "dx = dz";
  assert_error(
      &R, tn_op_def_create(&R, &arena, &op, &def), TN_EINVAL,
      "gradient \"dx = dz\" of op probe: column 6: expected an operand, an earlier name or a numeric "
      "option, found \"dz\"");
  op.gradient = "dw = dy";
  assert_error(
      &R, tn_op_def_create(&R, &arena, &op, &def), TN_EINVAL,
      "gradient \"dw = dy\" of op probe: column 1: expected the gradient of an operand, d and its name, "
      "or a name that a later statement uses, found \"dw = dy\"");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_dtype_may_be_computed_in_another_one, set_up, tear_down),
      cmocka_unit_test_setup_teardown(operands_know_their_marks_and_types, set_up, tear_down),
      cmocka_unit_test_setup_teardown(operands_know_their_domains, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_domain_that_cannot_be_read_is_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(an_op_may_have_no_operands_or_no_results, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_wrong_schema_is_refused_with_the_column, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_descriptor_that_contradicts_itself_is_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_formula_is_checked_when_the_op_is_first_met, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
