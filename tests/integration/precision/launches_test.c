/* How many launches a training step in mixed precision has, and of what. A plan opens no data. */
#include "program.h"

static const char net_ini[] =
    "[run]\nname = net\n"
    "[data]\nsource = random\nshape = 3, 12, 12\nclasses = 5\nsamples = 64\nbatch = 8\n"
    "[model]\ninputs = image: f32[3, 12, 12]\nlayers =\n"
    "    conv1: conv2d(8, kernel=3, padding=1, bias=no)\n"
    "    bn1:   batch_norm\n"
    "           relu\n"
    "    conv2: conv2d(8, kernel=3, padding=1, bias=no)\n"
    "    bn2:   batch_norm\n"
    "           relu\n"
    "           global_avg_pool\n"
    "    fc:    linear(5)\n"
    "loss = cross_entropy\n"
    "[optimizer]\ntype = sgd\nlr = 0.1\nmomentum = 0.9\n"
    "[precision]\npolicy = fp16\n";

static const char *member(const json_t *launch, const char *name) {
  const char *text = json_string_value(json_object_get(launch, name));
  assert_non_null(text);
  return text;
}

/* The launches of a kernel in which all of these ops are named. */
static int count(const json_t *plan, const char *kernel, const char *ops) {
  const json_t *launches = json_object_get(plan, "ops");
  int n = 0;
  for (size_t i = 0; i < json_array_size(launches); i++) {
    const json_t *launch = json_array_get(launches, i);
    n += strcmp(member(launch, "kernel"), kernel) == 0 && strstr(member(launch, "op"), ops) != NULL;
  }
  return n;
}

static const json_t *plan_of_net(const char *more) {
  file_write("net.ini", net_ini);
  return program_json(0, "plan net.ini --set backend.use=cpu %s", more);
}

/* Whether they are finite is decided where they are computed, in the launch of the moments. */
static void running_statistics_have_no_launch_of_their_own(void **state) {
  (void)state;
  const json_t *plan = plan_of_net("");
  assert_int_equal(count(plan, "moments_epilogue", "moments"), 2);
  assert_int_equal(count(plan, "moments", ""), 0);
  assert_int_equal(count(plan, "all_finite", ""), 2); /* of the gradients in f16, and of those in f32 */
}

/* The optimizer is the last launch of each dtype, and only it and all_finite read the gradients. */
static void unscaling_is_part_of_the_optimizer(void **state) {
  (void)state;
  const json_t *ops = json_object_get(plan_of_net(""), "ops");
  size_t n = json_array_size(ops), checked = 0;
  for (size_t i = 0; i < n; i++)
    if (strcmp(member(json_array_get(ops, i), "kernel"), "all_finite") == 0) checked = i;
  /* after the check: the scale and the counters, and the optimizer, twice */
  assert_int_equal(n - checked, 4);
}

static void clipping_adds_two_launches_for_each_dtype(void **state) {
  (void)state;
  size_t without = json_array_size(json_object_get(plan_of_net(""), "ops"));
  size_t with = json_array_size(json_object_get(plan_of_net("--set optimizer.clip=1"), "ops"));
  assert_int_equal(with, without + 4);
}

static void coefficients_of_a_normalizations_gradient_join_its_sums(void **state) {
  (void)state;
  const json_t *plan = plan_of_net("");
  assert_int_equal(count(plan, "norm_grad_sums_epilogue", "norm_grad_sums"), 2);
  assert_int_equal(count(plan, "norm_grad_sums", ""), 0);
}

/* The casts that are launches are those of the image, of the logits, and of the gradient of the linear
 * layer's weight: the optimizer casts the gradients of convolutions. */
static void gradients_of_weights_are_cast_by_the_optimizer(void **state) {
  (void)state;
  const json_t *launches = json_object_get(plan_of_net(""), "ops"), *launch;
  size_t i, gradients = 0, casts = 0;
  json_array_foreach(launches, i, launch) {
    casts += strcmp(member(launch, "op"), "cast") == 0;
    if (strcmp(member(launch, "op"), "conv2d_grad_weight") != 0) continue;
    assert_string_equal(member(launch, "dtype"), "f16");
    gradients++;
  }
  assert_int_equal(gradients, 2);
  assert_int_equal(casts, 3);
}

static void gradients_of_convolutions_take_gates_along(void **state) {
  (void)state;
  const json_t *plan = plan_of_net("");
  assert_int_equal(count(plan, "conv2d_grad_input_epilogue", "where"), 1);
  assert_int_equal(count(plan, "conv2d_grad_input", ""), 0);
}

/* 340 before regions were joined to the kernels in front of them. */
static void resnet18_has_at_most_170_launches(void **state) {
  (void)state;
  const json_t *plan = program_json(0, "plan " EXAMPLES "/cifar10_resnet18_224.ini --set backend.use=cpu "
                                       "--set precision.policy=fp16 --set data.batch=128");
  assert_in_range(json_array_size(json_object_get(plan, "ops")), 100, 170);
  assert_int_equal(json_array_size(json_object_get(plan, "fallbacks")), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(running_statistics_have_no_launch_of_their_own),
      CASE(unscaling_is_part_of_the_optimizer),
      CASE(clipping_adds_two_launches_for_each_dtype),
      CASE(coefficients_of_a_normalizations_gradient_join_its_sums),
      CASE(gradients_of_weights_are_cast_by_the_optimizer),
      CASE(gradients_of_convolutions_take_gates_along),
      CASE(resnet18_has_at_most_170_launches),
  };
  return cmocka_run_group_tests_name("precision: launches", tests, NULL, NULL);
}
