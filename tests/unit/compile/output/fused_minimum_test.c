/* tn_fused_minimum on graphs that are small enough to be counted by hand. */
#include "tests/unit/compile/fixture.h"
#include "tests/unit/compile/kernels.h"

#include "core/compile/output/fused_minimum.h"

static const tn_item *const kernels[] = {KERNELS_PLAIN, NULL};
static fixture F;

static int set_up(void **state) {
  (void)state;
  fixture_open(&F, kernels);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  fixture_close(&F);
  return 0;
}

static void assert_bytes(const char *text, double expected) {
  double bytes = -1;
  tn_graph *graph = fixture_graph(&F, text);
  assert_int_equal(tn_fused_minimum(graph, &bytes), TN_OK);
  tn_graph_destroy(graph);
  if (bytes != expected) fail_msg("%g bytes, expected %g:\n%s", bytes, expected, text);
}

/* x 128, w 256, h 512, y 64 bytes. */
#define FIRST                                                                                                \
  "x: f32[8, 4] = input(name=x)\n"                                                                           \
  "w: f32[4, 16] = state(path=w)\n"                                                                          \
  "v: f32[16, 2] = state(path=v)\n"                                                                          \
  "h = matmul(x, w)\n"
enum { X = 8 * 4 * 4, W = 4 * 16 * 4, V = 16 * 2 * 4, H = 8 * 16 * 4, Y = 8 * 2 * 4 };

static void a_product_reads_its_operands_and_writes_its_result(void **state) {
  (void)state;
  assert_bytes(FIRST "y = matmul(h, v)\noutput y = y\n", X + W + H + (H + V + Y));
}

static void pointwise_ops_between_products_are_free(void **state) {
  (void)state;
  assert_bytes(FIRST "r = relu(h)\ns = sigmoid(r)\ny = matmul(s, v)\noutput y = y\n",
               X + W + H + (H + V + Y));
  /* read by two products: computed in both from h, which is written once */
  assert_bytes(FIRST "r = relu(h)\ny = matmul(r, v)\nz = matmul(r, v)\noutput y = y\noutput z = z\n",
               X + W + H + 2 * (H + V + Y));
}

/* The first product writes a narrow copy of its result in place of it, a wide one not. */
static void the_only_reader_is_computed_before_the_result_is_written(void **state) {
  (void)state;
  assert_bytes(FIRST "n = cast(h, to=f16)\nm = cast(v, to=f16)\ny = matmul(n, m)\noutput y = y\n",
               X + W + H / 2 + (H / 2 + V + Y / 2));
  assert_bytes(FIRST "n = cast(h, to=f64)\nm = cast(v, to=f64)\ny = matmul(n, m)\noutput y = y\n",
               X + W + H + (H + V + Y * 2));
}

/* a is added to the second product before that is written, so the first is written and read. */
static void sums_of_products_read_the_earlier_one(void **state) {
  (void)state;
  assert_bytes(FIRST "a = matmul(h, v)\nb = matmul(h, v)\nc = add(a, b)\noutput c = c\n",
               X + W + H + (H + V + Y) + (H + V) + (Y + Y));
}

/* s has two sources of its own size. Two products read both; four read s, which the first of them writes. */
static void a_value_with_several_sources_is_kept_where_many_read_it(void **state) {
  (void)state;
#define SUM                                                                                                  \
  "x: f32[8, 16] = input(name=x)\n"                                                                          \
  "z: f32[8, 16] = input(name=z)\n"                                                                          \
  "v: f32[16, 2] = state(path=v)\n"                                                                          \
  "s = add(x, z)\n"
  assert_bytes(SUM "a = matmul(s, v)\nb = matmul(s, v)\noutput a = a\noutput b = b\n", 2 * (2 * H + V + Y));
  assert_bytes(SUM "a = matmul(s, v)\nb = matmul(s, v)\nc = matmul(s, v)\nd = matmul(s, v)\n"
                   "output a = a\noutput b = b\noutput c = c\noutput d = d\n",
               (2 * H + V + H + Y) + 3 * (H + V + Y));
}

/* The product that makes h sums it too. Ops that need the sums read h again. */
static void reductions_are_computed_with_their_operand(void **state) {
  const double mean = 16 * 4;
  (void)state;
  assert_bytes(FIRST
               "m, q = moments(h, axes=[0])\nd = sub(h, m)\ny = matmul(d, v)\noutput y = y\noutput q = q\n",
               X + W + H + 2 * mean + (H + mean + V + Y));
  /* the sums of d are known after a launch that reads h again */
  assert_bytes(FIRST "m, q = moments(h, axes=[0])\nd = sub(h, m)\nn, e = moments(d, axes=[0])\n"
                     "output e = e\noutput n = n\noutput q = q\n",
               X + W + H + 2 * mean + (H + mean) + 2 * mean);
}

/* The second product reads h and normalizes it; the relu behind needs whole rows too. */
static void norms_of_rows_are_computed_by_their_readers(void **state) {
  (void)state;
  assert_bytes(FIRST "s = softmax(h)\nr = relu(s)\ny = matmul(r, v)\noutput y = y\n",
               X + W + H + (H + V + Y));
}

/* The product writes the new momentum in place of the gradient; the last launch reads that. */
static void an_update_reads_and_writes_once(void **state) {
  (void)state;
  assert_bytes("x: f32[8, 4] = input(name=x)\n"
               "dy: f32[8, 16] = input(name=dy)\n"
               "p: f32[4, 16] = state(path=p)\n"
               "b: f32[4, 16] = state(path=b)\n"
               "g = matmul(x, dy, transpose_a=yes)\n"
               "h = affine(b, scale=0.9)\n"
               "n = add(h, g)\n"
               "s = affine(n, scale=-0.1)\n"
               "q = add(p, s)\n"
               "commit b = n\n"
               "commit p = q\n",
               X + H + (W + W) + (W + W + W));
}

static void parts_constants_and_random_numbers_are_free(void **state) {
  (void)state;
  assert_bytes(FIRST "l = slice(h, starts=[0, 0], stops=[8, 8])\nr = slice(h, starts=[0, 8], stops=[8, 16])\n"
                     "y = matmul(l, r, transpose_b=yes)\noutput y = y\n",
               X + W + H + (H + 8 * 8 * 4));
  assert_bytes(FIRST "i: i64[] = input(name=i)\nd = dropout(h, i)\ny = matmul(d, v)\noutput y = y\n",
               X + W + 8 + H + (H + V + Y));
  assert_bytes(FIRST "one = full(value=1)\nr = add(h, one)\ny = matmul(r, v)\noutput y = y\n",
               X + W + H + (H + V + Y));
}

static void lookups_read_the_rows_that_they_return(void **state) {
  (void)state;
  assert_bytes("i: i32[8] = input(name=i)\n"
               "t: f32[1000, 4] = state(path=t)\n"
               "e = embedding(i, t)\n"
               "output e = e\n",
               X + 8 * 4 + X);
}

static void what_nothing_depends_on_is_not_counted(void **state) {
  (void)state;
  assert_bytes(FIRST "y = matmul(h, v)\noutput h = h\n", X + W + H);
}

static void copies_are_read_and_written(void **state) {
  (void)state;
  assert_bytes("x: f32[8, 4] = input(name=x)\ns: f32[8, 4] = state(path=s)\ncommit s = x\n", 2 * X);
}

static void every_failed_allocation_is_reported(void **state) {
  tn_graph *graph = fixture_graph(&F, FIRST "r = relu(h)\ny = matmul(r, v)\noutput y = y\n");
  double bytes = 0;
  tn_status status = TN_ENOMEM;
  (void)state;
  for (int64_t left = 0; status != TN_OK; left++) {
    F.left = left;
    status = tn_fused_minimum(graph, &bytes);
    F.left = -1;
    if (status != TN_OK) assert_int_equal(status, TN_ENOMEM);
  }
  assert_true(bytes == X + W + H + (H + V + Y));
  tn_graph_destroy(graph);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_product_reads_its_operands_and_writes_its_result),
      TEST(pointwise_ops_between_products_are_free),
      TEST(the_only_reader_is_computed_before_the_result_is_written),
      TEST(sums_of_products_read_the_earlier_one),
      TEST(a_value_with_several_sources_is_kept_where_many_read_it),
      TEST(reductions_are_computed_with_their_operand),
      TEST(norms_of_rows_are_computed_by_their_readers),
      TEST(an_update_reads_and_writes_once),
      TEST(parts_constants_and_random_numbers_are_free),
      TEST(lookups_read_the_rows_that_they_return),
      TEST(what_nothing_depends_on_is_not_counted),
      TEST(copies_are_read_and_written),
      TEST(every_failed_allocation_is_reported),
  };
  return cmocka_run_group_tests_name("fused minimum", tests, NULL, NULL);
}
