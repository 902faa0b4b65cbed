/* tests/integration/cuda/rows_test.c: reductions and ops on rows on the double of CUDA, compared with the
 * reference in f64: shapes that are divided among blocks, launches and passes of a sort, which the draws of
 * the conformance suite are too small for, and operands that are aligned to their elements only. */
#include "devices.h"

#include <math.h>

#include "tenon/random.h"

enum { OPERANDS = 6, RESULTS = 3 };

/* An operand: `apart` around `mean`, or integers below `below`; one without dimensions is a position, below
 * - 1. */
typedef struct operand {
  int64_t rank, dims[4];
  double mean, apart;
  int64_t below;
} operand;

typedef struct use {
  const char *op;
  int32_t n;
  operand in[OPERANDS];
  int32_t results;
  double tolerance; /* relative to the largest element of a result, 0: to each element */
} use;

static const use uses[] = {
    /* one result of many blocks; runs in parts; runs of several images; columns in parts; narrow columns */
    {"reduce_sum", 1, {{1, {200003}, 0, 1, 0}}, 1, 1e-5},
    {"reduce_sum(axes=[1])", 1, {{2, {3, 40000}, 0, 1, 0}}, 1, 1e-5},
    {"reduce_max(axes=[0, 2])", 1, {{3, {5, 3, 4004}, 0, 1, 0}}, 1, 1e-6},
    {"reduce_min(axes=[0, 2, 3])", 1, {{4, {3, 5, 7, 4}, 0, 1, 0}}, 1, 1e-6},
    {"reduce_sum(axes=[0])", 1, {{2, {20000, 12}, 0, 1, 0}}, 1, 1e-5},
    {"reduce_sum(axes=[0])", 1, {{2, {3000, 133}, 0, 1, 0}}, 1, 1e-5},
    {"reduce_sum(axes=[1])", 1, {{3, {500, 3, 8}, 0, 1, 0}}, 1, 1e-5},
    {"reduce_sum(axes=[0, 2])", 1, {{4, {4, 3, 5, 6}, 0, 1, 0}}, 1, 1e-5},
    {"argmax", 1, {{2, {2, 30000}, 0, 1, 0}}, 1, 1e-9},
    {"argmax(axis=0)", 1, {{2, {9000, 4}, 0, 1, 0}}, 1, 1e-9},
    /* variances keep their digits at a mean of 1,000 deviations */
    {"moments(axes=[0, 2])", 1, {{3, {6, 4, 8000}, 1000, 1, 0}}, 2, 0},
    {"moments(axes=[0])", 1, {{2, {12000, 20}, 1000, 1, 0}}, 2, 0},
    {"moments(axes=[0, 2, 3])", 1, {{4, {8, 32, 12, 12}, 1000, 1, 0}}, 2, 0},
    {"norm_grad_sums(axes=[0])",
     4,
     {{2, {9000, 8}, 0, 1, 0}, {2, {9000, 8}, 0, 1, 0}, {1, {8}, 0, 1, 0}, {1, {8}, 2, 1, 0}},
     2,
     1e-5},
    {"softmax", 1, {{2, {2, 9001}, 0, 9, 0}}, 1, 1e-5},
    {"softmax(axis=1)", 1, {{3, {3, 700, 5}, 0, 9, 0}}, 1, 1e-5},
    {"log_softmax", 1, {{2, {3, 4096}, 0, 9, 0}}, 1, 1e-5},
    {"cross_entropy(smoothing=0.1)", 2, {{2, {3, 50000}, 0, 9, 0}, {1, {3}, 0, 0, 50000}}, 2, 1e-5},
    {"layer_norm(epsilon=0)",
     3,
     {{2, {3, 5000}, 1000, 1, 0}, {1, {5000}, 0, 1, 0}, {1, {5000}, 0, 1, 0}},
     3,
     3e-4},
    /* rows by parts of a warp, a block a row, sums in shared memory and in the workspace */
    {"layer_norm_grad",
     5,
     {{2, {700, 48}, 0, 1, 0},
      {2, {700, 48}, 0, 1, 0},
      {1, {700}, 0, 1, 0},
      {1, {700}, 2, 1, 0},
      {1, {48}, 0, 1, 0}},
     3,
     1e-5},
    {"layer_norm_grad",
     5,
     {{2, {9, 5001}, 0, 1, 0},
      {2, {9, 5001}, 0, 1, 0},
      {1, {9}, 0, 1, 0},
      {1, {9}, 2, 1, 0},
      {1, {5001}, 0, 1, 0}},
     3,
     1e-5},
    {"embedding", 2, {{1, {300}, 0, 0, 50}, {2, {50, 24}, 0, 1, 0}}, 1, 1e-9},
    /* a sort in one pass and in two; rows with many positions, and rows without */
    {"embedding_grad(rows=7)", 2, {{1, {5000}, 0, 0, 3}, {2, {5000, 20}, 0, 1, 0}}, 1, 1e-5},
    {"embedding_grad(rows=70000)", 2, {{1, {2500}, 0, 0, 70000}, {2, {2500, 4}, 0, 1, 0}}, 1, 1e-5},
    /* caches in several parts, of which some have no rows; rows of single elements; wide heads */
    {"cached_attention(heads=2)",
     6,
     {{3, {1, 1, 16}, 0, 1, 0},
      {3, {1, 1, 16}, 0, 1, 0},
      {3, {1, 1, 24}, 0, 1, 0},
      {3, {1, 1100, 16}, 0, 1, 0},
      {3, {1, 1100, 24}, 0, 1, 0},
      {0, {0}, 0, 0, 1100}},
     3,
     1e-5},
    {"cached_attention(scale=0.5)",
     6,
     {{4, {2, 2, 3, 20}, 0, 1, 0},
      {4, {2, 2, 3, 20}, 0, 1, 0},
      {4, {2, 2, 3, 7}, 0, 1, 0},
      {4, {2, 2, 700, 20}, 0, 1, 0},
      {4, {2, 2, 700, 7}, 0, 1, 0},
      {0, {0}, 0, 0, 255}},
     3,
     1e-5},
    {"cached_attention",
     6,
     {{4, {1, 2, 2, 200}, 0, 1, 0},
      {4, {1, 2, 2, 200}, 0, 1, 0},
      {4, {1, 2, 2, 256}, 0, 1, 0},
      {4, {1, 2, 80, 200}, 0, 1, 0},
      {4, {1, 2, 80, 256}, 0, 1, 0},
      {0, {0}, 0, 0, 1}},
     3,
     1e-5},
    {"embedding_grad(rows=300)", 2, {{1, {2500}, 0, 0, 300}, {2, {2500, 1100}, 0, 1, 0}}, 1, 1e-5},
};

static tn_type type_of(const operand *o, int32_t dtype) {
  tn_type t = {o->rank == 0 ? TN_I64 : o->below > 0 ? TN_I32 : dtype, (int32_t)o->rank, {0}};
  for (int64_t i = 0; i < o->rank; i++) t.dims[i] = o->dims[i];
  return t;
}

/* A tensor, `shift` elements behind an aligned address. */
static tn_tensor *tensor_at(tn_device *d, const tn_type *type, int64_t shift) {
  tn_type memory = {type->dtype, 1, {tn_type_count(type) + shift}};
  tn_tensor *whole = NULL, *view = NULL;
  OK(d, tn_tensor_new(d, &memory, &whole));
  OK(whole, tn_tensor_view(whole, type, shift * (int64_t)tn_dtype_size(type->dtype), &view));
  tn_tensor_delete(whole);
  return view;
}

/* The same numbers for both dtypes. */
static void fill(tn_tensor *to, const operand *o, uint64_t seed) {
  const tn_type *type = tn_tensor_type(to);
  int64_t n = tn_type_count(type);
  tn_rng rng = tn_rng_at(seed, 0);
  void *data = malloc(tn_type_bytes(type) + 1);
  assert_non_null(data);
  for (int64_t i = 0; i < n; i++) {
    float x = (float)(o->mean + tn_rng_between(&rng, -1.7, 1.7) * o->apart);
    if (o->rank == 0)
      ((int64_t *)data)[i] = o->below - 1;
    else if (o->below > 0)
      ((int32_t *)data)[i] = (int32_t)tn_rng_below(&rng, o->below);
    else if (type->dtype == TN_F64)
      ((double *)data)[i] = (double)x;
    else
      ((float *)data)[i] = x;
  }
  OK(to, tn_tensor_write(to, data, tn_type_bytes(type)));
  free(data);
}

static void apply(tn_device *d, const use *u, int32_t dtype, int64_t shift, tn_tensor **out) {
  tn_tensor *in[OPERANDS] = {NULL};
  for (int32_t i = 0; i < u->n; i++) {
    tn_type type = type_of(&u->in[i], dtype);
    in[i] = tensor_at(d, &type, shift);
    fill(in[i], &u->in[i], (uint64_t)i + 1);
  }
  OK(d, tn_apply(d, u->op, in, u->n, out, u->results));
  for (int32_t i = 0; i < u->n; i++) tn_tensor_delete(in[i]);
}

static double *numbers(tn_tensor *from) {
  const tn_type *type = tn_tensor_type(from);
  int64_t n = tn_type_count(type);
  double *x = malloc((size_t)n * sizeof *x + 1);
  void *data = malloc(tn_type_bytes(type) + 1);
  assert_non_null(x);
  assert_non_null(data);
  OK(from, tn_tensor_read(from, data, tn_type_bytes(type)));
  for (int64_t i = 0; i < n; i++)
    x[i] = type->dtype == TN_F64   ? ((double *)data)[i]
           : type->dtype == TN_F32 ? (double)((float *)data)[i]
                                   : (double)((int32_t *)data)[i];
  free(data);
  return x;
}

static void compare(const use *u, int32_t result, tn_tensor *found, tn_tensor *expected) {
  int64_t n = tn_type_count(tn_tensor_type(expected));
  double *x = numbers(found), *y = numbers(expected), largest = 0;
  assert_int_equal(tn_type_count(tn_tensor_type(found)), n);
  for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs(y[i]));
  for (int64_t i = 0; i < n; i++) {
    double bound = u->tolerance > 0 ? u->tolerance * largest : 2e-6 * fabs(y[i]);
    if (!(fabs(x[i] - y[i]) <= bound))
      fail_msg("%s: element %lld of result %d is %.9g, expected %.9g", u->op, (long long)i, (int)result, x[i],
               y[i]);
  }
  free(x);
  free(y);
}

/* The bits of a second run, too. */
static void check(const use *u, int64_t shift) {
  tn_tensor *found[RESULTS] = {NULL}, *again[RESULTS] = {NULL}, *expected[RESULTS] = {NULL};
  apply(cuda, u, TN_F32, shift, found);
  apply(cuda, u, TN_F32, shift, again);
  apply(cpu, u, TN_F64, 0, expected);
  for (int32_t i = 0; i < u->results; i++) {
    compare(u, i, found[i], expected[i]);
    double *x = numbers(found[i]), *y = numbers(again[i]);
    assert_memory_equal(x, y, (size_t)tn_type_count(tn_tensor_type(found[i])) * sizeof *x);
    free(x);
    free(y);
    tn_tensor_delete(found[i]);
    tn_tensor_delete(again[i]);
    tn_tensor_delete(expected[i]);
  }
}

static void large_rows_and_reductions_equal_the_reference(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) check(&uses[i], 0);
}

static void operands_need_no_more_alignment_than_an_element(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) check(&uses[i], 1);
}

/* A target that is no class, and an id that is no row: NaN where the reference fails, and nothing in the
 * gradient. */
static void wrong_classes_and_rows_are_not_a_number(void **state) {
  static const int32_t wrong[4] = {1, -1, 7, 2};
  static const float dy[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  tn_type ids = {TN_I32, 1, {4}}, table = {TN_F32, 2, {3, 2}}, rows = {TN_F32, 2, {4, 3}},
          grad = {TN_F32, 2, {4, 2}};
  tn_tensor *in[2] = {NULL}, *out[2] = {NULL};
  (void)state;
  in[0] = tensor_at(cuda, &ids, 0);
  in[1] = tensor_at(cuda, &table, 0);
  OK(in[0], tn_tensor_write(in[0], wrong, sizeof wrong));
  OK(cuda, tn_apply(cuda, "embedding", in, 2, out, 1));
  double *y = numbers(out[0]);
  for (int i = 0; i < 8; i++) assert_int_equal(isnan(y[i]), i / 2 == 1 || i / 2 == 2);
  free(y);
  tn_tensor_delete(out[0]);
  tn_tensor_delete(in[1]);
  in[1] = tensor_at(cuda, &grad, 0);
  out[0] = NULL;
  OK(in[1], tn_tensor_write(in[1], dy, sizeof dy));
  OK(cuda, tn_apply(cuda, "embedding_grad(rows=3)", in, 2, out, 1));
  y = numbers(out[0]);
  static const double sums[6] = {0, 0, 1, 2, 7, 8};
  assert_memory_equal(y, sums, sizeof sums);
  free(y);
  tn_tensor_delete(out[0]);
  tn_tensor_delete(in[1]);
  tn_tensor *of_loss[2] = {tensor_at(cuda, &rows, 0), in[0]};
  out[0] = NULL;
  OK(cuda, tn_apply(cuda, "cross_entropy", of_loss, 2, out, 1));
  y = numbers(out[0]);
  for (int i = 0; i < 4; i++) assert_int_equal(isnan(y[i]), i == 1 || i == 2);
  free(y);
  tn_tensor_delete(out[0]);
  tn_tensor_delete(of_loss[0]);
  tn_tensor_delete(in[0]);
}

/* The results of a position that leaves no room are not a number, and nothing is written: the old rows stay.
 */
static void a_position_outside_the_cache_is_not_a_number(void **state) {
  static const int64_t wrong[] = {-1, 3, INT64_MIN, INT64_MAX};
  static const int64_t rows[5] = {2, 2, 2, 4, 4};
  (void)state;
  for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
    tn_tensor *in[6] = {NULL}, *out[3] = {NULL};
    const operand o = {3, {1, 4, 6}, 1, 1, 0};
    const tn_type scalar = {TN_I64, 0, {0}};
    for (int i = 0; i < 5; i++) {
      tn_type type = {TN_F32, 3, {1, rows[i], 6}};
      in[i] = tensor_at(cuda, &type, 0);
      fill(in[i], &o, (uint64_t)i);
    }
    in[5] = tensor_at(cuda, &scalar, 0);
    OK(in[5], tn_tensor_write(in[5], &wrong[w], sizeof *wrong));
    OK(cuda, tn_apply(cuda, "cached_attention(heads=2)", in, 6, out, 3));
    double *y = numbers(out[0]), *old = numbers(in[3]), *all = numbers(out[1]);
    for (int i = 0; i < 12; i++) assert_true(isnan(y[i]));
    assert_memory_equal(old, all, 24 * sizeof *all);
    free(y);
    free(old);
    free(all);
    for (int i = 0; i < 6; i++) tn_tensor_delete(in[i]);
    for (int i = 0; i < 3; i++) tn_tensor_delete(out[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(large_rows_and_reductions_equal_the_reference),
      cmocka_unit_test(operands_need_no_more_alignment_than_an_element),
      cmocka_unit_test(wrong_classes_and_rows_are_not_a_number),
      cmocka_unit_test(a_position_outside_the_cache_is_not_a_number),
  };
  return cmocka_run_group_tests(tests, open_devices, close_devices);
}
