/* How many launches a training step has on a GPU in half precision, and of what: the plan on a described
 * device, with the double of CUDA's libraries. EXAMPLES: the folder of the examples, DEVICE: the description.
 */
#include "double.h"

static const json_t *launches_of(const char *example, const char *policy) {
  const json_t *plan =
      program_json(0, "plan " EXAMPLES "/%s.ini " ON_DOUBLE "--device " DEVICE " --set precision.policy=%s",
                   example, policy);
  return json_object_get(plan, "ops");
}

/* The launches of these ops and no other. */
static int count(const json_t *launches, const char *ops) {
  int n = 0;
  for (size_t i = 0; i < json_array_size(launches); i++) {
    const char *op = json_string_value(json_object_get(json_array_get(launches, i), "op"));
    assert_non_null(op);
    n += strcmp(op, ops) == 0;
  }
  return n;
}

/* 204 before casts, slices and sums joined the products, norms and attention around them. */
static void a_transformer_has_no_launch_for_a_cast_a_slice_a_residual_or_a_bias(void **state) {
  static const char *const policies[] = {"bf16", "fp16"};
  (void)state;
  for (int i = 0; i < 2; i++) {
    const json_t *launches = launches_of("shakespeare_char", policies[i]);
    assert_in_range(json_array_size(launches), 60, 91);
    assert_int_equal(count(launches, "cast"), 0);
    assert_int_equal(count(launches, "slice"), 0);
    assert_int_equal(count(launches, "concat"), 0);
    assert_int_equal(count(launches, "cast+add"), 0);
    assert_int_equal(count(launches, "matmul+cast+add+add"), 8); /* two residuals in each of four blocks */
    /* of positions; the others take the regions in front of them and behind along */
    assert_int_equal(count(launches, "reduce_sum"), 1);
  }
}

/* The gradients of weights whose biases' gradients another kernel sums: two in each of four blocks. */
static void a_fusion_can_be_left_out(void **state) {
  (void)state;
  static const char fusion[] = "reduce_sum+cast+matmul+cast";
  const json_t *launches = launches_of("shakespeare_char", "bf16");
  assert_int_equal(count(launches, fusion), 8);
  launches = launches_of("shakespeare_char", "bf16 --set backend.without=cuda_matmul_cast_bias_grad");
  assert_int_equal(count(launches, fusion), 0);
  assert_int_equal(count(launches, "reduce_sum+cast"), 8);
}

/* In f32, too, attention reads queries, keys and values where the product has written them. */
static void attention_needs_no_copies(void **state) {
  (void)state;
  const json_t *launches = launches_of("shakespeare_char", "fp32");
  assert_int_equal(count(launches, "slice"), 0);
  assert_int_equal(count(launches, "concat"), 0);
}

/* 23 before. Those that are left: of the images, and of the result of a linear layer with a bias. The
 * gradients of convolutions are cast by the update, which is a launch for each dtype, as is the check of the
 * gradients.
 */
static void a_residual_net_has_no_launch_for_the_casts_of_gradients(void **state) {
  (void)state;
  const json_t *launches = launches_of("cifar10_resnet18_224", "fp16");
  assert_in_range(count(launches, "cast"), 0, 2);
  assert_int_equal(count(launches, "all_finite"), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, double_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_transformer_has_no_launch_for_a_cast_a_slice_a_residual_or_a_bias),
      TEST(a_fusion_can_be_left_out),
      TEST(attention_needs_no_copies),
      TEST(a_residual_net_has_no_launch_for_the_casts_of_gradients),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
