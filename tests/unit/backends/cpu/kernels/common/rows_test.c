/* softmax, log_softmax, cross_entropy and layer_norm against naive loops in double. */
#include "tests/unit/backends/cpu/rig.h"

#include <math.h>
#include <stdio.h>

extern const tn_kernel tn_kernel_cpu_cross_entropy, tn_kernel_cpu_layer_norm, tn_kernel_cpu_log_softmax,
    tn_kernel_cpu_softmax;

/* A tensor as (outer, n, inner) around an axis. */
typedef struct split {
  int64_t outer, n, inner;
} split;

static split split_at(const tn_type *type, int64_t axis) {
  split s = {1, 1, 1};
  if (axis < 0) axis += type->rank;
  for (int32_t i = 0; i < type->rank; i++)
    *(i < axis ? &s.outer : i == axis ? &s.n : &s.inner) *= type->dims[i];
  return s;
}

static int64_t element(const split *s, int64_t row, int64_t i) {
  return (row / s->inner * s->n + i) * s->inner + row % s->inner;
}

static double log_sum_exp(const split *s, const tn_type *type, const void *x, int64_t row, double *mean) {
  double largest = -INFINITY, sum = 0, total = 0;
  for (int64_t i = 0; i < s->n; i++) largest = fmax(largest, rig_get(type, x, element(s, row, i)));
  for (int64_t i = 0; i < s->n; i++) {
    sum += exp(rig_get(type, x, element(s, row, i)) - largest);
    total += rig_get(type, x, element(s, row, i));
  }
  *mean = total / (double)s->n;
  return largest + log(sum);
}

static void near(int32_t dtype, double got, double want, double slack, const char *what) {
  if (fabs(got - want) <= slack + (dtype == TN_F64 ? 0 : 0.6 * rig_ulp(dtype, want)) ||
      (got != got && want != want))
    return;
  fail_msg("%s is %.17g, expected %.17g", what, got, want);
}

static double slack_of(int32_t dtype) { return dtype == TN_F64 ? 2e-12 : 2e-6; }

/* Types of all ranks, with sizes that cover each path: short and long rows, few and many neighbours. */
static tn_type shape_number(size_t k, int32_t dtype) {
  const tn_type types[] = {
      RIG_TYPE(dtype, 1),         RIG_TYPE(dtype, 7, 10),      RIG_TYPE(dtype, 3, 1300),
      RIG_TYPE(dtype, 5, 4, 300), RIG_TYPE(dtype, 2, 3, 4, 5), RIG_TYPE(dtype, 300, 64),
      RIG_TYPE(dtype, 0, 3),      RIG_TYPE(dtype, 4, 0),       RIG_TYPE(dtype, 2, 40000)};
  return types[k];
}
enum { SHAPES = 9 };

/* ---- softmax ---- */

static void check_softmax(bool log_of, const tn_type *type, int64_t axis, tn_rng *rng) {
  rig_match m;
  tn_axis_attributes a = {axis};
  const tn_kernel *kernel = log_of ? &tn_kernel_cpu_log_softmax : &tn_kernel_cpu_softmax;
  split s = split_at(type, axis);
  rig_start(&m);
  int32_t number = rig_in(&m, type);
  rig_out(&m, rig_node(&m, log_of ? "log_softmax" : "softmax", &a, &number, 1, type, 1));
  void *x = rig_drawn(type, rng), *y = rig_tensor(type);
  rig_run_on_all(kernel, &m, &x, &y);
  rig_sweep_allocations(kernel, &m);
  for (int64_t row = 0; row < s.outer * s.inner && s.n > 0; row++) {
    double mean, lse = log_sum_exp(&s, type, x, row, &mean);
    for (int64_t i = 0; i < s.n; i++) {
      double want = rig_get(type, x, element(&s, row, i)) - lse;
      near(type->dtype, rig_get(type, y, element(&s, row, i)), log_of ? want : exp(want),
           slack_of(type->dtype), kernel->item.name);
    }
  }
  rig_memory memory = {.in = &x, .out = &x, .threads = 2};
  assert_int_equal(rig_run(kernel, &m, &memory, NULL), TN_OK);
  assert_memory_equal(x, y, tn_type_bytes(type)); /* in place */
  free(x);
  free(y);
}

static void softmax_and_its_logarithm_agree_with_naive_loops_also_in_place(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(41, 0);
  for (int32_t dtype = TN_F16; dtype <= TN_F64; dtype++)
    for (size_t k = 0; k < SHAPES; k++) {
      tn_type type = shape_number(k, dtype);
      for (int64_t axis = -type.rank; axis < type.rank; axis++) {
        check_softmax(false, &type, axis, &rng);
        check_softmax(true, &type, axis, &rng);
      }
    }
}

static void softmax_of_large_and_infinite_numbers_does_not_overflow(void **state) {
  (void)state;
  rig_match m;
  tn_type type = RIG_TYPE(TN_F32, 4, 3);
  tn_axis_attributes a = {1};
  float x[] = {1e30f, 1e30f, -1e30f, -INFINITY, 0, 0, -INFINITY, -INFINITY, -INFINITY, NAN, 0, 1}, y[12];
  void *in[] = {x}, *out[] = {y};
  rig_start(&m);
  int32_t number = rig_in(&m, &type);
  rig_out(&m, rig_node(&m, "softmax", &a, &number, 1, &type, 1));
  rig_run_on_all(&tn_kernel_cpu_softmax, &m, in, out);
  const float want[] = {0.5f, 0.5f, 0, 0, 0.5f, 0.5f};
  for (int i = 0; i < 6; i++) assert_true(y[i] == want[i]);
  for (int i = 6; i < 12; i++) assert_true(isnan(y[i]));
}

/* ---- cross entropy ---- */

static void check_cross_entropy(const tn_type *type, int64_t axis, int32_t target_dtype, double smoothing,
                                tn_rng *rng) {
  rig_match m;
  tn_cross_entropy_attributes a = {axis, -100, smoothing};
  split s = split_at(type, axis);
  tn_type rows = {TN_F32, 0, {0}}, target, results[2];
  for (int32_t i = 0; i < type->rank; i++)
    if (i != axis && i != axis + type->rank) rows.dims[rows.rank++] = type->dims[i];
  if (type->dtype == TN_F64) rows.dtype = TN_F64;
  target = results[0] = results[1] = rows;
  target.dtype = target_dtype;
  rig_start(&m);
  int32_t numbers[2] = {rig_in(&m, type), rig_in(&m, &target)};
  int32_t first = rig_node(&m, "cross_entropy", &a, numbers, 2, results, 2);
  rig_out(&m, first);
  rig_out(&m, first + 1);
  void *in[] = {rig_drawn(type, rng), rig_tensor(&target)}, *out[] = {rig_tensor(&rows), rig_tensor(&rows)};
  for (int64_t row = 0; row < s.outer * s.inner; row++)
    rig_put(&target, in[1], row, tn_rng_below(rng, 5) == 0 ? -100 : (double)tn_rng_below(rng, s.n));
  rig_run_on_all(&tn_kernel_cpu_cross_entropy, &m, in, out);
  rig_sweep_allocations(&tn_kernel_cpu_cross_entropy, &m);
  for (int64_t row = 0; row < s.outer * s.inner; row++) {
    double mean, lse = log_sum_exp(&s, type, in[0], row, &mean), label = rig_get(&target, in[1], row),
                 loss = 0;
    if (label != -100)
      loss = (1 - smoothing) * (lse - rig_get(type, in[0], element(&s, row, (int64_t)label))) +
             smoothing * (lse - mean);
    near(rows.dtype, rig_get(&rows, out[0], row), loss, slack_of(rows.dtype), "loss");
    near(rows.dtype, rig_get(&rows, out[1], row), lse, slack_of(rows.dtype), "lse");
  }
  for (int i = 0; i < 2; i++) {
    free(in[i]);
    free(out[i]);
  }
}

static void cross_entropy_agrees_with_naive_loops(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(42, 0);
  for (int32_t dtype = TN_F16; dtype <= TN_F64; dtype++)
    for (size_t k = 0; k < SHAPES; k++) {
      tn_type type = shape_number(k, dtype);
      for (int64_t axis = -type.rank; axis < type.rank; axis++) {
        if (split_at(&type, axis).n == 0) continue;
        check_cross_entropy(&type, axis, axis < 0 ? TN_I32 : TN_I64, axis % 2 == 0 ? 0 : 0.1, &rng);
      }
    }
}

static void a_target_out_of_range_is_an_error_that_names_the_first(void **state) {
  (void)state;
  rig_match m;
  tn_type type = RIG_TYPE(TN_F32, 4000, 10), rows = RIG_TYPE(TN_F32, 4000), target = RIG_TYPE(TN_I64, 4000);
  tn_cross_entropy_attributes a = {1, -100, 0};
  tn_type results[2] = {rows, rows};
  rig_start(&m);
  int32_t numbers[2] = {rig_in(&m, &type), rig_in(&m, &target)};
  int32_t first = rig_node(&m, "cross_entropy", &a, numbers, 2, results, 2);
  rig_out(&m, first);
  rig_out(&m, first + 1);
  void *in[] = {rig_tensor(&type), rig_tensor(&target)}, *out[] = {rig_tensor(&rows), rig_tensor(&rows)};
  char text[512];
  for (int64_t row = 3999; row > 1000; row -= 700) rig_put(&target, in[1], row, 10 + (double)row);
  for (int32_t threads = 1; threads <= 4; threads *= 2) {
    rig_memory memory = {.in = in, .out = out, .threads = threads};
    assert_int_equal(rig_run(&tn_kernel_cpu_cross_entropy, &m, &memory, text), TN_EINVAL);
    assert_non_null(strstr(text, "target 1209 of row 1199 is out of range, expected 0 .. 9"));
  }
  for (int i = 0; i < 2; i++) {
    free(in[i]);
    free(out[i]);
  }
}

/* ---- layer norm ---- */

static void check_layer_norm(const tn_type *type, int32_t trailing, bool weight, bool bias, tn_rng *rng) {
  rig_match m;
  tn_norm_attributes a = {1e-5, trailing};
  int32_t wide = type->dtype == TN_F64 ? TN_F64 : TN_F32, lead = type->rank - trailing;
  tn_type row = rig_type(wide, trailing, type->dims + lead), rows = rig_type(wide, lead, type->dims);
  tn_type results[3] = {*type, rows, rows};
  int64_t n = tn_type_count(&row), count = tn_type_count(&rows);
  rig_start(&m);
  int32_t numbers[3] = {rig_in(&m, type), rig_in(&m, weight ? &row : NULL), rig_in(&m, bias ? &row : NULL)};
  int32_t first = rig_node(&m, "layer_norm", &a, numbers, 3, results, 3);
  for (int32_t i = 0; i < 3; i++) rig_out(&m, first + i);
  void *in[] = {rig_drawn(type, rng), weight ? rig_drawn(&row, rng) : NULL,
                bias ? rig_drawn(&row, rng) : NULL};
  void *out[] = {rig_tensor(type), rig_tensor(&rows), rig_tensor(&rows)};
  rig_run_on_all(&tn_kernel_cpu_layer_norm, &m, in, out);
  rig_sweep_allocations(&tn_kernel_cpu_layer_norm, &m);
  for (int64_t r = 0; r < count && n > 0; r++) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < n; i++) mean += rig_get(type, in[0], r * n + i) / (double)n;
    for (int64_t i = 0; i < n; i++) variance += pow(rig_get(type, in[0], r * n + i) - mean, 2) / (double)n;
    double rstd = 1 / sqrt(variance + 1e-5);
    near(wide, rig_get(&rows, out[1], r), mean, slack_of(wide), "mean");
    near(wide, rig_get(&rows, out[2], r), rstd, slack_of(wide) * rstd, "rstd");
    for (int64_t i = 0; i < n; i++) {
      double y = (rig_get(type, in[0], r * n + i) - mean) * rstd;
      if (weight) y *= rig_get(&row, in[1], i);
      if (bias) y += rig_get(&row, in[2], i);
      near(type->dtype, rig_get(type, out[0], r * n + i), y, slack_of(type->dtype) * (1 + rstd), "y");
    }
  }
  for (int i = 0; i < 3; i++) {
    free(in[i]);
    free(out[i]);
  }
}

static void layer_norm_agrees_with_naive_loops_with_and_without_weights(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(43, 0);
  for (int32_t dtype = TN_F16; dtype <= TN_F64; dtype++)
    for (size_t k = 0; k < SHAPES; k++) {
      tn_type type = shape_number(k, dtype);
      for (int32_t trailing = 0; trailing <= type.rank; trailing++)
        for (int variant = 0; variant < 4; variant++)
          check_layer_norm(&type, trailing, variant & 1, variant & 2, &rng);
    }
}

static void integer_types_fail_with_a_reason(void **state) {
  (void)state;
  rig_match m;
  tn_type type = RIG_TYPE(TN_I32, 4, 3);
  tn_axis_attributes a = {1};
  rig_start(&m);
  int32_t number = rig_in(&m, &type);
  rig_out(&m, rig_node(&m, "softmax", &a, &number, 1, &type, 1));
  rig_answer answer = rig_query(&tn_kernel_cpu_softmax, &m);
  assert_int_equal(answer.status, TN_EUNSUPPORTED);
  assert_non_null(strstr(answer.text, "softmax does not support elements of type i32"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(softmax_and_its_logarithm_agree_with_naive_loops_also_in_place),
      cmocka_unit_test(softmax_of_large_and_infinite_numbers_does_not_overflow),
      cmocka_unit_test(cross_entropy_agrees_with_naive_loops),
      cmocka_unit_test(a_target_out_of_range_is_an_error_that_names_the_first),
      cmocka_unit_test(layer_norm_agrees_with_naive_loops_with_and_without_weights),
      cmocka_unit_test(integer_types_fail_with_a_reason),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
