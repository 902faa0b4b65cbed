/* Pass `precision` under policies made for these tests. */
#include "tests/unit/run/rig.h"

#include <string.h>

#include "core/step/graphs/training_graph.h"

/* ---- policies ---- */

static int32_t same(const void *options, const tn_precision_site *site) {
  (void)options;
  return site->dtype;
}

/* Products in f16, as in usual policies. */
static int32_t products_in_f16(const void *options, const tn_precision_site *site) {
  (void)options;
  return strcmp(site->op, "matmul") == 0 ? TN_F16 : site->dtype;
}

/* Products in f16, and later ops in f32. */
static int32_t sums_in_f32(const void *options, const tn_precision_site *site) {
  (void)options;
  if (strcmp(site->op, "matmul") == 0) return TN_F16;
  return strcmp(site->op, "reduce_sum") == 0 ? TN_F32 : TN_ANY;
}

/* The first operand of a sum in f16, the second in bf16. */
static int32_t quarrel(const void *options, const tn_precision_site *site) {
  (void)options;
  if (strcmp(site->op, "add") != 0) return site->dtype;
  return site->index == 0 ? TN_F16 : TN_BF16;
}

/* The first operand of a sum in f16; the second unchanged. */
static int32_t half_and_whole(const void *options, const tn_precision_site *site) {
  (void)options;
  return strcmp(site->op, "add") == 0 && site->index == 0 ? TN_F16 : site->dtype;
}

typedef int32_t policy(const void *options, const tn_precision_site *site);

static tn_graph *apply(policy *decide, tn_graph *graph) {
  const tn_precision precision = {.item = {.name = "made-up"}, .decide = decide};
  const tn_settings settings = {.precision = &precision};
  rig_expect_ok(tn_pass_precision(&R.env, &settings, 0, UINT32_MAX, &graph));
  return graph;
}

static void expect(policy *decide, const char *before, const char *after) {
  tn_graph *graph = apply(decide, rig_parse(before));
  rig_expect_text(graph, after);
  tn_graph_destroy(graph);
}

/* ---- cases ---- */

static void a_policy_that_changes_nothing_keeps_the_graph(void **state) {
  (void)state;
  tn_graph *graph = rig_parse("x: f32[2, 3] = input(name=x)\n"
                              "y: f32[2, 3] = relu(x)\n"
                              "output y = y\n");
  assert_ptr_equal(apply(same, graph), graph);
  tn_graph_destroy(graph);
}

static void a_value_is_cast_once_and_a_parameter_has_a_copy(void **state) {
  (void)state;
  expect(products_in_f16,
         "x: f32[2, 3] = input(name=x)\n"
         "a: f32[3, 4] = state(path=a)\n"
         "b: f32[3, 4] = state(path=b)\n"
         "%4: f32[2, 4] = matmul(x, a)\n"
         "%5: f32[2, 4] = matmul(x, b)\n"
         "%6: f32[2, 4] = relu(%4)\n"
         "%7: f32[2, 4] = relu(%5)\n"
         "output p = %6\n"
         "output q = %7\n",
         "x: f32[2, 3] = input(name=x)\n"
         "a: f32[3, 4] = state(path=a)\n"
         "b: f32[3, 4] = state(path=b)\n"
         "%4: f16[2, 3] = cast(x, to=f16)\n"
         "%5: f16[3, 4] = state(path=a:f16, what=derived)\n"
         "%6: f16[2, 4] = matmul(%4, %5)\n"
         "%7: f16[3, 4] = state(path=b:f16, what=derived)\n"
         "%8: f16[2, 4] = matmul(%4, %7)\n"
         "%9: f32[2, 4] = cast(%6, to=f32)\n"
         "%10: f32[2, 4] = relu(%9)\n"
         "%11: f32[2, 4] = cast(%8, to=f32)\n"
         "%12: f32[2, 4] = relu(%11)\n"
         "output p = %10\n"
         "output q = %12\n");
}

/* As of a linear layer: its operand is a matrix of all rows in the gradient of the weight. */
static void a_view_shares_the_cast_of_what_it_views(void **state) {
  (void)state;
  expect(products_in_f16,
         "x: f32[2, 3, 4] = input(name=x)\n"
         "a: f32[4, 4] = state(path=a)\n"
         "%3: f32[2, 3, 4] = relu(x)\n"
         "%4: f32[2, 3, 4] = matmul(%3, a)\n"
         "%5: f32[6, 4] = reshape(%3, dims=[6, 4])\n"
         "%6: f32[4, 4] = matmul(%5, %5, transpose_a=yes)\n"
         "%7: f32[16] = reshape(a, dims=[16])\n"
         "%8: f32[1, 16] = reshape(%7, dims=[1, 16])\n"
         "%9: f32[16, 16] = matmul(%8, %8, transpose_a=yes)\n"
         "output p = %4\n"
         "output q = %6\n"
         "output r = %9\n",
         "x: f32[2, 3, 4] = input(name=x)\n"
         "a: f32[4, 4] = state(path=a)\n"
         "%3: f32[2, 3, 4] = relu(x)\n"
         "%4: f16[2, 3, 4] = cast(%3, to=f16)\n"
         "%5: f16[4, 4] = state(path=a:f16, what=derived)\n"
         "%6: f16[2, 3, 4] = matmul(%4, %5)\n"
         "%7: f32[2, 3, 4] = cast(%6, to=f32)\n"
         "%8: f32[6, 4] = reshape(%3, dims=[6, 4])\n"
         "%9: f16[6, 4] = reshape(%4, dims=[6, 4])\n"
         "%10: f16[4, 4] = matmul(%9, %9, transpose_a=yes)\n"
         "%11: f32[4, 4] = cast(%10, to=f32)\n"
         "%12: f32[16] = reshape(a, dims=[16])\n"
         "%13: f32[1, 16] = reshape(%12, dims=[1, 16])\n"
         "%14: f16[16] = reshape(%5, dims=[16])\n"
         "%15: f16[1, 16] = reshape(%14, dims=[1, 16])\n"
         "%16: f16[16, 16] = matmul(%15, %15, transpose_a=yes)\n"
         "%17: f32[16, 16] = cast(%16, to=f32)\n"
         "output p = %7\n"
         "output q = %11\n"
         "output r = %17\n");
}

static void undecided_operands_keep_their_new_type(void **state) {
  (void)state;
  expect(sums_in_f32,
         "x: f32[2, 3] = input(name=x)\n"
         "a: f32[3, 4] = state(path=a)\n"
         "%3: f32[2, 4] = matmul(x, a)\n"
         "%4: f32[2, 4] = relu(%3)\n"
         "%5: f32[] = reduce_sum(%4)\n"
         "output s = %5\n",
         "x: f32[2, 3] = input(name=x)\n"
         "a: f32[3, 4] = state(path=a)\n"
         "%3: f16[2, 3] = cast(x, to=f16)\n"
         "%4: f16[3, 4] = state(path=a:f16, what=derived)\n"
         "%5: f16[2, 4] = matmul(%3, %4)\n"
         "%6: f16[2, 4] = relu(%5)\n"
         "%7: f32[2, 4] = cast(%6, to=f32)\n"
         "%8: f32[] = reduce_sum(%7)\n"
         "output s = %8\n");
}

static void operands_of_one_letter_get_the_widest_type(void **state) {
  (void)state;
  expect(half_and_whole,
         "x: f32[2] = input(name=x)\n"
         "y: f32[2] = input(name=y)\n"
         "%3: f32[2] = add(x, y)\n"
         "output s = %3\n",
         "x: f32[2] = input(name=x)\n"
         "y: f32[2] = input(name=y)\n"
         "%3: f32[2] = add(x, y)\n"
         "output s = %3\n");
}

static void f16_and_bf16_widen_to_f32(void **state) {
  (void)state;
  expect(quarrel,
         "x: f16[2] = input(name=x)\n"
         "y: f16[2] = input(name=y)\n"
         "%3: f16[2] = add(x, y)\n"
         "output s = %3\n",
         "x: f16[2] = input(name=x)\n"
         "y: f16[2] = input(name=y)\n"
         "%3: f32[2] = cast(x, to=f32)\n"
         "%4: f32[2] = cast(y, to=f32)\n"
         "%5: f32[2] = add(%3, %4)\n"
         "%6: f16[2] = cast(%5, to=f16)\n"
         "output s = %6\n");
}

static void commits_and_outputs_are_cast_back(void **state) {
  (void)state;
  expect(products_in_f16,
         "x: f32[2, 2] = input(name=x)\n"
         "a: f32[2, 2] = state(path=a)\n"
         "%3: f32[2, 2] = matmul(x, a)\n"
         "%4: f32[2, 2] = matmul(x, %3)\n"
         "commit a = %3\n"
         "output y = %4\n",
         "x: f32[2, 2] = input(name=x)\n"
         "a: f32[2, 2] = state(path=a)\n"
         "%3: f16[2, 2] = cast(x, to=f16)\n"
         "%4: f16[2, 2] = state(path=a:f16, what=derived)\n"
         "%5: f16[2, 2] = matmul(%3, %4)\n"
         "%6: f32[2, 2] = cast(%5, to=f32)\n"
         "%7: f16[2, 2] = matmul(%3, %5)\n"
         "%8: f32[2, 2] = cast(%7, to=f32)\n"
         "commit a = %6\n"
         "output y = %8\n");
}

static void the_policy_decides_only_float_operands(void **state) {
  (void)state;
  expect(products_in_f16,
         "i: i32[4] = input(name=i)\n"
         "t: f32[9, 3] = state(path=t)\n"
         "a: f32[3, 2] = state(path=a)\n"
         "%4: f32[4, 3] = embedding(i, t)\n"
         "%5: f32[4, 2] = matmul(%4, a)\n"
         "output y = %5\n",
         "i: i32[4] = input(name=i)\n"
         "t: f32[9, 3] = state(path=t)\n"
         "a: f32[3, 2] = state(path=a)\n"
         "%4: f32[4, 3] = embedding(i, t)\n"
         "%5: f16[4, 3] = cast(%4, to=f16)\n"
         "%6: f16[3, 2] = state(path=a:f16, what=derived)\n"
         "%7: f16[4, 2] = matmul(%5, %6)\n"
         "%8: f32[4, 2] = cast(%7, to=f32)\n"
         "output y = %8\n");
}

/* Products in f16; everything else unchanged. */
static int32_t products_and_followers(const void *options, const tn_precision_site *site) {
  (void)options;
  return strcmp(site->op, "matmul") == 0 ? TN_F16 : TN_ANY;
}

static void a_constant_gets_the_type_if_it_is_representable(void **state) {
  (void)state;
  expect(products_and_followers,
         "x: f32[2, 2] = input(name=x)\n"
         "c: f32[] = full(value=0.5)\n"
         "d: f32[] = full(value=1e-20)\n"
         "%4: f32[2, 2] = matmul(x, x)\n"
         "%5: f32[2, 2] = mul(%4, c)\n"
         "%6: f32[2, 2] = add(%4, d)\n"
         "output y = %5\n"
         "output z = %6\n",
         "x: f32[2, 2] = input(name=x)\n"
         "c: f32[] = full(value=0.5)\n"
         "d: f32[] = full(value=1e-20)\n"
         "%4: f16[2, 2] = cast(x, to=f16)\n"
         "%5: f16[2, 2] = matmul(%4, %4)\n"
         "%6: f16[] = full(value=0.5, dtype=f16)\n"
         "%7: f16[2, 2] = mul(%5, %6)\n"
         "%8: f32[2, 2] = cast(%7, to=f32)\n"
         "%9: f32[2, 2] = cast(%5, to=f32)\n"
         "%10: f32[2, 2] = add(%9, d)\n"
         "output y = %8\n"
         "output z = %10\n");
}

/* The schema of a norm requires f32 statistics for every policy. */
static int32_t norms_in_f16(const void *options, const tn_precision_site *site) {
  (void)options;
  return strcmp(site->op, "batch_norm") == 0 ? TN_F16 : TN_ANY;
}

static void a_type_outside_the_schema_is_ignored(void **state) {
  (void)state;
  expect(norms_in_f16,
         "x: f32[4, 2] = input(name=x)\n"
         "w: f32[2] = input(name=w)\n"
         "%3: f32[4, 2], %4: f32[2], %5: f32[2] = batch_norm(x, w)\n"
         "output y = %3\n"
         "output m = %4\n",
         "x: f32[4, 2] = input(name=x)\n"
         "w: f32[2] = input(name=w)\n"
         "%3: f16[4, 2] = cast(x, to=f16)\n"
         "%4: f16[4, 2], %5: f32[2], %6: f32[2] = batch_norm(%3, w)\n"
         "%7: f32[4, 2] = cast(%4, to=f32)\n"
         "output y = %7\n"
         "output m = %5\n");
}

static int32_t products_in_tf32(const void *options, const tn_precision_site *site) {
  (void)options;
  return site->op_class == TN_CLASS_MATMUL && site->dtype == TN_F32 ? TN_PRECISION_TF32 : site->dtype;
}

static void tf32_is_an_attribute_of_products(void **state) {
  (void)state;
  expect(products_in_tf32,
         "x: f32[2, 2] = input(name=x)\n"
         "a: f32[2, 2] = state(path=a)\n"
         "%3: f32[2, 2] = matmul(x, a, transpose_b=yes)\n"
         "output y = %3\n",
         "x: f32[2, 2] = input(name=x)\n"
         "a: f32[2, 2] = state(path=a)\n"
         "%3: f32[2, 2] = matmul(x, a, transpose_b=yes, math=tf32)\n"
         "output y = %3\n");
}

static int32_t tf32_everywhere(const void *options, const tn_precision_site *site) {
  (void)options;
  (void)site;
  return TN_PRECISION_TF32;
}

static void an_op_without_math_works_in_f32(void **state) {
  (void)state;
  static const char text[] = "x: f32[2] = input(name=x)\n"
                             "%2: f32[2] = relu(x)\n"
                             "output y = %2\n";
  expect(tf32_everywhere, text, text);
}

/* Values 1 to 3 are the model's; later ones are an update's, which works in f32. */
static void the_policy_does_not_decide_updates(void **state) {
  (void)state;
  const tn_precision precision = {.item = {.name = "made-up"}, .decide = products_and_followers};
  const tn_settings settings = {.precision = &precision};
  tn_graph *graph = rig_parse("x: f32[2, 2] = input(name=x)\n"
                              "a: f32[2, 2] = state(path=a)\n"
                              "%3: f32[2, 2] = matmul(x, a)\n"
                              "%4: f32[2, 2] = matmul(%3, %3)\n"
                              "commit a = %4\n");
  rig_expect_ok(tn_pass_precision(&R.env, &settings, 0, 4, &graph));
  rig_expect_text(graph, "x: f32[2, 2] = input(name=x)\n"
                         "a: f32[2, 2] = state(path=a)\n"
                         "%3: f16[2, 2] = cast(x, to=f16)\n"
                         "%4: f16[2, 2] = state(path=a:f16, what=derived)\n"
                         "%5: f16[2, 2] = matmul(%3, %4)\n"
                         "%6: f32[2, 2] = cast(%5, to=f32)\n"
                         "%7: f32[2, 2] = matmul(%6, %6)\n"
                         "commit a = %7\n");
  tn_graph_destroy(graph);
}

/* ---- biases in front of a residual ---- */

#define LINEAR                                                                                               \
  "x: f32[2, 3] = input(name=x)\n"                                                                           \
  "w: f32[3, 3] = state(path=w)\n"                                                                           \
  "b: f32[3] = state(path=b)\n"
#define LOW_LINEAR                                                                                           \
  "%4: f16[2, 3] = cast(x, to=f16)\n"                                                                        \
  "%5: f16[3, 3] = state(path=w:f16, what=derived)\n"                                                        \
  "%6: f16[3] = state(path=b:f16, what=derived)\n"                                                           \
  "%7: f16[2, 3] = matmul(%4, %5, %6)\n"

/* The bias is read from its parameter, which has no copy then. */
static void the_bias_of_a_product_is_added_in_the_type_of_the_residual(void **state) {
  (void)state;
  expect(products_and_followers,
         LINEAR "%4: f32[2, 3] = matmul(x, w, b)\n"
                "%5: f32[2, 3] = add(x, %4)\n"
                "%6: f32[2, 3] = matmul(%5, w, b)\n"
                "%7: f32[2, 3] = add(%6, %5)\n"
                "output y = %7\n",
         LINEAR "%4: f16[2, 3] = cast(x, to=f16)\n"
                "%5: f16[3, 3] = state(path=w:f16, what=derived)\n"
                "%6: f16[2, 3] = matmul(%4, %5)\n"
                "%7: f32[2, 3] = cast(%6, to=f32)\n"
                "%8: f32[2, 3] = add(%7, b)\n"
                "%9: f32[2, 3] = add(x, %8)\n"
                "%10: f16[2, 3] = cast(%9, to=f16)\n"
                "%11: f16[2, 3] = matmul(%10, %5)\n"
                "%12: f32[2, 3] = cast(%11, to=f32)\n"
                "%13: f32[2, 3] = add(%12, b)\n"
                "%14: f32[2, 3] = add(%13, %9)\n"
                "output y = %14\n");
}

/* A ReLU, as a dropout, between the product and the residual. */
static void a_bias_stays_in_a_product_that_another_op_reads(void **state) {
  (void)state;
  expect(products_and_followers,
         LINEAR "%4: f32[2, 3] = matmul(x, w, b)\n"
                "%5: f32[2, 3] = relu(%4)\n"
                "%6: f32[2, 3] = add(x, %5)\n"
                "output y = %6\n",
         LINEAR LOW_LINEAR "%8: f16[2, 3] = relu(%7)\n"
                           "%9: f32[2, 3] = cast(%8, to=f32)\n"
                           "%10: f32[2, 3] = add(x, %9)\n"
                           "output y = %10\n");
  expect(products_and_followers,
         LINEAR "%4: f32[2, 3] = matmul(x, w, b)\n"
                "%5: f32[2, 3] = add(x, %4)\n"
                "output y = %5\n"
                "output z = %4\n",
         LINEAR LOW_LINEAR "%8: f32[2, 3] = cast(%7, to=f32)\n"
                           "%9: f32[2, 3] = add(x, %8)\n"
                           "output y = %9\n"
                           "output z = %8\n");
}

static void a_bias_stays_in_a_product_without_a_residual_in_f32(void **state) {
  (void)state;
  expect(products_and_followers,
         LINEAR "%4: f32[2, 3] = matmul(x, w, b)\n"
                "%5: f32[2, 3] = add(%4, %4)\n"
                "output y = %5\n",
         LINEAR LOW_LINEAR "%8: f16[2, 3] = add(%7, %7)\n"
                           "%9: f32[2, 3] = cast(%8, to=f32)\n"
                           "output y = %9\n");
  expect(products_and_followers,
         LINEAR "%4: f32[2, 3] = matmul(x, w, b)\n"
                "%5: f32[2, 3] = add(%4, b)\n"
                "output y = %5\n",
         LINEAR LOW_LINEAR "%8: f32[2, 3] = cast(%7, to=f32)\n"
                           "%9: f32[2, 3] = add(%8, b)\n"
                           "output y = %9\n");
}

static int32_t no_type(const void *options, const tn_precision_site *site) {
  (void)options;
  return strcmp(site->op, "relu") == 0 ? 77 : site->dtype;
}

static int32_t whole_numbers(const void *options, const tn_precision_site *site) {
  (void)options;
  return strcmp(site->op, "relu") == 0 ? TN_I32 : site->dtype;
}

static void refuse(policy *decide, const char *message) {
  const tn_precision precision = {.item = {.name = "made-up"}, .decide = decide};
  const tn_settings settings = {.precision = &precision};
  tn_graph *graph = rig_parse("x: f32[2] = input(name=x)\n"
                              "%2: f32[2] = relu(x)\n"
                              "output y = %2\n"),
           *given = graph;
  rig_expect_error(tn_pass_precision(&R.env, &settings, 0, UINT32_MAX, &graph), TN_EINVAL, message);
  assert_ptr_equal(graph, given);
  tn_graph_destroy(graph);
}

static void a_decision_for_another_type_than_a_float_is_refused(void **state) {
  (void)state;
  refuse(no_type, "precision policy 'made-up': operand 0 of relu gets ? (77), expected f16");
  refuse(whole_numbers, "precision policy 'made-up': operand 0 of relu gets i32");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(a_policy_that_changes_nothing_keeps_the_graph),
      CASE(a_value_is_cast_once_and_a_parameter_has_a_copy),
      CASE(a_view_shares_the_cast_of_what_it_views),
      CASE(undecided_operands_keep_their_new_type),
      CASE(operands_of_one_letter_get_the_widest_type),
      CASE(f16_and_bf16_widen_to_f32),
      CASE(commits_and_outputs_are_cast_back),
      CASE(the_policy_decides_only_float_operands),
      CASE(a_constant_gets_the_type_if_it_is_representable),
      CASE(a_type_outside_the_schema_is_ignored),
      CASE(tf32_is_an_attribute_of_products),
      CASE(an_op_without_math_works_in_f32),
      CASE(the_policy_does_not_decide_updates),
      CASE(the_bias_of_a_product_is_added_in_the_type_of_the_residual),
      CASE(a_bias_stays_in_a_product_that_another_op_reads),
      CASE(a_bias_stays_in_a_product_without_a_residual_in_f32),
      CASE(a_decision_for_another_type_than_a_float_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
