/* matmul against sums in f64, element by element. */
#include "tests/unit/backends/cpu/rig.h"

#include <math.h>

extern const tn_kernel tn_kernel_cpu_matmul;

typedef struct operand {
  tn_type type;
  void *data;
} operand;

/* An element of the product, and the sum of the magnitudes of its terms, which bounds the error. */
typedef struct sum {
  double value, magnitude;
} sum;

static sum naive(const operand *a, const operand *b, const tn_matmul_attributes *t, const tn_type *y,
                 const int64_t *at) {
  int64_t m = at[y->rank - 2], n = at[y->rank - 1];
  int64_t k = a->type.dims[a->type.rank - (t->transpose_a ? 2 : 1)];
  sum s = {0, 0};
  for (int64_t p = 0; p < k; p++) {
    int64_t i[TN_MAX_RANK], j[TN_MAX_RANK];
    memcpy(i, at, sizeof i);
    memcpy(j, at, sizeof j);
    i[y->rank - 2] = t->transpose_a ? p : m;
    i[y->rank - 1] = t->transpose_a ? m : p;
    j[y->rank - 2] = t->transpose_b ? n : p;
    j[y->rank - 1] = t->transpose_b ? p : n;
    double term = rig_get(&a->type, a->data, rig_broadcast_at(&a->type, y, i)) *
                  rig_get(&b->type, b->data, rig_broadcast_at(&b->type, y, j));
    s.value += term;
    s.magnitude += fabs(term);
  }
  return s;
}

static void check(const operand *a, const operand *b, const operand *bias, const tn_matmul_attributes *t,
                  const operand *y, int64_t samples) {
  int64_t count = tn_type_count(&y->type), step = count / samples + 1;
  int32_t wide = y->type.dtype == TN_F64 ? TN_F64 : TN_F32;
  for (int64_t i = 0; i < count; i += step) {
    int64_t at[TN_MAX_RANK] = {0};
    rig_coordinates(&y->type, i, at);
    sum s = naive(a, b, t, &y->type, at);
    if (bias != NULL) s.value += rig_get(&bias->type, bias->data, at[y->type.rank - 1]);
    double got = rig_get(&y->type, y->data, i);
    double bound = rig_ulp(y->type.dtype, s.value) / 2 + 40 * rig_ulp(wide, s.magnitude + fabs(s.value));
    if (!(fabs(got - s.value) <= bound))
      fail_msg("element %lld is %.17g, expected %.17g +- %g", (long long)i, got, s.value, bound);
  }
}

static operand drawn(tn_type type, tn_rng *rng) { return (operand){type, rig_drawn(&type, rng)}; }

/* One product; a_type and b_type have the dimensions before transposition. */
static void try_product(tn_type a_type, tn_type b_type, tn_type y_type, tn_matmul_attributes t,
                        int32_t with_bias, tn_rng *rng) {
  int64_t *a_dims = a_type.dims + a_type.rank - 2, *b_dims = b_type.dims + b_type.rank - 2;
  if (t.transpose_a) {
    int64_t rows = a_dims[0];
    a_dims[0] = a_dims[1];
    a_dims[1] = rows;
  }
  if (t.transpose_b) {
    int64_t rows = b_dims[0];
    b_dims[0] = b_dims[1];
    b_dims[1] = rows;
  }
  operand a = drawn(a_type, rng), b = drawn(b_type, rng), y = {y_type, rig_tensor(&y_type)};
  operand bias = drawn(RIG_TYPE(y_type.dtype, y_type.dims[y_type.rank - 1]), rng);
  static rig_match m;
  rig_start(&m);
  int32_t in[3] = {rig_in(&m, &a_type), rig_in(&m, &b_type), rig_in(&m, with_bias ? &bias.type : NULL)};
  rig_out(&m, rig_node(&m, "matmul", &t, in, 3, &y_type, 1));
  rig_run_on_all(&tn_kernel_cpu_matmul, &m, (void *[]){a.data, b.data, with_bias ? bias.data : NULL},
                 (void *[]){y.data});
  check(&a, &b, with_bias ? &bias : NULL, &t, &y, 3000);
  free(a.data);
  free(b.data);
  free(bias.data);
  free(y.data);
}

static const int32_t dtypes[4] = {TN_F32, TN_F64, TN_F16, TN_BF16};

static void matrices_of_drawn_sizes_are_multiplied(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(2, 0);
  for (int32_t i = 0; i < 160; i++) {
    int64_t most = i % 8 == 0 ? 150 : 40, dtype = dtypes[i % 4];
    int64_t m = 1 + tn_rng_below(&rng, most), n = 1 + tn_rng_below(&rng, most),
            k = 1 + tn_rng_below(&rng, 300);
    tn_matmul_attributes t = {(int32_t)tn_rng_below(&rng, 2), (int32_t)tn_rng_below(&rng, 2)};
    try_product(RIG_TYPE((int32_t)dtype, m, k), RIG_TYPE((int32_t)dtype, k, n),
                RIG_TYPE((int32_t)dtype, m, n), t, i / 4 % 2, &rng);
  }
}

static void matrices_of_several_tiles_and_blocks_are_multiplied(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(3, 0);
  for (int32_t i = 0; i < 4; i++) {
    int32_t dtype = dtypes[i];
    tn_matmul_attributes t = {i & 1, i >> 1};
    try_product(RIG_TYPE(dtype, 301, 517), RIG_TYPE(dtype, 517, 270), RIG_TYPE(dtype, 301, 270), t, 1, &rng);
  }
}

static void batches_broadcast(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(4, 0);
  for (int32_t i = 0; i < 16; i++) {
    int32_t dtype = dtypes[i % 4];
    int64_t k = i < 8 ? 5 : 70;
    tn_matmul_attributes t = {i / 4 % 2, i / 8};
    try_product(RIG_TYPE(dtype, 3, 1, 9, k), RIG_TYPE(dtype, 4, k, 33), RIG_TYPE(dtype, 3, 4, 9, 33), t,
                i % 2, &rng);
    try_product(RIG_TYPE(dtype, 3, 4, 9, k), RIG_TYPE(dtype, k, 33), RIG_TYPE(dtype, 3, 4, 9, 33), t, 1,
                &rng);
    try_product(RIG_TYPE(dtype, 9, k), RIG_TYPE(dtype, 5, k, 33), RIG_TYPE(dtype, 5, 9, 33), t, 0, &rng);
    try_product(RIG_TYPE(dtype, 2, 1, 3, 9, k), RIG_TYPE(dtype, 2, 4, 1, k, 8),
                RIG_TYPE(dtype, 2, 4, 3, 9, 8), t, 0, &rng);
  }
}

static void rows_and_columns_are_multiplied(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(5, 0);
  for (int32_t i = 0; i < 16; i++) {
    int32_t dtype = dtypes[i % 4];
    tn_matmul_attributes t = {i / 4 % 2, i / 8};
    try_product(RIG_TYPE(dtype, 1, 200), RIG_TYPE(dtype, 200, 1000), RIG_TYPE(dtype, 1, 1000), t, 1, &rng);
    try_product(RIG_TYPE(dtype, 700, 90), RIG_TYPE(dtype, 90, 1), RIG_TYPE(dtype, 700, 1), t, 1, &rng);
    try_product(RIG_TYPE(dtype, 1, 1), RIG_TYPE(dtype, 1, 1), RIG_TYPE(dtype, 1, 1), t, 0, &rng);
  }
}

static void a_sum_of_nothing_is_the_bias_or_zero(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(6, 0);
  for (int32_t i = 0; i < 8; i++) {
    int32_t dtype = dtypes[i % 4];
    tn_matmul_attributes t = {0, i / 4};
    try_product(RIG_TYPE(dtype, 7, 0), RIG_TYPE(dtype, 0, 5), RIG_TYPE(dtype, 7, 5), t, i % 2, &rng);
    try_product(RIG_TYPE(dtype, 300, 0), RIG_TYPE(dtype, 0, 500), RIG_TYPE(dtype, 300, 500), t, i % 2, &rng);
  }
}

static void empty_results_are_left_alone(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(7, 0);
  tn_matmul_attributes t = {0, 0};
  try_product(RIG_TYPE(TN_F32, 0, 4), RIG_TYPE(TN_F32, 4, 5), RIG_TYPE(TN_F32, 0, 5), t, 1, &rng);
  try_product(RIG_TYPE(TN_F32, 3, 4), RIG_TYPE(TN_F32, 4, 0), RIG_TYPE(TN_F32, 3, 0), t, 1, &rng);
  try_product(RIG_TYPE(TN_F32, 0, 3, 4), RIG_TYPE(TN_F32, 4, 5), RIG_TYPE(TN_F32, 0, 3, 5), t, 0, &rng);
}

static void values_that_are_not_finite_stay_so(void **state) {
  (void)state;
  tn_matmul_attributes t = {0, 0};
  tn_type type = RIG_TYPE(TN_F32, 2, 2);
  float a[4] = {INFINITY, 1, 1, 1}, b[4] = {1, 0, NAN, 2}, y[4];
  static rig_match m;
  rig_start(&m);
  int32_t in[3] = {rig_in(&m, &type), rig_in(&m, &type), rig_in(&m, NULL)};
  rig_out(&m, rig_node(&m, "matmul", &t, in, 3, &type, 1));
  rig_run_on_all(&tn_kernel_cpu_matmul, &m, (void *[]){a, b, NULL}, (void *[]){y});
  assert_true(isnan(y[0]) && isnan(y[1]) && isnan(y[2]) && y[3] == 2);
}

static void a_small_workspace_is_enough_for_a_large_product(void **state) {
  (void)state;
  tn_matmul_attributes t = {0, 0};
  tn_type type = RIG_TYPE(TN_F32, 100000, 100000);
  static rig_match m;
  rig_start(&m);
  int32_t in[3] = {rig_in(&m, &type), rig_in(&m, &type), rig_in(&m, NULL)};
  rig_out(&m, rig_node(&m, "matmul", &t, in, 3, &type, 1));
  assert_in_range(rig_query(&tn_kernel_cpu_matmul, &m).workspace_bytes, 1, 32 << 20);
}

static void integer_types_are_unsupported(void **state) {
  (void)state;
  tn_matmul_attributes t = {0, 0};
  tn_type type = RIG_TYPE(TN_I32, 2, 2);
  static rig_match m;
  rig_start(&m);
  int32_t in[3] = {rig_in(&m, &type), rig_in(&m, &type), rig_in(&m, NULL)};
  rig_out(&m, rig_node(&m, "matmul", &t, in, 3, &type, 1));
  rig_answer answer = rig_query(&tn_kernel_cpu_matmul, &m);
  assert_int_equal(answer.status, TN_EUNSUPPORTED);
  assert_non_null(strstr(answer.text, "i32"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matrices_of_drawn_sizes_are_multiplied),
      cmocka_unit_test(matrices_of_several_tiles_and_blocks_are_multiplied),
      cmocka_unit_test(batches_broadcast),
      cmocka_unit_test(rows_and_columns_are_multiplied),
      cmocka_unit_test(a_sum_of_nothing_is_the_bias_or_zero),
      cmocka_unit_test(empty_results_are_left_alone),
      cmocka_unit_test(values_that_are_not_finite_stay_so),
      cmocka_unit_test(a_small_workspace_is_enough_for_a_large_product),
      cmocka_unit_test(integer_types_are_unsupported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
