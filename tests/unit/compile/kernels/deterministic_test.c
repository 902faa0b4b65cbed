/* [run] deterministic: variants that may give other bits in another run are left out. */
#include "tests/unit/compile/fixture.h"
#include "tests/unit/compile/kernels.h"

static tn_status offer_both(tn_query *q) {
  tn_variant steady = {
      .struct_size = sizeof steady, .id = 1, .name = "tree", .cost_s = 3e-3, .deterministic = 1};
  tn_variant varying = {.struct_size = sizeof varying, .id = 2, .name = "atomics", .cost_s = 1e-3};
  tn_add_variant(q, &steady);
  tn_add_variant(q, &varying);
  return TN_OK;
}

static tn_status offer_varying(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v, .name = "atomics", .cost_s = 1e-6};
  tn_add_variant(q, &v);
  return TN_OK;
}

static KERNEL(k_both, "t.both", "t", "y = matmul(a, b, bias?)", offer_both);
static KERNEL(k_varying, "t.varying", "t", "y = matmul(a, b, bias?)", offer_varying);

static const char product[] = "a: f32[4, 8] = input(name=a)\nw: f32[8, 8] = input(name=w)\n"
                              "y = matmul(a, w)\noutput y = y\n";

static void chooses(const tn_item *const *kernels, bool deterministic, const char *kernel,
                    const char *variant) {
  fixture f;
  fixture_open(&f, kernels);
  f.target.deterministic = deterministic;
  tn_program *p = fixture_program(&f, product);
  assert_string_equal(p->steps[0].group->kernel->item.name, kernel);
  assert_string_equal(p->steps[0].group->choice.name, variant);
  tn_program_destroy(p);
  fixture_close(&f);
}

static void the_variant_with_the_same_bits_is_taken(void **state) {
  static const tn_item *const kernels[] = {&k_both.item, NULL};
  (void)state;
  chooses(kernels, false, "t.both", "atomics");
  chooses(kernels, true, "t.both", "tree");
}

static void the_kernel_with_the_same_bits_is_taken(void **state) {
  static const tn_item *const kernels[] = {&k_both.item, &k_varying.item, NULL};
  (void)state;
  chooses(kernels, false, "t.varying", "atomics");
  chooses(kernels, true, "t.both", "tree");
}

static void an_op_without_such_a_kernel_is_refused(void **state) {
  static const tn_item *const kernels[] = {&k_varying.item, NULL};
  fixture f;
  (void)state;
  fixture_open(&f, kernels);
  f.target.deterministic = true;
  const char *text = fixture_failure(&f, product, TN_EUNSUPPORTED);
  assert_non_null(strstr(text, "matmul"));
  assert_non_null(strstr(text, "t.varying: variant 'atomics' may give other bits in another run, and [run] "
                               "deterministic is set"));
  fixture_close(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_variant_with_the_same_bits_is_taken),
                                     cmocka_unit_test(the_kernel_with_the_same_bits_is_taken),
                                     cmocka_unit_test(an_op_without_such_a_kernel_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
