/* Pass `select`: kernels that compute statements and the region behind them. */
#include <stdio.h>

#include "tests/unit/compile/fixture.h"
#include "core/compile/select/select.h"
#include "tests/unit/compile/kernels.h"

static KERNEL(k_sum_epilogue, "t.sum_epilogue", "t", "y = reduce_sum(x); pointwise+", offer_plain);
static KERNEL(k_fast_sum, "fast.sum", "fast", "y = reduce_sum(x)", offer_plain);
/* a pattern of several statements, and the same with an epilogue */
static KERNEL(k_product_sum, "t.product_sum", "t", "y = matmul(a, b, bias?); s = reduce_sum(y) -> y, s",
              offer_plain);
static KERNEL(k_product_sum_epilogue, "t.product_sum_epilogue", "t",
              "y = matmul(a, b, bias?); s = reduce_sum(y); pointwise+", offer_plain);
/* a recomputed node and a commutative one */
#define GATED "&r = relu(x); p = mul(r, w); s = reduce_sum(p)"
static KERNEL(k_gated_sum, "t.gated_sum", "t", GATED, offer_plain);
static KERNEL(k_gated_sum_epilogue, "t.gated_sum_epilogue", "t", GATED "; pointwise+", offer_plain);

static fixture F;

#define OPEN(...) FIXTURE_OPEN(&F, __VA_ARGS__)

static tn_cover *cover_of(const char *text) { return fixture_cover(&F, text); }

static void an_epilogue_joins_the_statement_that_it_reads(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_sum_epilogue.item);
  tn_cover *cover =
      cover_of("a: f32[4, 8] = input(name=a)\nb: f32[4] = input(name=b)\ns = reduce_sum(a, axes=[1])\n"
               "e = exp(s)\ny = mul(e, b)\noutput y = y\noutput s = s\n");
  assert_int_equal(cover->groups.n, 1);
  const tn_group *g = &cover->groups.v[0];
  assert_string_equal(g->kernel->item.name, "t.sum_epilogue");
  assert_int_equal(g->n_nodes, 3);
  assert_int_equal(g->n_in, 2);
  assert_int_equal(g->n_out, 2);
  assert_string_equal(g->match->nodes[0].node->op, "reduce_sum");
  assert_int_equal(g->match->nodes[1].in[0], g->match->nodes[0].first_out);
  tn_cover_destroy(cover);
  /* the region may be a single node */
  cover = cover_of("a: f32[4, 8] = input(name=a)\ns = reduce_sum(a, axes=[1])\ne = exp(s)\noutput e = e\n");
  assert_int_equal(cover->groups.n, 1);
  assert_int_equal(cover->groups.v[0].n_out, 1);
  tn_cover_destroy(cover);
  fixture_close(&F);
}

/* Another iteration space, a region that waits for another reader of the statement, and no region. */
static void other_regions_are_no_epilogue(void **state) {
  (void)state;
  static const char *const others[] = {
      "s = reduce_sum(a, axes=[1], keep=yes)\ny = sub(a, s)\n",
      "s = reduce_sum(a)\nm = reduce_sum(s)\nh = matmul(a, a)\nz = add(s, m)\nk = reduce_max(h)\ny = mul(z, "
      "k)\n",
      "s = reduce_sum(a)\ny = reduce_max(s)\n",
  };
  OPEN(KERNELS_PLAIN, &k_sum_epilogue.item);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    char text[300];
    snprintf(text, sizeof text, "a: f32[8, 8] = input(name=a)\n%soutput y = y\n", others[i]);
    tn_cover *cover = cover_of(text);
    const tn_group *first = &cover->groups.v[0];
    for (size_t g = 0; g < cover->groups.n; g++)
      if (cover->groups.v[g].nodes[0] < first->nodes[0]) first = &cover->groups.v[g];
    assert_string_equal(first->kernel->item.name, "t.reduce_sum");
    tn_cover_destroy(cover);
  }
  fixture_close(&F);
}

static void a_better_family_keeps_its_statement(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_fast_sum.item, &k_sum_epilogue.item);
  fixture_families(&F, (const char *const[]){"fast", "t"}, 2);
  tn_cover *cover =
      cover_of("a: f32[4, 8] = input(name=a)\ns = reduce_sum(a, axes=[1])\ne = exp(s)\noutput e = e\n");
  assert_int_equal(cover->groups.n, 2);
  assert_string_equal(cover->groups.v[0].kernel->item.name, "fast.sum");
  tn_cover_destroy(cover);
  fixture_close(&F);
}

/* ---- behind several statements ---- */

static const tn_group *only_group(const tn_cover *cover, const char *kernel) {
  assert_int_equal(cover->groups.n, 1);
  assert_string_equal(cover->groups.v[0].kernel->item.name, kernel);
  return &cover->groups.v[0];
}

/* Operands and nodes of the statements come first, the absent bias among them. The product is a result, since
 * another reads it; the sum is not. */
static void an_epilogue_joins_several_statements(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_product_sum.item, &k_product_sum_epilogue.item);
  tn_cover *cover =
      cover_of("c: f32[4] = input(name=c)\na: f32[4, 8] = input(name=a)\nb: f32[8, 2] = input(name=b)\n"
               "y = matmul(a, b)\ns = reduce_sum(y, axes=[1])\ne = exp(c)\nz = mul(e, s)\n"
               "output y = y\noutput z = z\n");
  const tn_group *g = only_group(cover, "t.product_sum_epilogue");
  const tn_match *m = g->match;
  assert_int_equal(m->n_in, 4);
  assert_null(m->in[2]);
  assert_int_equal(m->in[3]->rank, 1);
  assert_int_equal(m->n_nodes, 4);
  assert_string_equal(m->nodes[0].node->op, "matmul");
  assert_string_equal(m->nodes[1].node->op, "reduce_sum");
  assert_int_equal(m->nodes[1].in[0], m->nodes[0].first_out);
  assert_int_equal(m->nodes[2].in[0], 3);
  assert_int_equal(m->nodes[3].in[0], m->nodes[2].first_out);
  assert_int_equal(m->nodes[3].in[1], m->nodes[1].first_out);
  assert_int_equal(m->n_out, 2);
  assert_int_equal(m->out_number[0], m->nodes[0].first_out);
  assert_int_equal(m->out_number[1], m->nodes[3].first_out);
  tn_cover_destroy(cover);
  fixture_close(&F);
}

/* The kernel sees the operands of `mul` in the pattern's order, and recomputes `relu`, which is an output as
 * well. */
static void an_epilogue_keeps_the_flags_of_its_pattern(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_gated_sum.item, &k_gated_sum_epilogue.item);
  tn_cover *cover =
      cover_of("x: f32[4, 8] = input(name=x)\nw: f32[4, 8] = input(name=w)\nr = relu(x)\n"
               "p = mul(w, r)\ns = reduce_sum(p, axes=[1])\ny = exp(s)\noutput y = y\noutput r = r\n");
  assert_int_equal(cover->groups.n, 2);
  const tn_group *g =
      &cover->groups.v[strcmp(cover->groups.v[0].kernel->item.name, "t.gated_sum_epilogue") != 0];
  assert_string_equal(g->kernel->item.name, "t.gated_sum_epilogue");
  assert_true(tn_group_shares(g, 0));
  assert_false(tn_group_shares(g, 1));
  assert_false(tn_group_shares(g, 3));
  assert_int_equal(g->n_in, 2);
  assert_int_equal(g->match->nodes[1].in[0], g->match->nodes[0].first_out);
  assert_int_equal(g->match->nodes[1].in[1], 1);
  assert_int_equal(g->n_out, 1);
  tn_cover_destroy(cover);
  fixture_close(&F);
}

/* The statements alone, a region of another space, and a region that waits for another reader of the product.
 */
static void a_pattern_without_an_epilogue_stays(void **state) {
  (void)state;
  static const char *const others[] = {
      "output s = s\n",
      "k = reduce_sum(y, axes=[1], keep=yes)\nz = sub(y, k)\noutput z = z\n",
      "h = reduce_max(y, axes=[1])\nz = add(s, h)\noutput z = z\n",
  };
  OPEN(KERNELS_PLAIN, &k_product_sum.item, &k_product_sum_epilogue.item);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    char text[400];
    snprintf(text, sizeof text,
             "a: f32[4, 8] = input(name=a)\nb: f32[8, 2] = input(name=b)\ny = matmul(a, b)\n%s%s",
             i == 1 ? "" : "s = reduce_sum(y, axes=[1])\n", others[i]);
    tn_cover *cover = cover_of(text);
    bool found = false;
    for (size_t g = 0; g < cover->groups.n; g++) {
      assert_string_not_equal(cover->groups.v[g].kernel->item.name, "t.product_sum_epilogue");
      found |= strcmp(cover->groups.v[g].kernel->item.name, "t.product_sum") == 0;
    }
    assert_true(found);
    tn_cover_destroy(cover);
  }
  fixture_close(&F);
}

/* Without a kernel for the statements alone there is nothing to extend. */
static void an_epilogue_needs_a_kernel_of_its_statements(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_product_sum_epilogue.item);
  tn_cover *cover = cover_of("a: f32[4, 8] = input(name=a)\nb: f32[8, 2] = input(name=b)\ny = matmul(a, b)\n"
                             "s = reduce_sum(y, axes=[1])\nz = exp(s)\noutput z = z\n");
  assert_int_equal(cover->groups.n, 3);
  tn_cover_destroy(cover);
  fixture_close(&F);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_epilogue_joins_the_statement_that_it_reads),
      cmocka_unit_test(other_regions_are_no_epilogue),
      cmocka_unit_test(a_better_family_keeps_its_statement),
      cmocka_unit_test(an_epilogue_joins_several_statements),
      cmocka_unit_test(an_epilogue_keeps_the_flags_of_its_pattern),
      cmocka_unit_test(a_pattern_without_an_epilogue_stays),
      cmocka_unit_test(an_epilogue_needs_a_kernel_of_its_statements),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
