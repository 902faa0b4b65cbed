/* Pass `select`: the choice between kernels, rejections, and ops without a kernel. */
#include <stdio.h>

#include "tests/unit/compile/fixture.h"
#include "core/compile/kernels/tuner.h"
#include "core/compile/select/select.h"
#include "tests/unit/compile/kernels.h"
#include "tenon/attributes.h"

/* ---- more kernels ---- */

static tn_status offer_slow(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v, .name = "slow", .cost_s = 2e-3};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status offer_two(tn_query *q) {
  tn_variant slow = {.struct_size = sizeof slow, .id = 1, .name = "direct", .cost_s = 3e-3};
  tn_variant quick = {.struct_size = sizeof quick, .id = 2, .name = "tiled", .cost_s = 1e-3};
  tn_add_variant(q, &slow);
  tn_add_variant(q, &quick);
  return TN_OK;
}

static double fused_s;
static tn_status offer_fused(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v, .name = "fused", .cost_s = fused_s};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status decline(tn_query *q) {
  return tn_fail(q, TN_EUNSUPPORTED, NULL, "rank %d is odd", (int)q->match->in[0]->rank);
}

static tn_status offer_nothing(tn_query *q) {
  (void)q;
  return TN_OK;
}

static tn_status offer_wrong_pair(tn_query *q) {
  static const int32_t pair[1][2] = {{3, 0}};
  tn_variant v = {.struct_size = sizeof v, .name = "odd", .n_inplace = 1, .inplace = pair};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status break_down(tn_query *q) { return tn_fail(q, TN_EDEVICE, NULL, "lost"); }

static KERNEL(k_fused, "t.fused", "t", "y = matmul(a, b, bias?); z = relu(y)", offer_fused);
static KERNEL(k_fused_before, "t.fused_before", "t", "&r = relu(x); y = matmul(r, w)", offer_fused);
static KERNEL(k_slow_relu, "t.slow_relu", "t", "y = relu(x)", offer_slow);
static KERNEL(k_slow, "t.slow", "t", "y = matmul(a, b, bias?)", offer_slow);
static KERNEL(k_two, "t.two", "t", "y = matmul(a, b, bias?)", offer_two);
static KERNEL(k_declines, "t.declines", "t", "y = matmul(a, b, bias?)", decline);
static KERNEL(k_silent, "t.silent", "t", "y = matmul(a, b, bias?)", offer_nothing);
static KERNEL(k_odd, "t.odd", "t", "y = matmul(a, b, bias?)", offer_wrong_pair);
static KERNEL(k_breaks, "t.breaks", "t", "y = matmul(a, b, bias?)", break_down);
static KERNEL(k_fast, "fast.matmul", "fast", "y = matmul(a, b, bias?)", offer_slow);
static KERNEL(k_fast_relu, "fast.relu", "fast", "y = relu(x)", offer_slow);
static KERNEL(k_softmax, "t.softmax", "t", "y = softmax(x)", offer_plain);
static KERNEL(k_unknown, "t.unknown", "t", "y = quux(x)", offer_plain);
static KERNEL(k_garbled, "t.garbled", "t", "y = relu(x", offer_plain);

static fixture F;

#define OPEN(...) FIXTURE_OPEN(&F, __VA_ARGS__)

static tn_cover *cover_of(const char *text) { return fixture_cover(&F, text); }

/* ---- kernels against each other ---- */

static void the_cheaper_kernel_wins_and_the_rejection_has_the_reason(void **state) {
  (void)state;
  OPEN(&k_slow.item, &k_two.item, &k_declines.item, &k_silent.item);
  tn_cover *cover = cover_of(AXW "h = matmul(a, w)\noutput h = h\n");
  const tn_group *g = &cover->groups.v[0];
  assert_string_equal(g->kernel->item.name, "t.two");
  assert_string_equal(g->choice.name, "tiled");
  assert_int_equal(g->choice.id, 2);
  assert_string_equal(fixture_reason(g, "t.slow"), "2 ms against 1 ms");
  assert_string_equal(fixture_reason(g, "t.declines"), "rank 2 is odd");
  assert_string_equal(fixture_reason(g, "t.silent"), "it offered no variant");
  assert_true(g->cost.flops >= 2 * 4 * 8 * 8);
  tn_cover_destroy(cover);
  fixture_close(&F);
}

/* The product and the ReLU take 2 ms each. */
static void a_fused_kernel_must_cost_less_than_its_parts(void **state) {
  (void)state;
  static const double costs[] = {3.9e-3, 4.9e-3, 6e-3};
  OPEN(&k_slow.item, &k_slow_relu.item, &k_fused.item);
  for (int i = 0; i < 3; i++) {
    fused_s = costs[i];
    tn_cover *cover = cover_of(AXW "h = matmul(a, w)\nr = relu(h)\noutput r = r\n");
    assert_int_equal(cover->groups.n, i == 2 ? 2 : 1); /* estimates have a margin of a quarter */
    if (i == 2)
      for (int k = 0; k < 2; k++)
        assert_string_equal(fixture_reason(&cover->groups.v[k], "t.fused"), "costs 6 ms, its parts 4 ms");
    tn_cover_destroy(cover);
  }
  fixture_close(&F);
}

/* A ReLU or a product without an estimate may take any time. */
static void a_fused_kernel_wins_where_a_cost_is_unknown(void **state) {
  (void)state;
  fused_s = 1;
  OPEN(&k_slow.item, &k_pointwise.item, &k_fused.item);
  tn_cover *cover = cover_of(AXW "h = matmul(a, w)\nr = relu(h)\noutput r = r\n");
  assert_int_equal(cover->groups.n, 1);
  tn_cover_destroy(cover);
  fixture_close(&F);
  OPEN(&k_slow.item, &k_slow_relu.item, &k_matmul_relu.item);
  cover = cover_of(AXW "h = matmul(a, w)\nr = relu(h)\noutput r = r\n");
  assert_int_equal(cover->groups.n, 1);
  tn_cover_destroy(cover);
  fixture_close(&F);
}

/* ---- kernels with which the device has failed ---- */

static const char *faulty; /* the kernel */

static tn_status measure_nothing(tn_tuner *tuner, tn_env *env, const tn_tuning *tuning,
                                 const tn_choice *choice, double *seconds) {
  (void)tuner, (void)env, (void)tuning, (void)choice;
  *seconds = 0;
  return TN_OK;
}

static bool is_of_faulty(tn_tuner *tuner, const tn_tuning *tuning, const tn_choice *choice) {
  (void)tuner, (void)choice;
  return strcmp(tuning->entry->item->name, faulty) == 0;
}

static bool knows_some(tn_tuner *tuner) {
  (void)tuner;
  return true;
}

/* The fused kernel would win and lose by its cost. */
static void a_faulty_kernel_is_taken_where_there_is_no_other(void **state) {
  (void)state;
  static tn_tuner tuner = {.time = measure_nothing,
                           .time_replay = measure_nothing,
                           .has_faulted = is_of_faulty,
                           .knows_faults = knows_some};
  static const struct {
    const char *faulty;
    double fused_s;
    size_t groups;
  } cases[] = {{"t.fused", 1e-3, 2}, {"t.slow", 6e-3, 1}, {"t.slow_relu", 6e-3, 1}, {"", 1e-3, 1}};
  OPEN(&k_slow.item, &k_slow_relu.item, &k_fused.item);
  F.target.tuner = &tuner;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    faulty = cases[i].faulty;
    fused_s = cases[i].fused_s;
    tn_cover *cover = cover_of(AXW "h = matmul(a, w)\nr = relu(h)\noutput r = r\n");
    assert_int_equal(cover->groups.n, cases[i].groups);
    if (i == 0)
      assert_string_equal(fixture_reason(&cover->groups.v[0], "t.fused"),
                          "the device has failed while it was measured");
    tn_cover_destroy(cover);
  }
  fixture_close(&F);
  OPEN(&k_slow_relu.item, &k_fused.item); /* the product has no other kernel */
  F.target.tuner = &tuner;
  faulty = "t.fused";
  tn_cover *cover = cover_of(AXW "h = matmul(a, w)\nr = relu(h)\noutput r = r\n");
  assert_int_equal(cover->groups.n, 1);
  tn_cover_destroy(cover);
  fixture_close(&F);
}

/* Of the ReLU's 2 ms, one of two users that recompute it spares 1 ms; the product takes 2 ms. */
static void a_recomputed_node_counts_in_parts(void **state) {
  (void)state;
  static const double costs[] = {3.7e-3, 3.8e-3};
  OPEN(&k_slow.item, &k_slow_relu.item, &k_fused_before.item);
  for (int i = 0; i < 2; i++) {
    fused_s = costs[i];
    tn_cover *cover = cover_of(AXW "h = relu(a)\nr = matmul(h, w)\ns = matmul(h, w, transpose_b=yes)\n"
                                   "output r = r\noutput s = s\n");
    assert_int_equal(cover->groups.n, i == 1 ? 3 : 2);
    tn_cover_destroy(cover);
  }
  fixture_close(&F);
}

static void a_better_family_goes_first(void **state) {
  (void)state;
  static const char *const families[] = {"fast", "t"};
  OPEN(KERNELS_PLAIN, &k_fast.item, &k_fast_relu.item);
  fixture_families(&F, families, 2);
  tn_cover *cover = cover_of(AXW "h = matmul(a, w)\nr = relu(h)\noutput r = r\n");
  assert_string_equal(cover->groups.v[0].kernel->item.name, "fast.matmul");
  assert_string_equal(cover->groups.v[0].family, "fast");
  assert_string_equal(fixture_reason(&cover->groups.v[0], "t.matmul"), "family fast goes first");
  /* a pattern of one node against a region of one node: the family decides, too */
  assert_string_equal(cover->groups.v[1].kernel->item.name, "fast.relu");
  tn_cover_destroy(cover);
  /* a region of two nodes is larger */
  cover = cover_of(AXW "h = matmul(a, w)\nr = relu(h)\ns = exp(r)\noutput s = s\n");
  assert_string_equal(cover->groups.v[1].kernel->item.name, "t.pointwise");
  tn_cover_destroy(cover);
  fixture_close(&F);
}

/* The kernel would not have been chosen in any case. */
static void a_rejection_by_a_worse_family_is_not_reported(void **state) {
  (void)state;
  static const char *const families[] = {"fast", "t"};
  OPEN(KERNELS_PLAIN, &k_fast.item, &k_declines.item);
  fixture_families(&F, families, 2);
  tn_cover *cover = cover_of(AXW "h = matmul(a, w)\noutput h = h\n");
  assert_string_equal(cover->groups.v[0].kernel->item.name, "fast.matmul");
  assert_null(fixture_reason(&cover->groups.v[0], "t.declines"));
  tn_cover_destroy(cover);
  fixture_close(&F);
}

static void a_kernel_for_the_whole_wins_over_its_parts(void **state) {
  (void)state;
  const char *g = AXW "s = softmax(a)\noutput s = s\n";
  OPEN(KERNELS_PLAIN, &k_softmax.item);
  tn_cover *cover = cover_of(g);
  assert_int_equal(cover->groups.n, 1);
  assert_string_equal(cover->groups.v[0].kernel->item.name, "t.softmax");
  tn_cover_destroy(cover);
  fixture_close(&F);
}

static void an_op_without_kernels_is_decomposed(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN);
  assert_after(SELECTED, &F, "a: f32[4, 8] = input(name=a)\ns = softmax(a)\noutput s = s\n",
               "a: f32[4, 8] = input(name=a)\n"
               "%2: f32[4, 1] = reduce_max(a, axes=[1], keep=yes)\n"
               "# 0: t.reduce_max\n"
               "%3: f32[4, 8] = sub(a, %2)\n"
               "%4: f32[4, 8] = exp(%3)\n"
               "# 1: t.pointwise \"tiles\", 2 nodes\n"
               "%5: f32[4, 1] = reduce_sum(%4, axes=[1], keep=yes)\n"
               "# 2: t.reduce_sum\n"
               "s: f32[4, 8] = div(%4, %5)\n"
               "# 3: t.pointwise \"tiles\"\n"
               "output s = s\n");
  fixture_close(&F);
}

static void an_op_without_a_kernel_is_an_error_with_every_reason(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_declines.item);
  assert_string_equal(fixture_failure(&F, AXW "y = erf(a) in enc.ff\noutput y = y\n", TN_EUNSUPPORTED),
                      "no kernel takes erf(f32[4, 8]) (enc.ff) on t, and the op has no decomposition; "
                      "t.pointwise: erf is too hard");
  assert_string_equal(fixture_failure(&F, AXW "y = argmax(a)\noutput y = y\n", TN_EUNSUPPORTED),
                      "no kernel takes argmax(f32[4, 8]) on t, and the op has no decomposition; no installed "
                      "kernel has a pattern for it");
  fixture_close(&F);
}

static void a_kernel_that_fails_or_breaks_its_promise_is_named(void **state) {
  (void)state;
  const char *g = AXW "h = matmul(a, w)\noutput h = h\n";
  OPEN(KERNELS_PLAIN, &k_breaks.item);
  assert_string_equal(fixture_failure(&F, g, TN_EDEVICE), "kernel t.breaks of plugin made: lost");
  fixture_close(&F);
  OPEN(&k_odd.item);
  assert_string_equal(
      fixture_failure(&F, g, TN_EINVAL),
      "kernel t.odd of plugin made: variant \"odd\" promises an in-place pair of an operand or result "
      "that is not there");
  fixture_close(&F);
  OPEN(KERNELS_PLAIN, &k_garbled.item);
  assert_string_equal(
      fixture_failure(&F, g, TN_EINVAL),
      "kernel t.garbled of plugin made: pattern \"y = relu(x\": expected ',' or ')' at character 11");
  fixture_close(&F);
}

static void a_pattern_of_an_op_that_is_not_installed_never_matches(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_unknown.item);
  tn_cover_destroy(cover_of(AXW "h = matmul(a, w)\noutput h = h\n"));
  assert_string_equal(tn_error_text(&F.env), "");
  fixture_close(&F);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_cheaper_kernel_wins_and_the_rejection_has_the_reason),
      cmocka_unit_test(a_fused_kernel_must_cost_less_than_its_parts),
      cmocka_unit_test(a_fused_kernel_wins_where_a_cost_is_unknown),
      cmocka_unit_test(a_faulty_kernel_is_taken_where_there_is_no_other),
      cmocka_unit_test(a_recomputed_node_counts_in_parts),
      cmocka_unit_test(a_better_family_goes_first),
      cmocka_unit_test(a_rejection_by_a_worse_family_is_not_reported),
      cmocka_unit_test(a_kernel_for_the_whole_wins_over_its_parts),
      cmocka_unit_test(an_op_without_kernels_is_decomposed),
      cmocka_unit_test(an_op_without_a_kernel_is_an_error_with_every_reason),
      cmocka_unit_test(a_kernel_that_fails_or_breaks_its_promise_is_named),
      cmocka_unit_test(a_pattern_of_an_op_that_is_not_installed_never_matches),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
