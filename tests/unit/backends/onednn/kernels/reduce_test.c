#include "tests/unit/backends/onednn/isa_rig.h"

extern const tn_kernel tn_kernel_cpu_moments, tn_kernel_cpu_norm_grad_sums, tn_kernel_cpu_reduce_max,
    tn_kernel_cpu_reduce_min, tn_kernel_cpu_reduce_sum, tn_kernel_onednn_moments,
    tn_kernel_onednn_norm_grad_sums, tn_kernel_onednn_reduce_max, tn_kernel_onednn_reduce_min,
    tn_kernel_onednn_reduce_sum;

static const struct {
  const tn_kernel *own, *reference;
  const char *op;
  int32_t n_in, n_out;
} reductions[] = {{&tn_kernel_onednn_reduce_sum, &tn_kernel_cpu_reduce_sum, "reduce_sum", 1, 1},
                  {&tn_kernel_onednn_reduce_max, &tn_kernel_cpu_reduce_max, "reduce_max", 1, 1},
                  {&tn_kernel_onednn_reduce_min, &tn_kernel_cpu_reduce_min, "reduce_min", 1, 1},
                  {&tn_kernel_onednn_moments, &tn_kernel_cpu_moments, "moments", 1, 2},
                  {&tn_kernel_onednn_norm_grad_sums, &tn_kernel_cpu_norm_grad_sums, "norm_grad_sums", 4, 2}};
enum { REDUCTIONS = sizeof reductions / sizeof reductions[0] };

static bool is_reduced(const tn_reduce_attributes *a, int32_t rank, int32_t dim) {
  for (int64_t i = 0; i < a->axes.n; i++)
    if (a->axes.v[i] == dim || a->axes.v[i] + rank == dim) return true;
  return a->axes.n == 0;
}

static tn_type reduced_type(const tn_type *x, const tn_reduce_attributes *a, int32_t dtype) {
  tn_type y = {dtype, 0, {0}};
  for (int32_t i = 0; i < x->rank; i++)
    if (!is_reduced(a, x->rank, i)) y.dims[y.rank++] = x->dims[i];
  return y;
}

/* A mean near 0 would have the rounding of elements that are far larger. */
static void raise_by_4(const tn_type *x, void *data) {
  for (int64_t i = 0; i < tn_type_count(x); i++) rig_put(x, data, i, rig_get(x, data, i) + 4);
}

static void check(size_t k, const tn_type *x, const tn_reduce_attributes *a, int32_t variants, tn_rng *rng) {
  rig_match m;
  int32_t number[4];
  tn_type wide = reduced_type(x, a, TN_F32), types[4] = {*x, *x, wide, wide};
  tn_type results[2] = {reduced_type(x, a, reductions[k].n_out == 2 ? TN_F32 : x->dtype), wide};
  void *in[4] = {NULL};
  rig_start(&m);
  for (int32_t i = 0; i < reductions[k].n_in; i++) {
    number[i] = rig_in(&m, &types[i]);
    in[i] = rig_drawn(&types[i], rng);
  }
  if (k == 3) raise_by_4(x, in[0]);
  int32_t first = rig_node(&m, reductions[k].op, a, number, reductions[k].n_in, results, reductions[k].n_out);
  for (int32_t i = 0; i < reductions[k].n_out; i++) rig_out(&m, first + i);
  ways_check(reductions[k].own, reductions[k].reference, &m, in, k == 1 || k == 2 ? 0 : 1e-6, variants);
  rig_sweep_allocations(reductions[k].own, &m);
  for (int32_t i = 0; i < 4; i++) free(in[i]);
}

static const int32_t dtypes[] = {TN_F32, TN_BF16, TN_F16};

static void channels_in_blocks_are_reduced_as_row_major_ones_are(void **state) {
  (void)state;
  static const int64_t shapes[][4] = {{3, 16, 5, 7},  {2, 32, 1, 1},  {1, 48, 9, 3},  {4, 16, 19, 31},
                                      {9, 64, 6, 14}, {5, 32, 13, 9}, {32, 80, 3, 3}, {0, 16, 2, 2}};
  static const int64_t batch[] = {0, 2, 3}, space[] = {2, 3};
  tn_rng rng = tn_rng_at(71, 0);
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
    for (size_t k = 0; k < REDUCTIONS; k++)
      for (size_t d = 0; d < 3; d++) {
        tn_type x = rig_type(dtypes[d], 4, shapes[s]);
        tn_reduce_attributes channels = {{3, batch}, 0}, planes = {{2, space}, 0};
        bool extreme = k == 1 || k == 2;
        if (!extreme || shapes[s][0] > 0) check(k, &x, &channels, 3, &rng);
        if (s < 4) check(k, &x, &planes, 3, &rng);
      }
}

static void any_axes_agree_with_the_reference(void **state) {
  (void)state;
  static const struct {
    int32_t rank;
    int64_t dims[4];
    int64_t n_axes, axes[3];
  } shapes[] = {{0, {0}, 0, {0}},
                {1, {70003}, 0, {0}},
                {1, {5}, 0, {0}},
                {2, {3, 20001}, 1, {1}},
                {2, {20001, 7}, 1, {0}},
                {2, {150, 600}, 1, {0}},
                {2, {600, 65}, 1, {1}},
                {3, {5, 40, 13}, 2, {0, 2}},
                {3, {6, 500, 8}, 1, {1}},
                {4, {3, 10, 7, 5}, 2, {1, 3}},
                {4, {1, 10, 7, 5}, 2, {0, -2}},
                {2, {1000, 2}, 1, {1}},
                {2, {0, 9}, 1, {1}},
                {2, {5, 0}, 1, {0}},
                {3, {4, 1, 19}, 1, {1}}};
  tn_rng rng = tn_rng_at(72, 0);
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
    for (size_t k = 0; k < REDUCTIONS; k++)
      for (size_t d = 0; d < 3; d++) {
        tn_type x = rig_type(dtypes[d], shapes[s].rank, shapes[s].dims);
        tn_reduce_attributes a = {{shapes[s].n_axes, shapes[s].axes}, 0};
        check(k, &x, &a, 0, &rng);
      }
}

/* Data of standard deviation 1 around 1,000 (bf16: 100), after an outlier in each second use. */
static void check_far_moments(const tn_type *x, const tn_reduce_attributes *a, bool outlier, tn_rng *rng) {
  rig_match m;
  tn_type wide = reduced_type(x, a, TN_F32), results[2] = {wide, wide};
  void *in = rig_tensor(x);
  for (int64_t i = 0; i < tn_type_count(x); i++)
    rig_put(x, in, i, (x->dtype == TN_BF16 ? 100 : 1000) + tn_rng_between(rng, -1.7, 1.7));
  if (outlier) rig_put(x, in, 0, -20000);
  rig_start(&m);
  int32_t number = rig_in(&m, x), first = rig_node(&m, "moments", a, &number, 1, results, 2);
  rig_out(&m, first);
  rig_out(&m, first + 1);
  ways_check(&tn_kernel_onednn_moments, &tn_kernel_cpu_moments, &m, &in, 8e-6, 0);
  free(in);
}

static void variances_keep_their_digits_where_means_are_far_from_0(void **state) {
  (void)state;
  int64_t batch[] = {0, 2, 3}, rows[] = {0};
  tn_reduce_attributes channels = {{3, batch}, 0}, columns = {{1, rows}, 0}, all = {{0, NULL}, 0};
  tn_rng rng = tn_rng_at(73, 0);
  for (size_t d = 0; d < 3; d++)
    for (int outlier = 0; outlier < 2; outlier++) {
      tn_type image = RIG_TYPE(dtypes[d], 8, 32, 20, 20), table = RIG_TYPE(dtypes[d], 9000, 37),
              line = RIG_TYPE(dtypes[d], 70003), odd = RIG_TYPE(dtypes[d], 8, 5, 7, 7);
      check_far_moments(&image, &channels, outlier, &rng);
      check_far_moments(&odd, &channels, outlier, &rng);
      check_far_moments(&table, &columns, outlier, &rng);
      check_far_moments(&line, &all, outlier, &rng);
    }
}

static void long_sums_lose_little(void **state) {
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
  rig_run_on_all(&tn_kernel_onednn_reduce_sum, &m, in, out);
  assert_true(y >= (float)(0x1p24 + N - 1 - 512) && y <= (float)(0x1p24 + N - 1));
  free(x);
}

static void what_it_has_not_is_left_to_others(void **state) {
  (void)state;
  rig_match m;
  static const int64_t axes[] = {1, 3};
  tn_type x = RIG_TYPE(TN_F64, 3, 4), y = rig_type(TN_F64, 0, NULL);
  tn_type wide = RIG_TYPE(TN_F32, 2, 3, 4, 5, 6), kept = RIG_TYPE(TN_F32, 2, 4, 6);
  tn_reduce_attributes all = {{0, NULL}, 0}, some = {{2, axes}, 0};
  rig_start(&m);
  int32_t number = rig_in(&m, &x);
  rig_out(&m, rig_node(&m, "reduce_sum", &all, &number, 1, &y, 1));
  assert_int_equal(rig_query(&tn_kernel_onednn_reduce_sum, &m).status, TN_EUNSUPPORTED);
  rig_start(&m);
  number = rig_in(&m, &wide);
  rig_out(&m, rig_node(&m, "reduce_sum", &some, &number, 1, &kept, 1));
  assert_int_equal(rig_query(&tn_kernel_onednn_reduce_sum, &m).status, TN_EUNSUPPORTED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(channels_in_blocks_are_reduced_as_row_major_ones_are),
      cmocka_unit_test(any_axes_agree_with_the_reference),
      cmocka_unit_test(variances_keep_their_digits_where_means_are_far_from_0),
      cmocka_unit_test(long_sums_lose_little),
      cmocka_unit_test(what_it_has_not_is_left_to_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
