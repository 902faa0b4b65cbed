#include "tests/unit/backends/onednn/isa_rig.h"

#include <math.h>

extern const tn_kernel tn_kernel_cpu_cross_entropy, tn_kernel_cpu_log_softmax, tn_kernel_cpu_softmax,
    tn_kernel_onednn_cross_entropy, tn_kernel_onednn_log_softmax, tn_kernel_onednn_softmax;

static const int32_t dtypes[] = {TN_F32, TN_BF16, TN_F16};
static const int64_t sizes[][2] = {{5, 10}, {33, 65}, {700, 16}, {3, 5001},
                                   {1, 1},  {0, 7},   {900, 33}, {40, 1000}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void check_softmax(const tn_kernel *own, const tn_kernel *reference, const char *op, const tn_type *x,
                          bool spoiled, tn_rng *rng) {
  rig_match m;
  tn_axis_attributes a = {x->rank == 3 ? 1 : -1};
  rig_start(&m);
  int32_t number = rig_in(&m, x);
  rig_out(&m, rig_node(&m, op, &a, &number, 1, x, 1));
  void *data = rig_drawn(x, rng);
  for (int64_t i = 0; i < tn_type_count(x) && spoiled; i++) {
    uint64_t draw = tn_rng_below(rng, 400);
    if (draw == 0) rig_put(x, data, i, NAN);
    if (draw > 300) rig_put(x, data, i, -INFINITY);
    if (draw == 1) rig_put(x, data, i, INFINITY);
  }
  ways_check(own, reference, &m, &data, 1e-6, 1);
  rig_sweep_allocations(own, &m);
  free(data);
}

static void softmax_and_its_logarithm_agree_with_the_reference(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(31, 0);
  for (size_t s = 0; s < SIZES; s++)
    for (size_t d = 0; d < 3; d++) {
      tn_type x = rig_type(dtypes[d], 2, sizes[s]);
      if (s == 1) x = RIG_TYPE(dtypes[d], 9, 21, 1);
      check_softmax(&tn_kernel_onednn_softmax, &tn_kernel_cpu_softmax, "softmax", &x, s == 6, &rng);
      check_softmax(&tn_kernel_onednn_log_softmax, &tn_kernel_cpu_log_softmax, "log_softmax", &x, false,
                    &rng);
    }
}

static void cross_entropy_agrees_with_the_reference(void **state) {
  (void)state;
  static const int32_t wholes[] = {TN_I64, TN_I32, TN_U8};
  tn_rng rng = tn_rng_at(32, 0);
  for (size_t s = 0; s < SIZES; s++)
    for (size_t d = 0; d < 3; d++) {
      rig_match m;
      tn_cross_entropy_attributes a = {1, d == 2 ? 0 : -100, s % 2 == 0 ? 0 : 0.125};
      tn_type x = rig_type(dtypes[d], 2, sizes[s]), target = rig_type(wholes[d], 1, sizes[s]);
      tn_type row = rig_type(TN_F32, 1, sizes[s]), results[] = {row, row};
      rig_start(&m);
      int32_t in[] = {rig_in(&m, &x), rig_in(&m, &target)};
      int32_t first = rig_node(&m, "cross_entropy", &a, in, 2, results, 2);
      rig_out(&m, first);
      rig_out(&m, first + 1);
      void *data[] = {rig_drawn(&x, &rng), rig_tensor(&target)};
      for (int64_t i = 0; i < sizes[s][0]; i++) {
        int64_t most = sizes[s][1] < 256 ? sizes[s][1] : 256;
        rig_put(&target, data[1], i, (double)tn_rng_below(&rng, (uint64_t)most));
        if (d == 0 && i % 5 == 3) rig_put(&target, data[1], i, -100);
      }
      ways_check(&tn_kernel_onednn_cross_entropy, &tn_kernel_cpu_cross_entropy, &m, data, 1e-6, 1);
      rig_sweep_allocations(&tn_kernel_onednn_cross_entropy, &m);
      free(data[0]);
      free(data[1]);
    }
}

static void a_target_that_is_no_class_is_an_error(void **state) {
  (void)state;
  rig_match m;
  float x[12] = {0}, loss[4], lse[4];
  int32_t targets[4] = {0, 3, -1, 2};
  tn_cross_entropy_attributes a = {-1, -100, 0};
  tn_type logits = RIG_TYPE(TN_F32, 4, 3), target = RIG_TYPE(TN_I32, 4), row = RIG_TYPE(TN_F32, 4);
  rig_start(&m);
  int32_t in[] = {rig_in(&m, &logits), rig_in(&m, &target)};
  int32_t first = rig_node(&m, "cross_entropy", &a, in, 2, (tn_type[]){row, row}, 2);
  rig_out(&m, first);
  rig_out(&m, first + 1);
  char text[512];
  rig_memory memory = {.in = (void *[]){x, targets}, .out = (void *[]){loss, lse}, .threads = 2};
  assert_int_equal(rig_run(&tn_kernel_onednn_cross_entropy, &m, &memory, text), TN_EINVAL);
  assert_non_null(strstr(text, "target 3 of row 1 is no class, expected 0 .. 2"));
}

static void classes_that_are_no_neighbours_are_left_to_others(void **state) {
  (void)state;
  rig_match m;
  tn_axis_attributes a = {1};
  tn_type x = RIG_TYPE(TN_F32, 2, 3, 4);
  rig_start(&m);
  int32_t number = rig_in(&m, &x);
  rig_out(&m, rig_node(&m, "softmax", &a, &number, 1, &x, 1));
  assert_int_equal(rig_query(&tn_kernel_onednn_softmax, &m).status, TN_EUNSUPPORTED);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(softmax_and_its_logarithm_agree_with_the_reference),
                                     cmocka_unit_test(cross_entropy_agrees_with_the_reference),
                                     cmocka_unit_test(a_target_that_is_no_class_is_an_error),
                                     cmocka_unit_test(classes_that_are_no_neighbours_are_left_to_others)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
