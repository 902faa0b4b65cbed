/* Pass `recompute`: values that are computed twice in place of being kept. */
#include "tests/unit/compile/fixture.h"
#include "tests/unit/compile/kernels.h"

static KERNEL(k_sum_epilogue, "t.sum_epilogue", "t", "y = reduce_sum(x); pointwise+", offer_plain);
static KERNEL(k_product_epilogue, "t.product_epilogue", "t", "y = matmul(a, b); pointwise+", offer_plain);

static fixture F;

static int set_up(void **state) {
  static const tn_item *const kernels[] = {KERNELS_PLAIN, &k_sum_epilogue.item, NULL};
  (void)state;
  fixture_open(&F, kernels);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  fixture_close(&F);
  return 0;
}

#define BODY_TOP                                                                                             \
  "x: f32[8, 8]{0, 1} = input(name=x)\n"                                                                     \
  "w: f32[8, 8]{0, 1} = state(path=w)\n"

/* r would be live from the first product to the last launch, which reads a as well and so can compute r
 * itself. */
static void a_cheap_value_is_recomputed_from_live_operands(void **state) {
  (void)state;
  const char *g = "x: f32[8, 8] = input(name=x)\n"
                  "w: f32[8, 8] = state(path=w)\n"
                  "a = matmul(x, w)\n"
                  "r = relu(a)\n"
                  "b = matmul(r, w)\n"
                  "c = matmul(b, w)\n"
                  "d = add(c, r)\n"
                  "e = mul(d, a)\n"
                  "output e = e\n";
  assert_after(RECOMPUTED, &F, g,
               BODY_TOP "a: f32[8, 8]{0, 1} = matmul(x, w)\n"
                        "# 0: t.matmul \"blocked\"\n"
                        "r: f32[8, 8]{0, 1} = relu(a)\n"
                        "# 1: t.pointwise \"tiles\"\n"
                        "b: f32[8, 8]{0, 1} = matmul(r, w)\n"
                        "# 2: t.matmul \"blocked\"\n"
                        "c: f32[8, 8]{0, 1} = matmul(b, w)\n"
                        "# 3: t.matmul \"blocked\"\n"
                        "d: f32[8, 8]{0, 1} = add(c, r)\n"
                        "e: f32[8, 8]{0, 1} = mul(d, a)\n"
                        "# 4: t.pointwise \"tiles\", 3 nodes\n"
                        "output e = e\n");
}

/* The last launch does not read a, so r is kept. */
static void no_other_value_is_kept_for_it(void **state) {
  (void)state;
  assert_after(RECOMPUTED, &F,
               "x: f32[8, 8] = input(name=x)\nw: f32[8, 8] = state(path=w)\na = matmul(x, w)\nr = relu(a)\n"
               "b = matmul(r, w)\nd = add(b, r)\noutput d = d\n",
               BODY_TOP "a: f32[8, 8]{0, 1} = matmul(x, w)\n"
                        "# 0: t.matmul \"blocked\"\n"
                        "r: f32[8, 8]{0, 1} = relu(a)\n"
                        "# 1: t.pointwise \"tiles\"\n"
                        "b: f32[8, 8]{0, 1} = matmul(r, w)\n"
                        "# 2: t.matmul \"blocked\"\n"
                        "d: f32[8, 8]{0, 1} = add(b, r)\n"
                        "# 3: t.pointwise \"tiles\"\n"
                        "output d = d\n");
}

/* d is a batch minus its mean, which backward reads again. a is read shortly before; with d recomputed from
 * a, one of them is live and not both. */
static void an_operand_that_is_kept_longer_may_replace_the_value(void **state) {
  (void)state;
  assert_after(RECOMPUTED, &F,
               "x: f32[64, 64] = input(name=x)\nw: f32[64, 64] = state(path=w)\na = matmul(x, w)\n"
               "m = reduce_sum(a, axes=[0])\nd = sub(a, m)\nr = relu(d)\nb = matmul(r, w)\nc = matmul(b, a)\n"
               "e = transpose(c, order=[1, 0])\nf = mul(e, d)\noutput f = f\n",
               "x: f32[64, 64]{0, 1} = input(name=x)\n"
               "w: f32[64, 64]{0, 1} = state(path=w)\n"
               "a: f32[64, 64]{0, 1} = matmul(x, w)\n"
               "# 0: t.matmul \"blocked\"\n"
               "m: f32[64]{0} = reduce_sum(a, axes=[0])\n"
               "# 1: t.reduce_sum\n"
               "d: f32[64, 64]{0, 1} = sub(a, m)\n"
               "r: f32[64, 64]{0, 1} = relu(d)\n"
               "# 2: t.pointwise \"tiles\", 2 nodes\n"
               "b: f32[64, 64]{0, 1} = matmul(r, w)\n"
               "# 3: t.matmul \"blocked\"\n"
               "c: f32[64, 64]{0, 1} = matmul(b, a)\n"
               "# 4: t.matmul \"blocked\"\n"
               "e: f32[64, 64]{0, 1} = transpose(c, order=[1, 0])\n"
               "# 5: t.transpose\n"
               "f: f32[64, 64]{0, 1} = mul(e, d)\n"
               "# 6: t.pointwise \"tiles\", 2 nodes\n"
               "output f = f\n");
}

static void constants_are_computed_where_they_are_read(void **state) {
  (void)state;
  assert_after(RECOMPUTED, &F,
               "x: f32[8, 8] = input(name=x)\nw: f32[8, 8] = state(path=w)\nz: f32[8, 8] = full(dims=[8, 8], "
               "value=1)\n"
               "a = add(x, z)\nb = matmul(a, w)\nc = add(b, z)\nd = matmul(c, w)\noutput d = d\n",
               BODY_TOP "z: f32[8, 8]{0, 1} = full(dims=[8, 8], value=1)\n"
                        "a: f32[8, 8]{0, 1} = add(x, z)\n"
                        "# 0: t.pointwise \"tiles\", 2 nodes\n"
                        "b: f32[8, 8]{0, 1} = matmul(a, w)\n"
                        "# 1: t.matmul \"blocked\"\n"
                        "c: f32[8, 8]{0, 1} = add(b, z)\n"
                        "# 2: t.pointwise \"tiles\", 2 nodes\n"
                        "d: f32[8, 8]{0, 1} = matmul(c, w)\n"
                        "# 3: t.matmul \"blocked\"\n"
                        "output d = d\n");
}

/* Recomputing r would make the launch a reader of the state's old value. */
static void old_values_of_states_are_not_read_later_than_before(void **state) {
  (void)state;
  tn_program *p = fixture_program(&F, "x: f32[8, 8] = input(name=x)\n"
                                      "w: f32[8, 8] = state(path=w)\n"
                                      "r = relu(w)\n"
                                      "b = matmul(x, r)\n"
                                      "n = add(w, b)\n"
                                      "c = matmul(n, x)\n"
                                      "d = add(c, r)\n"
                                      "commit w = n\noutput d = d\n");
  assert_int_equal(p->n_steps, 5);
  assert_int_equal(p->steps[2].out[0].location.base, TN_BASE_REGION);
  tn_program_destroy(p);
}

/* The value of the commit is made after the last launch, which may therefore read b and compute r itself. */
static void old_values_are_read_again_before_their_commit(void **state) {
  (void)state;
  char *text = fixture_text(&F,
                            "x: f32[8, 8] = input(name=x)\nw: f32[8, 8] = state(path=w)\n"
                            "b: f32[8] = state(path=b)\n"
                            "a = matmul(x, w)\nr = add(a, b)\nc = matmul(r, w)\nd = matmul(c, w)\n"
                            "e = mul(d, r)\nf = mul(e, a)\ng = reduce_sum(f, axes=[0])\n"
                            "commit b = g\noutput f = f\n",
                            RECOMPUTED);
  assert_non_null(strstr(text, "f: f32[8, 8]{0, 1} = mul(e, a)\n# 4: t.pointwise \"tiles\", 3 nodes\n"));
  tn_release(&F.env, text);
}

/* The constant has two readers, so neither region has it at first. */
static void an_epilogue_computes_its_constants(void **state) {
  (void)state;
  assert_after(RECOMPUTED, &F,
               "x: f32[8, 8] = input(name=x)\nc: f32[] = full(value=2)\n"
               "s = reduce_sum(x, axes=[0])\nt = mul(s, c)\nu = mul(x, c)\noutput t = t\noutput u = u\n",
               "x: f32[8, 8]{0, 1} = input(name=x)\n"
               "c: f32[]{} = full(value=2)\n"
               "s: f32[8]{0} = reduce_sum(x, axes=[0])\n"
               "t: f32[8]{0} = mul(s, c)\n"
               "# 0: t.sum_epilogue, 3 nodes\n"
               "u: f32[8, 8]{0, 1} = mul(x, c)\n"
               "# 1: t.pointwise \"tiles\", 2 nodes\n"
               "output t = t\n"
               "output u = u\n");
}

/* An epilogue is behind its statement, so it does not compute the constant that the statement reads. */
static void the_operand_of_a_statement_is_not_made_by_its_epilogue(void **state) {
  static const tn_item *const kernels[] = {KERNELS_PLAIN, &k_product_epilogue.item, NULL};
  (void)state;
  fixture_open(&F, kernels);
  assert_after(RECOMPUTED, &F,
               "x: f32[8, 8] = input(name=x)\nc = full(dims=[8, 8], value=2)\nh = matmul(c, x)\n"
               "t = add(h, c)\noutput t = t\n",
               "x: f32[8, 8]{0, 1} = input(name=x)\n"
               "c: f32[8, 8]{0, 1} = full(dims=[8, 8], value=2)\n"
               "# 0: t.pointwise \"tiles\"\n"
               "h: f32[8, 8]{0, 1} = matmul(c, x)\n"
               "t: f32[8, 8]{0, 1} = add(h, c)\n"
               "# 1: t.product_epilogue, 2 nodes\n"
               "output t = t\n");
  fixture_close(&F);
}

/* Everything of rank 4 has channels last, but for weights. */
static tn_status offer_channels_last(tn_query *q) {
  static const tn_operand_layout last = {TN_LAYOUT_FIXED, 0, {.set = 1, .order = {0, 2, 3, 1}}};
  tn_operand_layout in[8] = {{0}};
  for (int32_t i = 0; i < q->match->n_in && i < 8; i++)
    if (q->match->in[i] != NULL && q->match->in[i]->rank == 4 && q->match->in[i]->dims[0] == 1) in[i] = last;
  tn_add_variant(q, &(tn_variant){.struct_size = sizeof(tn_variant), .in = in, .out = &last});
  return TN_OK;
}

static KERNEL(k_convolution_last, "t.conv_last", "t", "y = conv2d(x, w, bias?)", offer_channels_last);
static KERNEL(k_pointwise_last, "t.last", "t", "pointwise+", offer_channels_last);

/* The region of r reads a reorder of x, and goes on reading it when it computes the constant itself. */
static void a_region_with_a_reordered_operand_computes_its_constants(void **state) {
  static const tn_item *const kernels[] = {&k_convolution_last.item, &k_pointwise_last.item, &k_reorder.item,
                                           &k_copy.item, NULL};
  (void)state;
  fixture_open(&F, kernels);
  assert_after(
      RECOMPUTED, &F,
      "x: u8[1, 3, 4, 4] = input(name=x)\nw: f32[3, 3, 1, 1] = state(path=w)\n"
      "c: f32[] = full(value=2)\ny = cast(x, to=f32)\nr = add(y, c)\nd = conv2d(r, w)\ne = mul(d, c)\n"
      "f = conv2d(e, w)\noutput f = f\n",
      "x: u8[1, 3, 4, 4]{0, 1, 2, 3} = input(name=x)\n"
      "w: f32[3, 3, 1, 1]{0, 1, 2, 3} = state(path=w)\n"
      "c: f32[]{} = full(value=2)\n"
      "y: f32[1, 3, 4, 4]{0, 1, 2, 3} = cast(x, to=f32)\n"
      "r: f32[1, 3, 4, 4]{0, 2, 3, 1} = add(y, c)\n"
      "# 1: t.last, 3 nodes\n"
      "d: f32[1, 3, 4, 4]{0, 2, 3, 1} = conv2d(r, w)\n"
      "# 2: t.conv_last\n"
      "e: f32[1, 3, 4, 4]{0, 2, 3, 1} = mul(d, c)\n"
      "# 3: t.last, 2 nodes\n"
      "f: f32[1, 3, 4, 4]{0, 1, 2, 3} = conv2d(e, w)\n"
      "# 4: t.conv_last\n"
      "%9: u8[1, 3, 4, 4]{0, 2, 3, 1} = reorder(x)\n"
      "# 0: t.reorder\n"
      "%10: f32[1, 3, 4, 4]{0, 2, 3, 1} = reorder(f)\n"
      "# 5: t.reorder\n"
      "output f = f\n");
  fixture_close(&F);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_cheap_value_is_recomputed_from_live_operands, set_up, tear_down),
      cmocka_unit_test_setup_teardown(no_other_value_is_kept_for_it, set_up, tear_down),
      cmocka_unit_test_setup_teardown(an_operand_that_is_kept_longer_may_replace_the_value, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(constants_are_computed_where_they_are_read, set_up, tear_down),
      cmocka_unit_test_setup_teardown(old_values_of_states_are_not_read_later_than_before, set_up, tear_down),
      cmocka_unit_test_setup_teardown(old_values_are_read_again_before_their_commit, set_up, tear_down),
      cmocka_unit_test_setup_teardown(an_epilogue_computes_its_constants, set_up, tear_down),
      cmocka_unit_test(the_operand_of_a_statement_is_not_made_by_its_epilogue),
      cmocka_unit_test(a_region_with_a_reordered_operand_computes_its_constants),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
