/* tests/unit/backends/cpu/kernels/reduce_test.c: reductions and argmax against naive loops. */
#include "tests/unit/backends/cpu/rig.h"

#include <math.h>

extern const tn_kernel tn_kernel_cpu_argmax, tn_kernel_cpu_moments, tn_kernel_cpu_norm_grad_sums,
    tn_kernel_cpu_reduce_max, tn_kernel_cpu_reduce_min, tn_kernel_cpu_reduce_sum;

/* ---- naive loops ---- */

typedef struct reduction {
  const tn_kernel *kernel;
  const char *op;
  int32_t n_in, n_out;
  bool integers; /* supports integers */
} reduction;

static const reduction reductions[] = {{&tn_kernel_cpu_reduce_sum, "reduce_sum", 1, 1, true},
                                       {&tn_kernel_cpu_reduce_max, "reduce_max", 1, 1, true},
                                       {&tn_kernel_cpu_reduce_min, "reduce_min", 1, 1, true},
                                       {&tn_kernel_cpu_moments, "moments", 1, 2, false},
                                       {&tn_kernel_cpu_norm_grad_sums, "norm_grad_sums", 4, 2, false}};

static bool is_reduced(const tn_reduce_attributes *a, int32_t rank, int32_t dim) {
  for (int64_t i = 0; i < a->axes.n; i++)
    if (a->axes.v[i] == dim || a->axes.v[i] + rank == dim) return true;
  return a->axes.n == 0;
}

static tn_type reduced_type(const tn_type *x, const tn_reduce_attributes *a, int32_t dtype) {
  tn_type y = {dtype, 0, {0}};
  for (int32_t i = 0; i < x->rank; i++) {
    if (!is_reduced(a, x->rank, i))
      y.dims[y.rank++] = x->dims[i];
    else if (a->keep)
      y.dims[y.rank++] = 1;
  }
  return y;
}

/* The index of the result to which element `at` of x belongs. */
static int64_t target(const tn_type *x, const tn_reduce_attributes *a, int64_t at) {
  int64_t c[TN_MAX_RANK], to = 0;
  rig_coordinates(x, at, c);
  for (int32_t i = 0; i < x->rank; i++)
    if (!is_reduced(a, x->rank, i)) to = to * x->dims[i] + c[i];
  return to;
}

/* Makes means of the sums, and computes the variances around them. */
static void naive_moments(const tn_type *types, const void *in, const tn_reduce_attributes *a,
                          int64_t results, double *mean, double *variance) {
  double n = (double)tn_type_count(&types[0]) / (double)results;
  for (int64_t i = 0; i < results; i++) mean[i] /= n, variance[i] = n > 0 ? 0 : NAN;
  for (int64_t i = 0; i < tn_type_count(&types[0]); i++) {
    int64_t to = target(&types[0], a, i);
    double apart = rig_get(&types[0], in, i) - mean[to];
    variance[to] += apart * apart / n;
  }
}

static void naive(const reduction *r, const tn_type *types, void *const *in, const tn_reduce_attributes *a,
                  int64_t results, double *sum, double *second) {
  for (int64_t i = 0; i < results; i++) {
    sum[i] = second[i] = 0;
    if (strcmp(r->op, "reduce_max") == 0) sum[i] = -INFINITY;
    if (strcmp(r->op, "reduce_min") == 0) sum[i] = INFINITY;
  }
  for (int64_t i = 0; i < tn_type_count(&types[0]); i++) {
    int64_t to = target(&types[0], a, i);
    double x = rig_get(&types[0], in[0], i);
    if (strcmp(r->op, "reduce_max") == 0)
      sum[to] = x > sum[to] || x != x ? x : sum[to];
    else if (strcmp(r->op, "reduce_min") == 0)
      sum[to] = x < sum[to] || x != x ? x : sum[to];
    else
      sum[to] += x;
    if (strcmp(r->op, "norm_grad_sums") == 0)
      second[to] +=
          x * (rig_get(&types[1], in[1], i) - rig_get(&types[2], in[2], to)) * rig_get(&types[3], in[3], to);
  }
  if (strcmp(r->op, "moments") == 0) naive_moments(types, in[0], a, results, sum, second);
}

static void compare(const reduction *r, const tn_type *type, const void *got, const double *want,
                    double terms) {
  for (int64_t i = 0; i < tn_type_count(type); i++) {
    double value = rig_get(type, got, i), expected = rig_rounded(type->dtype, want[i]);
    double slack = type->dtype == TN_F64 ? 1e-14 * (1 + terms)
                                         : rig_ulp(type->dtype, want[i]) * 0.51 + 1e-12 * (1 + terms);
    if (value == expected || fabs(value - want[i]) <= slack || (value != value && expected != expected))
      continue;
    fail_msg("%s: result %lld is %.17g, expected %.17g", r->op, (long long)i, value, want[i]);
  }
}

static void check_types(const reduction *r, int32_t dtype, const tn_type *x, const tn_reduce_attributes *a,
                        tn_rng *rng) {
  rig_match m;
  int32_t wide = dtype == TN_F64 ? TN_F64 : TN_F32, number[4];
  tn_type types[4] = {*x, *x, reduced_type(x, a, wide), reduced_type(x, a, wide)};
  types[0].dtype = types[1].dtype = dtype;
  void *in[4], *out[2];
  rig_start(&m);
  for (int32_t i = 0; i < r->n_in; i++) {
    number[i] = rig_in(&m, &types[i]);
    in[i] = rig_drawn(&types[i], rng);
  }
  tn_type result = reduced_type(x, a, r->n_out == 2 ? wide : dtype), results[2] = {result, result};
  int32_t first = rig_node(&m, r->op, a, number, r->n_in, results, r->n_out);
  for (int32_t i = 0; i < r->n_out; i++) {
    rig_out(&m, first + i);
    out[i] = rig_tensor(&result);
  }
  int64_t count = tn_type_count(&result);
  double *want[2] = {calloc((size_t)count + 1, sizeof(double)), calloc((size_t)count + 1, sizeof(double))};
  naive(r, types, in, a, count, want[0], want[1]);
  rig_run_on_all(r->kernel, &m, in, out);
  double terms = count > 0 ? (double)tn_type_count(x) / (double)count : 0;
  for (int32_t i = 0; i < r->n_out; i++) {
    compare(r, &result, out[i], want[i], terms * 16);
    free(out[i]);
  }
  for (int32_t i = 0; i < r->n_in; i++) free(in[i]);
  free(want[0]);
  free(want[1]);
}

static void check(const reduction *r, int32_t dtype, const tn_type *x, const tn_reduce_attributes *a,
                  tn_rng *rng) {
  bool extreme = r->kernel == &tn_kernel_cpu_reduce_max || r->kernel == &tn_kernel_cpu_reduce_min;
  tn_type result = reduced_type(x, a, dtype);
  if (!r->integers && !tn_dtype_is_float(dtype)) return;
  if (r->kernel == &tn_kernel_cpu_reduce_sum && dtype <= TN_U8) return;
  if (extreme && tn_type_count(x) == 0 && tn_type_count(&result) > 0) return;
  check_types(r, dtype, x, a, rng);
}

/* ---- cases ---- */

static void drawn_shapes_axes_and_types_agree_with_naive_loops(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(31, 0);
  for (int32_t round = 0; round < 50; round++) {
    tn_type x = {0, (int32_t)tn_rng_below(&rng, 6), {0}};
    int64_t axes[TN_MAX_RANK], n = 0;
    for (int32_t i = 0; i < x.rank; i++) {
      x.dims[i] =
          tn_rng_below(&rng, 12) == 0 ? 0 : 1 + tn_rng_below(&rng, tn_rng_below(&rng, 4) == 0 ? 40 : 6);
      if (tn_rng_below(&rng, 2)) axes[n++] = tn_rng_below(&rng, 2) ? i : i - x.rank;
    }
    tn_reduce_attributes a = {{n, axes}, (int32_t)tn_rng_below(&rng, 2)};
    for (size_t k = 0; k < sizeof reductions / sizeof reductions[0]; k++) {
      if (k > 2) a.keep = 0;
      for (int32_t dtype = TN_BOOL; dtype < TN_DTYPES; dtype++) check(&reductions[k], dtype, &x, &a, &rng);
    }
  }
}

static void large_shapes_in_many_chunks_and_parts_agree_with_naive_loops(void **state) {
  (void)state;
  static const struct {
    int32_t rank;
    int64_t dims[4];
    int64_t n_axes, axes[3];
  } shapes[] = {
      {1, {300001}, 0, {0}},
      {2, {3, 90001}, 1, {1}},
      {2, {90001, 7}, 1, {0}},
      {2, {2000, 600}, 1, {0}},
      {2, {600, 2000}, 1, {1}},
      {4, {16, 32, 14, 14}, 3, {0, 2, 3}},
      {4, {8, 3, 64, 64}, 3, {0, 2, 3}},
      {3, {50, 40, 130}, 2, {0, 2}},
      {3, {60, 500, 8}, 1, {1}},
      {3, {100, 70, 33}, 1, {-2}},
      {2, {100000, 2}, 1, {1}},
  };
  static const int32_t dtypes[] = {TN_F32, TN_F64, TN_BF16, TN_I32};
  tn_rng rng = tn_rng_at(32, 0);
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
    for (size_t k = 0; k < sizeof reductions / sizeof reductions[0]; k++)
      for (size_t d = 0; d < 4; d++) {
        if (d > 0 && (s + k + d) % 5 != 0) continue;
        tn_type x = rig_type(0, shapes[s].rank, shapes[s].dims);
        tn_reduce_attributes a = {{shapes[s].n_axes, shapes[s].axes}, 0};
        check(&reductions[k], dtypes[d], &x, &a, &rng);
      }
}

static void long_sums_lose_nothing_to_rounding_on_the_way(void **state) {
  (void)state;
  enum { N = 1 << 20 };
  rig_match m;
  tn_type type = RIG_TYPE(TN_F32, N), scalar = rig_type(TN_F32, 0, NULL);
  tn_reduce_attributes a = {{0, NULL}, 0};
  float *x = malloc(N * sizeof *x), y;
  for (int i = 0; i < N; i++) x[i] = i == 0 ? 0x1p24f : 1.0f;
  rig_start(&m);
  int32_t number = rig_in(&m, &type);
  rig_out(&m, rig_node(&m, "reduce_sum", &a, &number, 1, &scalar, 1));
  void *in[] = {x}, *out[] = {&y};
  rig_run_on_all(&tn_kernel_cpu_reduce_sum, &m, in, out);
  rig_sweep_allocations(&tn_kernel_cpu_reduce_sum, &m);
  assert_true(y == (float)(0x1p24 + N - 1));
  free(x);
}

static void extremes_are_nan_where_an_element_is(void **state) {
  (void)state;
  float x[2][40] = {{0}}, y[2];
  tn_type type = RIG_TYPE(TN_F32, 2, 40), result = RIG_TYPE(TN_F32, 2);
  int64_t axis = 1;
  tn_reduce_attributes a = {{1, &axis}, 0};
  for (int at = 0; at < 40; at++) {
    memset(x, 0, sizeof x);
    x[1][at] = NAN;
    x[0][at] = 1;
    for (int k = 1; k < 3; k++) {
      rig_match m;
      rig_start(&m);
      int32_t number = rig_in(&m, &type);
      rig_out(&m, rig_node(&m, reductions[k].op, &a, &number, 1, &result, 1));
      void *in[] = {x}, *out[] = {y};
      rig_run_on_all(reductions[k].kernel, &m, in, out);
      assert_true(isnan(y[1]) && y[0] == (k == 1 ? 1.0f : 0.0f));
    }
  }
}

static void sums_over_no_elements_are_zero_and_extremes_fail(void **state) {
  (void)state;
  rig_match m;
  tn_type empty = RIG_TYPE(TN_F32, 3, 0), result = RIG_TYPE(TN_F32, 3);
  int64_t axis = 1;
  tn_reduce_attributes a = {{1, &axis}, 0};
  float y[3];
  char nothing;
  rig_start(&m);
  int32_t number = rig_in(&m, &empty);
  rig_out(&m, rig_node(&m, "reduce_sum", &a, &number, 1, &result, 1));
  void *in[] = {&nothing}, *out[] = {y};
  rig_run_on_all(&tn_kernel_cpu_reduce_sum, &m, in, out);
  assert_true(y[0] == 0 && y[1] == 0 && y[2] == 0);
  rig_start(&m);
  number = rig_in(&m, &empty);
  rig_out(&m, rig_node(&m, "reduce_max", &a, &number, 1, &result, 1));
  rig_answer answer = rig_query(&tn_kernel_cpu_reduce_max, &m);
  assert_int_equal(answer.status, TN_EUNSUPPORTED);
  assert_non_null(strstr(answer.text, "no elements"));
}

/* Data of standard deviation 1 around 1,000 (bf16: 100), after `first`. */
static void check_far_moments(int32_t dtype, const tn_type *x, const tn_reduce_attributes *a, double first,
                              tn_rng *rng) {
  tn_type of = *x, result = reduced_type(x, a, dtype == TN_F64 ? TN_F64 : TN_F32),
          results[2] = {result, result};
  const reduction *r = &reductions[3];
  of.dtype = dtype;
  int64_t count = tn_type_count(&result), n = tn_type_count(x);
  void *in = rig_tensor(&of), *out[2] = {rig_tensor(&result), rig_tensor(&result)};
  double *mean = calloc((size_t)count, sizeof *mean), *variance = calloc((size_t)count, sizeof *variance);
  for (int64_t i = 0; i < n; i++)
    rig_put(&of, in, i, i == 0 ? first : (dtype == TN_BF16 ? 100 : 1000) + tn_rng_between(rng, -1.7, 1.7));
  naive(r, &of, &in, a, count, mean, variance);
  rig_match m;
  rig_start(&m);
  int32_t number = rig_in(&m, &of), made = rig_node(&m, "moments", a, &number, 1, results, 2);
  rig_out(&m, made);
  rig_out(&m, made + 1);
  rig_run_on_all(r->kernel, &m, &in, out);
  for (int64_t i = 0; i < count; i++) {
    assert_true(fabs(rig_get(&result, out[0], i) - mean[i]) <= 1e-7 * fabs(mean[i]));
    if (!(fabs(rig_get(&result, out[1], i) - variance[i]) <= 1e-6 * variance[i]))
      fail_msg("%s: variance %lld is %.9g, expected %.9g", tn_dtype_name(dtype), (long long)i,
               rig_get(&result, out[1], i), variance[i]);
  }
  free(in);
  free(out[0]);
  free(out[1]);
  free(mean);
  free(variance);
}

static void variances_keep_their_digits_where_means_are_far_from_0(void **state) {
  (void)state;
  static const int32_t dtypes[] = {TN_F32, TN_BF16, TN_F16, TN_F64};
  int64_t batch[] = {0, 2, 3}, rows[] = {0};
  tn_reduce_attributes channels = {{3, batch}, 0}, columns = {{1, rows}, 0}, all = {{0, NULL}, 0};
  tn_type image = RIG_TYPE(TN_F32, 16, 5, 40, 40), table = RIG_TYPE(TN_F32, 20000, 70),
          line = RIG_TYPE(TN_F32, 300001);
  tn_rng rng = tn_rng_at(34, 0);
  for (size_t d = 0; d < 4; d++)
    for (int k = 0; k < 2; k++) {
      double first = k == 0 ? 1000 : -20000; /* an outlier in place of the usual first element */
      check_far_moments(dtypes[d], &image, &channels, first, &rng);
      check_far_moments(dtypes[d], &table, &columns, first, &rng);
      check_far_moments(dtypes[d], &line, &all, first, &rng);
    }
}

static void moments_of_no_elements_are_nan(void **state) {
  (void)state;
  rig_match m;
  tn_type empty = RIG_TYPE(TN_F32, 3, 0), result = RIG_TYPE(TN_F32, 3), results[2] = {result, result};
  int64_t axis = 1;
  tn_reduce_attributes a = {{1, &axis}, 0};
  float mean[3], variance[3];
  char nothing;
  rig_start(&m);
  int32_t number = rig_in(&m, &empty), made = rig_node(&m, "moments", &a, &number, 1, results, 2);
  rig_out(&m, made);
  rig_out(&m, made + 1);
  void *in[] = {&nothing}, *out[] = {mean, variance};
  rig_run_on_all(&tn_kernel_cpu_moments, &m, in, out);
  for (int i = 0; i < 3; i++) assert_true(isnan(mean[i]) && isnan(variance[i]));
}

/* ---- argmax ---- */

static void check_argmax(const tn_type *x, int64_t axis, tn_rng *rng, bool with_nan) {
  rig_match m;
  int32_t d = (int32_t)(axis < 0 ? axis + x->rank : axis);
  tn_axis_attributes a = {axis};
  tn_type y = {TN_I32, 0, {0}};
  int64_t inner = 1, n = x->dims[d];
  for (int32_t i = 0; i < x->rank; i++)
    if (i != d) y.dims[y.rank++] = x->dims[i];
  for (int32_t i = d + 1; i < x->rank; i++) inner *= x->dims[i];
  rig_start(&m);
  int32_t number = rig_in(&m, x);
  rig_out(&m, rig_node(&m, "argmax", &a, &number, 1, &y, 1));
  void *in[] = {rig_drawn(x, rng)}, *out = rig_tensor(&y);
  for (int64_t i = 0; i < tn_type_count(x) && with_nan; i++)
    if (tn_rng_below(rng, 20) == 0) rig_put(x, in[0], i, NAN);
  rig_run_on_all(&tn_kernel_cpu_argmax, &m, in, &out);
  rig_sweep_allocations(&tn_kernel_cpu_argmax, &m);
  for (int64_t i = 0; i < tn_type_count(&y); i++) {
    int64_t base = i / inner * n * inner + i % inner, best = 0;
    for (int64_t k = 1; k < n; k++) {
      double v = rig_get(x, in[0], base + k * inner), old = rig_get(x, in[0], base + best * inner);
      if (v > old || (v != v && old == old)) best = k;
    }
    assert_int_equal(((int32_t *)out)[i], best);
  }
  free(in[0]);
  free(out);
}

static void argmax_is_the_first_of_the_largest_along_any_axis(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(33, 0);
  for (int32_t dtype = TN_BOOL; dtype < TN_DTYPES; dtype++) {
    tn_type types[] = {RIG_TYPE(dtype, 7, 1300), RIG_TYPE(dtype, 5, 9, 300), RIG_TYPE(dtype, 1),
                       RIG_TYPE(dtype, 0, 4), RIG_TYPE(dtype, 2000, 10)};
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
      for (int64_t axis = -types[k].rank; axis < types[k].rank; axis++) {
        int32_t d = (int32_t)(axis < 0 ? axis + types[k].rank : axis);
        if (types[k].dims[d] > 0) check_argmax(&types[k], axis, &rng, tn_dtype_is_float(dtype));
      }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(drawn_shapes_axes_and_types_agree_with_naive_loops),
      cmocka_unit_test(large_shapes_in_many_chunks_and_parts_agree_with_naive_loops),
      cmocka_unit_test(long_sums_lose_nothing_to_rounding_on_the_way),
      cmocka_unit_test(extremes_are_nan_where_an_element_is),
      cmocka_unit_test(sums_over_no_elements_are_zero_and_extremes_fail),
      cmocka_unit_test(variances_keep_their_digits_where_means_are_far_from_0),
      cmocka_unit_test(moments_of_no_elements_are_nan),
      cmocka_unit_test(argmax_is_the_first_of_the_largest_along_any_axis),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
