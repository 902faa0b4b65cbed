/* [backend] without: kernels that are left out by name. */
#include "tests/unit/compile/fixture.h"
#include "tests/unit/compile/kernels.h"

static tn_status offer_cheap(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v, .cost_s = 1e-6, .deterministic = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static KERNEL(k_fused, "t.fused", "t", "y = matmul(a, b); z = exp(y)", offer_cheap);
static KERNEL(k_product, "t.product", "t", "y = matmul(a, b)", offer_cheap);
static KERNEL(k_exp, "t.exp", "t", "y = exp(x)", offer_cheap);

static const char text[] = "a: f32[4, 8] = input(name=a)\nw: f32[8, 8] = input(name=w)\n"
                           "y = matmul(a, w)\nz = exp(y)\noutput z = z\n";
static const tn_item *const kernels[] = {&k_fused.item, &k_product.item, &k_exp.item, NULL};
static const char *names[] = {"t.fused", "t.exp"};

static void the_parts_of_a_fusion_take_its_place(void **state) {
  fixture f;
  (void)state;
  fixture_open(&f, kernels);
  tn_program *p = fixture_program(&f, text);
  assert_int_equal(p->n_steps, 1);
  assert_string_equal(p->steps[0].group->kernel->item.name, "t.fused");
  tn_program_destroy(p);
  f.target.without = (tn_words){names, 1};
  p = fixture_program(&f, text);
  assert_int_equal(p->n_steps, 2);
  assert_string_equal(p->steps[0].group->kernel->item.name, "t.product");
  assert_string_equal(p->steps[1].group->kernel->item.name, "t.exp");
  tn_program_destroy(p);
  fixture_close(&f);
}

static void an_op_whose_kernels_are_left_out_is_refused(void **state) {
  fixture f;
  (void)state;
  fixture_open(&f, kernels);
  f.target.without = (tn_words){names, 2};
  const char *why = fixture_failure(&f, text, TN_EUNSUPPORTED);
  assert_non_null(strstr(why, "t.exp: [backend] without leaves it out"));
  fixture_close(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_parts_of_a_fusion_take_its_place),
                                     cmocka_unit_test(an_op_whose_kernels_are_left_out_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
