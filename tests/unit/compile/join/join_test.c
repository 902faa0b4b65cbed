/* Pass `join`: kernels that compute a region and the statement that reads its result. */
#include <stdio.h>

#include "tests/unit/compile/fixture.h"
#include "tests/unit/compile/kernels.h"

static KERNEL(k_sum_epilogue, "t.sum_epilogue", "t", "y = reduce_sum(x); pointwise+", offer_plain);
static KERNEL(k_sum_prologue, "t.sum_prologue", "t", "pointwise+; y = reduce_sum(x)", offer_plain);
static KERNEL(k_sum_both, "t.sum_both", "t", "pointwise+; y = reduce_sum(x); pointwise+", offer_plain);
static KERNEL(k_fast_sum, "fast.sum", "fast", "y = reduce_sum(x)", offer_plain);

/* Estimates of a region, a sum, and both in one launch. */
static double region_s, sum_s, joined_s;

static tn_status offer_cost(tn_query *q, double cost_s) {
  tn_variant v = {.struct_size = sizeof v, .deterministic = 1, .capturable = 1, .cost_s = cost_s};
  tn_add_variant(q, &v);
  return TN_OK;
}
static tn_status offer_region_cost(tn_query *q) { return offer_cost(q, region_s); }
static tn_status offer_sum_cost(tn_query *q) { return offer_cost(q, sum_s); }
static tn_status offer_joined_cost(tn_query *q) { return offer_cost(q, joined_s); }
static KERNEL(k_cost_region, "t.cost_region", "t", "pointwise+", offer_region_cost);
static KERNEL(k_cost_sum, "t.cost_sum", "t", "y = reduce_sum(x)", offer_sum_cost);
static KERNEL(k_cost_joined, "t.cost_joined", "t", "pointwise+; y = reduce_sum(x)", offer_joined_cost);

static tn_status refuse_results(tn_query *q) {
  if (q->match->n_out > 1) return tn_fail(q, TN_EUNSUPPORTED, NULL, "one result only");
  return offer_plain(q);
}
static KERNEL(k_sum_alone, "t.sum_alone", "t", "pointwise+; y = reduce_sum(x)", refuse_results);

/* The region and the sum disagree about the layout of what the first makes. */
static tn_status offer_columns(tn_query *q) {
  tn_operand_layout in[8] = {{.rule = TN_LAYOUT_FIXED, .layout = {.set = 1, .order = {1, 0}}}};
  tn_variant v = {.struct_size = sizeof v, .in = in, .deterministic = 1, .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}
static KERNEL(k_sum_columns, "t.sum_columns", "t", "y = reduce_sum(x)", offer_columns);

static fixture F;

#define OPEN(...) FIXTURE_OPEN(&F, __VA_ARGS__)

#define A_AND_B "a: f32[8, 8] = input(name=a)\nb: f32[8, 8] = input(name=b)\n"

static const tn_group *only_group(const tn_program *p, const char *kernel) {
  assert_int_equal(p->cover->groups.n, 1);
  assert_string_equal(p->cover->groups.v[0].kernel->item.name, kernel);
  return &p->cover->groups.v[0];
}

/* The number of groups that have a kernel. */
static int count_groups(const tn_program *p, const char *kernel) {
  int n = 0;
  for (size_t i = 0; i < p->cover->groups.n; i++)
    n += strcmp(p->cover->groups.v[i].kernel->item.name, kernel) == 0;
  return n;
}

static void a_prologue_joins_the_statement_that_reads_it(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_sum_prologue.item);
  tn_program *p =
      fixture_program(&F, A_AND_B "c = mul(a, b)\nd = exp(c)\ns = reduce_sum(d, axes=[1])\noutput s = s\n");
  const tn_group *g = only_group(p, "t.sum_prologue");
  const tn_match *m = g->match;
  assert_int_equal(m->n_nodes, 3);
  assert_string_equal(m->nodes[0].node->op, "mul");
  assert_string_equal(m->nodes[1].node->op, "exp");
  assert_string_equal(m->nodes[2].node->op, "reduce_sum");
  assert_int_equal(m->n_in, 2);
  assert_int_equal(m->nodes[2].in[0], m->nodes[1].first_out);
  assert_int_equal(m->n_out, 1);
  assert_int_equal(m->out_number[0], m->nodes[2].first_out);
  tn_program_destroy(p);
  fixture_close(&F);
}

/* The region in front comes first, the one behind last, although a node of it is earlier in the graph. */
static void a_statement_may_have_both(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_sum_epilogue.item, &k_sum_prologue.item, &k_sum_both.item);
  tn_program *p =
      fixture_program(&F, A_AND_B "t: f32[8] = input(name=t)\nu = exp(t)\nc = mul(a, b)\n"
                                  "s = reduce_sum(c, axes=[1])\ny = mul(s, u)\noutput y = y\noutput c = c\n");
  const tn_match *m = only_group(p, "t.sum_both")->match;
  static const char *const ops[] = {"mul", "reduce_sum", "exp", "mul"};
  assert_int_equal(m->n_nodes, 4);
  for (int32_t i = 0; i < 4; i++) assert_string_equal(m->nodes[i].node->op, ops[i]);
  assert_int_equal(m->n_in, 3);
  assert_int_equal(m->nodes[3].in[0], m->nodes[1].first_out);
  assert_int_equal(m->nodes[3].in[1], m->nodes[2].first_out);
  assert_int_equal(m->n_out, 2);
  assert_int_equal(m->out_number[0], m->nodes[0].first_out);
  assert_int_equal(m->out_number[1], m->nodes[3].first_out);
  tn_program_destroy(p);
  fixture_close(&F);
}

/* Two sums read the region: one of them computes it and stores it for the other. */
static void another_reader_reads_what_the_launch_stores(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_sum_prologue.item);
  const char *text = A_AND_B "c = mul(a, b)\ns = reduce_sum(c, axes=[1])\nr = reduce_sum(c, axes=[0])\n"
                             "output s = s\noutput r = r\n";
  tn_program *p = fixture_program(&F, text);
  assert_int_equal(p->cover->groups.n, 2);
  assert_string_equal(p->cover->groups.v[0].kernel->item.name, "t.sum_prologue");
  assert_int_equal(p->cover->groups.v[0].n_out, 2);
  assert_string_equal(p->cover->groups.v[1].kernel->item.name, "t.reduce_sum");
  assert_int_equal(p->cover->groups.v[1].in[0], p->cover->groups.v[0].out[0]);
  tn_program_destroy(p);
  fixture_close(&F);
  OPEN(KERNELS_PLAIN, &k_sum_alone.item);
  p = fixture_program(&F, text);
  assert_int_equal(p->cover->groups.n, 3);
  assert_string_equal(p->cover->groups.v[1].rejected[0].kernel, "t.sum_alone");
  tn_program_destroy(p);
  fixture_close(&F);
}

/* A group between the two, which the statement's epilogue waits for, comes first; one that waits for the
 * region forbids the join where the epilogue waits for it. */
static void the_order_stays_topological(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_sum_epilogue.item, &k_sum_prologue.item, &k_sum_both.item);
  tn_program *p =
      fixture_program(&F, A_AND_B "c = mul(a, b)\nh = reduce_max(a, axes=[1])\nr = reduce_max(c, axes=[1])\n"
                                  "s = reduce_sum(c, axes=[1])\ny = mul(s, h)\noutput y = y\noutput r = r\n");
  assert_int_equal(p->cover->groups.n, 3);
  assert_string_equal(p->cover->groups.v[1].kernel->item.name, "t.sum_both");
  assert_int_equal(p->cover->groups.v[2].in[0], p->cover->groups.v[1].out[0]);
  tn_program_destroy(p);
  p = fixture_program(&F, A_AND_B "c = mul(a, b)\nr = reduce_max(c, axes=[1])\ns = reduce_sum(c, axes=[1])\n"
                                  "y = mul(s, r)\noutput y = y\n");
  assert_int_equal(count_groups(p, "t.sum_both"), 0);
  assert_int_equal(count_groups(p, "t.sum_epilogue"), 1);
  tn_program_destroy(p);
  fixture_close(&F);
}

/* A statement on a view of the result, on an input, and a kernel of a better family. */
static void other_statements_stay(void **state) {
  (void)state;
  static const char *const others[] = {
      "v = reshape(c, dims=[64])\ns = reduce_sum(v)\n",
      "v = reshape(c, dims=[64])\nt = reduce_sum(c, axes=[0])\nu = reduce_max(v)\ns = mul(t, u)\n",
      "m = matmul(c, b)\ns = reduce_sum(m)\n",
  };
  OPEN(KERNELS_PLAIN, &k_sum_prologue.item);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    char text[300];
    snprintf(text, sizeof text, A_AND_B "c = mul(a, b)\n%soutput s = s\n", others[i]);
    tn_program *p = fixture_program(&F, text);
    assert_int_equal(count_groups(p, "t.sum_prologue"), i == 1);
    tn_program_destroy(p);
  }
  fixture_close(&F);
  OPEN(KERNELS_PLAIN, &k_fast_sum.item, &k_sum_prologue.item);
  fixture_families(&F, (const char *const[]){"fast", "t"}, 2);
  tn_program *p = fixture_program(&F, A_AND_B "c = mul(a, b)\ns = reduce_sum(c)\noutput s = s\n");
  assert_int_equal(count_groups(p, "fast.sum"), 1);
  tn_program_destroy(p);
  fixture_close(&F);
}

static void a_join_costs_no_more_than_its_parts(void **state) {
  (void)state;
  OPEN(&k_cost_region.item, &k_cost_sum.item, &k_cost_joined.item, &k_copy.item);
  region_s = 1e-6;
  sum_s = 2e-6;
  for (int i = 0; i < 2; i++) {
    joined_s = i == 0 ? 2.9e-6 : 3.1e-6;
    tn_program *p = fixture_program(&F, A_AND_B "c = mul(a, b)\ns = reduce_sum(c)\noutput s = s\n");
    assert_int_equal(count_groups(p, "t.cost_joined"), i == 0);
    tn_program_destroy(p);
  }
  fixture_close(&F);
}

/* With another layout between the two there is a reorder, and the joined kernel has no such variant. */
static void layouts_stay_as_they_are(void **state) {
  (void)state;
  OPEN(&k_matmul.item, &k_copy.item, &k_reorder.item, &k_pointwise.item, &k_sum_columns.item,
       &k_sum_prologue.item);
  tn_program *p = fixture_program(&F, A_AND_B "c = mul(a, b)\ns = reduce_sum(c, axes=[0])\nd = matmul(c, "
                                              "c)\noutput s = s\noutput d = d\n");
  assert_int_equal(count_groups(p, "t.sum_prologue"), 0);
  assert_int_equal(count_groups(p, "t.sum_columns"), 1);
  tn_program_destroy(p);
  fixture_close(&F);
}

/* The region reads the old value of a state whose new value the statement waits for: it stays in front. */
static void a_state_is_read_before_it_is_overwritten(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_sum_epilogue.item, &k_sum_prologue.item, &k_sum_both.item);
  tn_program *p = fixture_program(&F, A_AND_B "w: f32[8] = state(path=w)\nc = mul(a, w)\n"
                                              "n = reduce_max(b, axes=[1])\ns = reduce_sum(c, axes=[1])\n"
                                              "y = mul(s, n)\ncommit w = n\noutput y = y\n");
  assert_int_equal(count_groups(p, "t.sum_both"), 0);
  tn_program_destroy(p);
  fixture_close(&F);
}

/* A statement that makes the first part of a large pack stays where it is, unless the pack begins there in
 * any case. */
static void a_large_pack_is_not_live_earlier(void **state) {
  (void)state;
  static const int64_t sizes[] = {1000, 2000000, 2000000};
  static const char *const between[] = {"m = matmul(c, b)\n", "m = matmul(c, b)\n", ""};
  OPEN(KERNELS_PLAIN, &k_sum_prologue.item);
  for (int i = 0; i < 3; i++) {
    char text[500];
    snprintf(text, sizeof text,
             A_AND_B "t: f32[2, %lld] = input(name=t)\nc = mul(a, b)\n%ss = reduce_sum(c, axes=[1])\n"
                     "u = transpose(t, order=[1, 0])\nv = reshape(u, dims=[%lld])\n"
                     "p = pack(s, v, offsets=[0, 64], count=%lld)\noutput p = p\n%s",
             (long long)sizes[i] / 2, between[i], (long long)sizes[i], (long long)sizes[i] + 64,
             i < 2 ? "output m = m\n" : "");
    tn_program *p = fixture_program(&F, text);
    assert_int_equal(count_groups(p, "t.sum_prologue"), i != 1);
    tn_program_destroy(p);
  }
  fixture_close(&F);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_prologue_joins_the_statement_that_reads_it),
      cmocka_unit_test(a_statement_may_have_both),
      cmocka_unit_test(another_reader_reads_what_the_launch_stores),
      cmocka_unit_test(the_order_stays_topological),
      cmocka_unit_test(other_statements_stay),
      cmocka_unit_test(a_join_costs_no_more_than_its_parts),
      cmocka_unit_test(layouts_stay_as_they_are),
      cmocka_unit_test(a_large_pack_is_not_live_earlier),
      cmocka_unit_test(a_state_is_read_before_it_is_overwritten),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
