/* Pass `layout`: fixed layouts, kernels that accept any layout, and inserted reorders. */
#include "tests/unit/compile/fixture.h"
#include "tests/unit/compile/kernels.h"

static const tn_operand_layout nhwc = {TN_LAYOUT_FIXED, 0, {.set = 1, .order = {0, 2, 3, 1}}};
static const tn_operand_layout blocked = {
    TN_LAYOUT_FIXED, 0, {.set = 1, .n_blocks = 1, .order = {0, 1, 2, 3}, .block = {{1, 16}}}};

static tn_status offer_nhwc_conv(tn_query *q) {
  tn_operand_layout in[3] = {nhwc, blocked, {0}};
  tn_variant v = {.struct_size = sizeof v, .name = "nhwc", .in = in, .out = &nhwc};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status offer_any(tn_query *q) {
  tn_operand_layout in[64] = {{0}}, out[64] = {{0}};
  for (int32_t i = 0; i < q->match->n_in; i++)
    in[i].rule = q->match->in[i] != NULL && q->match->in[i]->rank == 4 ? TN_LAYOUT_ANY : TN_LAYOUT_ROW_MAJOR;
  for (int32_t i = 0; i < q->match->n_out; i++) out[i].rule = TN_LAYOUT_ANY;
  tn_variant v = {.struct_size = sizeof v, .in = in, .out = out};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status offer_same(tn_query *q) {
  static const tn_operand_layout in[1] = {{TN_LAYOUT_ANY, 0, {0}}};
  static const tn_operand_layout out[2] = {{TN_LAYOUT_SAME_AS, 0, {0}}, {TN_LAYOUT_SAME_AS, 1, {0}}};
  tn_variant v = {.struct_size = sizeof v, .in = in, .out = out};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status offer_bad(tn_query *q) {
  static const tn_operand_layout out[1] = {{TN_LAYOUT_FIXED, 0, {.set = 1, .order = {0, 0, 1, 2}}}};
  tn_variant v = {.struct_size = sizeof v, .name = "bad", .out = out};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_operand_layout rows_of_8(const tn_type *type) {
  tn_operand_layout rule = {TN_LAYOUT_FIXED, 0, tn_layout_row_major(type->rank)};
  rule.layout.n_blocks = 1;
  rule.layout.block[0] = (tn_block){(uint16_t)(type->rank - 1), 8};
  return rule;
}

/* Padded rows of the first operand pay. */
static tn_status offer_rows(tn_query *q) {
  tn_operand_layout in[3] = {rows_of_8(q->match->in[0]), {0}, {0}};
  tn_variant v = {.struct_size = sizeof v, .name = "odd", .cost_s = 1};
  tn_add_variant(q, &v);
  v = (tn_variant){.struct_size = sizeof v, .name = "padded", .in = in, .cost_s = 0.1};
  tn_add_variant(q, &v);
  return TN_OK;
}

/* Those of a result cost nothing. */
static tn_status offer_rows_of_result(tn_query *q) {
  tn_operand_layout out = rows_of_8(q->match->out[0]);
  tn_variant v = {.struct_size = sizeof v, .name = "odd", .cost_s = 0.1};
  tn_add_variant(q, &v);
  v = (tn_variant){.struct_size = sizeof v, .name = "padded", .out = &out, .cost_s = 0.1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static KERNEL(k_rows, "t.rows", "t", "y = matmul(a, b, bias?)", offer_rows);
static KERNEL(k_exp, "t.exp", "t", "y = exp(x)", offer_rows_of_result);
static KERNEL(k_nhwc, "t.nhwc", "t", "y = conv2d(x, w, bias?)", offer_nhwc_conv);
static KERNEL(k_any, "t.any", "t", "pointwise+", offer_any);
static KERNEL(k_same, "t.same", "t", "y, i = max_pool2d(x)", offer_same);
static KERNEL(k_bad, "t.bad", "t", "y = conv2d(x, w, bias?)", offer_bad);

static fixture F;

#define OPEN(...)                                                                                            \
  do {                                                                                                       \
    static const tn_item *const kernels_[] = {__VA_ARGS__, NULL};                                            \
    fixture_open(&F, kernels_);                                                                              \
  } while (0)

static void row_major_kernels_leave_nothing_to_do(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN);
  assert_after(LAID_OUT, &F, "a: f32[4, 8] = input(name=a)\nx = exp(a)\noutput x = x\n",
               "a: f32[4, 8]{0, 1} = input(name=a)\n"
               "x: f32[4, 8]{0, 1} = exp(a)\n"
               "# 0: t.pointwise \"tiles\"\n"
               "output x = x\n");
  fixture_close(&F);
}

static void elementwise_kernels_follow_and_borders_are_reordered(void **state) {
  (void)state;
  OPEN(&k_nhwc.item, &k_any.item, &k_reorder.item, &k_copy.item);
  /* x and w are row-major; relu takes the layout of the convolutions; the output is row-major */
  assert_after(LAID_OUT, &F,
               "x: f32[1, 3, 4, 4] = input(name=x)\n"
               "w: f32[3, 3, 1, 1] = state(path=w)\n"
               "c = conv2d(x, w)\n"
               "r = relu(c)\n"
               "d = conv2d(r, w)\n"
               "output d = d\n",
               "x: f32[1, 3, 4, 4]{0, 1, 2, 3} = input(name=x)\n"
               "w: f32[3, 3, 1, 1]{0, 1, 2, 3} = state(path=w)\n"
               "c: f32[1, 3, 4, 4]{0, 2, 3, 1} = conv2d(x, w)\n"
               "# 2: t.nhwc \"nhwc\"\n"
               "r: f32[1, 3, 4, 4]{0, 2, 3, 1} = relu(c)\n"
               "# 3: t.any\n"
               "d: f32[1, 3, 4, 4]{0, 1, 2, 3} = conv2d(r, w)\n"
               "# 4: t.nhwc \"nhwc\"\n"
               "%6: f32[1, 3, 4, 4]{0, 2, 3, 1} = reorder(x)\n"
               "# 0: t.reorder\n"
               "%7: f32[3, 3, 1, 1]{0, 1, 2, 3; 1:16} = reorder(w)\n"
               "# 1: t.reorder\n"
               "%8: f32[1, 3, 4, 4]{0, 2, 3, 1} = reorder(d)\n"
               "# 5: t.reorder\n"
               "output d = d\n");
  fixture_close(&F);
}

static void the_program_runs_the_reorders_and_pads_blocks(void **state) {
  (void)state;
  OPEN(&k_nhwc.item, &k_any.item, &k_reorder.item, &k_copy.item);
  assert_after(PLANNED, &F,
               "x: f32[1, 3, 4, 4] = input(name=x)\n"
               "w: f32[3, 3, 1, 1] = state(path=w)\n"
               "c = conv2d(x, w)\n"
               "output c = c\n",
               "program p: 4 launches, arena 576 (at least 576), slot 192, output 192, kept 0\n"
               "input x: f32[1, 3, 4, 4] @ slot+0\n"
               "output c: f32[1, 3, 4, 4] @ output+0\n"
               "0: %4 @ arena+0 = t.reorder(x @ slot+0)\n"
               "1: %5 @ arena+192 = t.reorder(w @ state.f32+0)\n"
               "2: %6 @ arena+384 = t.nhwc \"nhwc\"(%4 @ arena+0, %5 @ arena+192, _)\n"
               "3: c @ output+0 = t.reorder(%6 @ arena+384)\n");
  fixture_close(&F);
}

static void a_view_of_a_value_needs_it_row_major(void **state) {
  (void)state;
  OPEN(&k_nhwc.item, &k_any.item, &k_reorder.item, &k_copy.item, &k_same.item, &k_reduce_sum.item);
  tn_program *p = fixture_program(&F, "x: f32[1, 3, 4, 4] = input(name=x)\n"
                                      "w: f32[3, 3, 1, 1] = state(path=w)\n"
                                      "c = conv2d(x, w)\n"
                                      "m, i = max_pool2d(c, kernel=[2, 2])\n"
                                      "v = reshape(m, dims=[12])\n"
                                      "s = reduce_sum(v)\n"
                                      "output s = s\noutput i = i\n");
  const tn_group *last = p->steps[p->n_steps - 1].group;
  assert_string_equal(last->kernel->item.name, "t.reduce_sum");
  assert_int_equal(p->steps[p->n_steps - 1].in[0].layout.order[1], 0);
  int reorders = 0;
  for (int32_t i = 0; i < p->n_steps; i++)
    reorders += strcmp(p->steps[i].group->kernel->item.name, "t.reorder") == 0;
  assert_int_equal(reorders, 4); /* of x and w; of m and i after the pool, which has the layout of c */
  tn_program_destroy(p);
  fixture_close(&F);
}

#define ROWS_OPEN() OPEN(&k_rows.item, &k_exp.item, &k_reorder.item, &k_copy.item)
#define ROWS_BEGIN  "x: f32[2, 3, 5] = input(name=x)\nw: f32[5, 4] = input(name=w)\ne = exp(x)\n"

static void padded_rows_pass_through_a_reshape_that_keeps_them(void **state) {
  (void)state;
  ROWS_OPEN();
  assert_after(LAID_OUT, &F,
               ROWS_BEGIN "v = reshape(e, dims=[6, 5])\nu = reshape(v, dims=[1, 6, 5])\n"
                          "m = matmul(u, w)\noutput m = m\n",
               "x: f32[2, 3, 5]{0, 1, 2} = input(name=x)\n"
               "w: f32[5, 4]{0, 1} = input(name=w)\n"
               "e: f32[2, 3, 5]{0, 1, 2; 2:8} = exp(x)\n"
               "# 0: t.exp \"padded\"\n"
               "v: f32[6, 5]{0, 1; 1:8} = reshape(e, dims=[6, 5])\n"
               "u: f32[1, 6, 5]{0, 1, 2; 2:8} = reshape(v, dims=[1, 6, 5])\n"
               "m: f32[1, 6, 4]{0, 1, 2} = matmul(u, w)\n"
               "# 1: t.rows \"padded\"\n"
               "output m = m\n");
  fixture_close(&F);
}

static void a_view_of_other_rows_needs_them_without_padding(void **state) {
  (void)state;
  ROWS_OPEN();
  assert_after(LAID_OUT, &F,
               ROWS_BEGIN "v = reshape(e, dims=[6, 5])\nm = matmul(v, w)\n"
                          "r = reshape(e, dims=[30])\noutput m = m\noutput r = r\n",
               "x: f32[2, 3, 5]{0, 1, 2} = input(name=x)\n"
               "w: f32[5, 4]{0, 1} = input(name=w)\n"
               "e: f32[2, 3, 5]{0, 1, 2} = exp(x)\n"
               "# 0: t.exp \"odd\"\n"
               "v: f32[6, 5]{0, 1} = reshape(e, dims=[6, 5])\n"
               "m: f32[6, 4]{0, 1} = matmul(v, w)\n"
               "# 2: t.rows \"padded\"\n"
               "r: f32[30]{0} = reshape(e, dims=[30])\n"
               "%7: f32[6, 5]{0, 1; 1:8} = reorder(v)\n"
               "# 1: t.reorder\n"
               "output m = m\n"
               "output r = r\n");
  fixture_close(&F);
}

static void rows_that_a_kernel_makes_without_padding_are_padded_before_their_reader(void **state) {
  (void)state;
  OPEN(&k_rows.item, &k_pointwise.item, &k_reorder.item, &k_copy.item);
  assert_after(LAID_OUT, &F, ROWS_BEGIN "v = reshape(e, dims=[6, 5])\nm = matmul(v, w)\noutput m = m\n",
               "x: f32[2, 3, 5]{0, 1, 2} = input(name=x)\n"
               "w: f32[5, 4]{0, 1} = input(name=w)\n"
               "e: f32[2, 3, 5]{0, 1, 2} = exp(x)\n"
               "# 0: t.pointwise \"tiles\"\n"
               "v: f32[6, 5]{0, 1} = reshape(e, dims=[6, 5])\n"
               "m: f32[6, 4]{0, 1} = matmul(v, w)\n"
               "# 2: t.rows \"padded\"\n"
               "%6: f32[6, 5]{0, 1; 1:8} = reorder(v)\n"
               "# 1: t.reorder\n"
               "output m = m\n");
  fixture_close(&F);
}

static void padded_rows_are_told_from_other_layouts(void **state) {
  (void)state;
  tn_layout l = tn_layout_row_major(3);
  assert_false(tn_layout_has_padded_rows(&l, 3));
  l.n_blocks = 1;
  l.block[0] = (tn_block){2, 8};
  assert_true(tn_layout_has_padded_rows(&l, 3));
  tn_layout flat = tn_layout_padded_rows_of(&l, 3, 2);
  assert_true(tn_layout_has_padded_rows(&flat, 2) && flat.block[0].size == 8);
  l.block[0].dim = 1;
  assert_false(tn_layout_has_padded_rows(&l, 3));
  l = (tn_layout){.set = 1, .n_blocks = 1, .order = {1, 0, 2}, .block = {{2, 8}}};
  assert_false(tn_layout_has_padded_rows(&l, 3));
  flat = tn_layout_padded_rows_of(&l, 3, 2);
  assert_true(tn_layout_is_row_major(&flat, 2));
}

static void a_layout_that_does_not_fit_names_its_kernel(void **state) {
  (void)state;
  OPEN(&k_bad.item);
  assert_string_equal(
      fixture_failure(&F,
                      "x: f32[1, 3, 4, 4] = input(name=x)\n"
                      "w: f32[3, 3, 1, 1] = input(name=w)\n"
                      "c = conv2d(x, w)\noutput c = c\n",
                      TN_EINVAL),
      "kernel t.bad of plugin made: variant \"bad\" asks for a layout that does not fit a value of "
      "rank 4");
  fixture_close(&F);
}

static void a_missing_reorder_kernel_is_an_error(void **state) {
  (void)state;
  OPEN(&k_nhwc.item);
  assert_string_equal(fixture_failure(&F,
                                      "x: f32[1, 3, 4, 4] = input(name=x)\n"
                                      "w: f32[3, 3, 1, 1] = input(name=w)\n"
                                      "c = conv2d(x, w)\noutput c = c\n",
                                      TN_EUNSUPPORTED),
                      "no kernel takes reorder, which the memory plan needs; every backend must have one");
  fixture_close(&F);
}

static void bytes_count_padding(void **state) {
  (void)state;
  tn_type t = {TN_F32, 4, {2, 3, 4, 5}};
  tn_layout l = tn_layout_row_major(4);
  assert_int_equal(tn_layout_bytes(&t, &l), 480);
  l.n_blocks = 1;
  l.block[0] = (tn_block){1, 16};
  assert_int_equal(tn_layout_bytes(&t, &l), 2 * 16 * 4 * 5 * 4);
  l.n_blocks = 2;
  l.block[1] = (tn_block){1, 4};
  l.block[0] = (tn_block){1, 2};
  assert_int_equal(tn_layout_bytes(&t, &l), 2 * 8 * 4 * 5 * 4);
  tn_type empty = {TN_F32, 2, {INT64_MAX, 0}}, huge = {TN_F32, 2, {INT64_MAX, 2}}, scalar = {TN_BF16, 0, {0}};
  l = tn_layout_row_major(2);
  assert_int_equal(tn_layout_bytes(&empty, &l), 0);
  assert_true(tn_layout_bytes(&huge, &l) == INT64_MAX);
  assert_int_equal(tn_layout_bytes(&scalar, &l), 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(row_major_kernels_leave_nothing_to_do),
      cmocka_unit_test(elementwise_kernels_follow_and_borders_are_reordered),
      cmocka_unit_test(the_program_runs_the_reorders_and_pads_blocks),
      cmocka_unit_test(a_view_of_a_value_needs_it_row_major),
      cmocka_unit_test(padded_rows_pass_through_a_reshape_that_keeps_them),
      cmocka_unit_test(a_view_of_other_rows_needs_them_without_padding),
      cmocka_unit_test(rows_that_a_kernel_makes_without_padding_are_padded_before_their_reader),
      cmocka_unit_test(padded_rows_are_told_from_other_layouts),
      cmocka_unit_test(a_layout_that_does_not_fit_names_its_kernel),
      cmocka_unit_test(a_missing_reorder_kernel_is_an_error),
      cmocka_unit_test(bytes_count_padding),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
