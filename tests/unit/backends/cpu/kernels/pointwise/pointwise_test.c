#include "tests/unit/backends/cpu/rig.h"

#include <math.h>
#include <stdio.h>

extern const tn_kernel tn_kernel_cpu_pointwise, tn_kernel_cpu_random_normal, tn_kernel_cpu_random_uniform;

/* ---- drawn shapes ---- */

static tn_type drawn_space(tn_rng *rng, int32_t dtype) {
  tn_type type = {dtype, (int32_t)tn_rng_below(rng, 5), {0}};
  for (int32_t i = 0; i < type.rank; i++) type.dims[i] = 1 + tn_rng_below(rng, i == type.rank - 1 ? 40 : 7);
  return type;
}

/* A type that broadcasts to the space: some dimensions are 1, some leading ones are gone. */
static tn_type drawn_operand(tn_rng *rng, const tn_type *space, int32_t dtype) {
  tn_type type = {dtype, space->rank, {0}};
  int32_t cut = tn_rng_below(rng, 3) == 0 ? (int32_t)tn_rng_below(rng, space->rank + 1) : 0;
  bool same = tn_rng_below(rng, 2) == 0;
  type.rank -= cut;
  for (int32_t i = 0; i < type.rank; i++)
    type.dims[i] = !same && tn_rng_below(rng, 3) == 0 ? 1 : space->dims[cut + i];
  return type;
}

static tn_type broadcast_type(const tn_type *types, int32_t n, int32_t dtype) {
  tn_type space = {dtype, 0, {0}};
  for (int32_t i = 0; i < n; i++)
    if (types[i].rank > space.rank) space.rank = types[i].rank;
  for (int32_t k = 0; k < space.rank; k++) {
    space.dims[k] = 1;
    for (int32_t i = 0; i < n; i++) {
      int32_t d = k - (space.rank - types[i].rank);
      if (d >= 0 && types[i].dims[d] != 1) space.dims[k] = types[i].dims[d];
    }
  }
  return space;
}

/* ---- what each op means ---- */

#define MEANING(name, value)                                                                                 \
  static double name(double x, double y, double z) {                                                         \
    (void)y;                                                                                                 \
    (void)z;                                                                                                 \
    return value;                                                                                            \
  }
MEANING(op_neg, -x)
MEANING(op_abs, fabs(x))
MEANING(op_sign, x > 0 ? 1 : x < 0 ? -1 : x != x ? x : 0)
MEANING(op_exp, exp(x))
MEANING(op_log, log(x))
MEANING(op_sqrt, sqrt(x))
MEANING(op_rsqrt, 1 / sqrt(x))
MEANING(op_reciprocal, 1 / x)
MEANING(op_tanh, tanh(x))
MEANING(op_sigmoid, 1 / (1 + exp(-x)))
MEANING(op_erf, erf(x))
MEANING(op_sin, sin(x))
MEANING(op_cos, cos(x))
MEANING(op_floor, floor(x))
MEANING(op_add, x + y)
MEANING(op_sub, x - y)
MEANING(op_mul, x *y)
MEANING(op_div, x / y)
MEANING(op_maximum, x > y || x != x ? x : y)
MEANING(op_minimum, x < y || x != x ? x : y)
MEANING(op_pow, pow(x, y))
MEANING(op_affine, x * 2 - 0.25)
MEANING(op_eq, x == y)
MEANING(op_ne, x != y)
MEANING(op_lt, x < y)
MEANING(op_le, x <= y)
MEANING(op_gt, x > y)
MEANING(op_ge, x >= y)
MEANING(op_is_finite, isfinite(x) ? 1 : 0)
MEANING(op_and, x != 0 && y != 0)
MEANING(op_or, x != 0 || y != 0)
MEANING(op_not, x == 0)
MEANING(op_where, x != 0 ? y : z)

enum { F = 1, I = 2, B = 4 }; /* floats, whole numbers, bool and u8 */
typedef struct op_case {
  const char *op;
  int32_t n_in;
  double (*meaning)(double x, double y, double z);
  int32_t types, result; /* result TN_BOOL, or TN_ANY for the operands' type */
  double ulps;           /* how far from the rounded meaning a float may be */
} op_case;

static const op_case ops[] = {
    {"neg", 1, op_neg, F | I, TN_ANY, 0},
    {"abs", 1, op_abs, F | I, TN_ANY, 0},
    {"sign", 1, op_sign, F | I, TN_ANY, 0},
    {"exp", 1, op_exp, F, TN_ANY, 2},
    {"log", 1, op_log, F, TN_ANY, 2},
    {"sqrt", 1, op_sqrt, F, TN_ANY, 0},
    {"rsqrt", 1, op_rsqrt, F, TN_ANY, 1},
    {"reciprocal", 1, op_reciprocal, F, TN_ANY, 0},
    {"tanh", 1, op_tanh, F, TN_ANY, 2},
    {"sigmoid", 1, op_sigmoid, F, TN_ANY, 3},
    {"erf", 1, op_erf, F, TN_ANY, 2},
    {"sin", 1, op_sin, F, TN_ANY, 1},
    {"cos", 1, op_cos, F, TN_ANY, 1},
    {"floor", 1, op_floor, F, TN_ANY, 0},
    {"add", 2, op_add, F | I, TN_ANY, 0},
    {"sub", 2, op_sub, F | I, TN_ANY, 0},
    {"mul", 2, op_mul, F | I, TN_ANY, 0},
    {"div", 2, op_div, F, TN_ANY, 0},
    {"maximum", 2, op_maximum, F | I, TN_ANY, 0},
    {"minimum", 2, op_minimum, F | I, TN_ANY, 0},
    {"pow", 2, op_pow, F, TN_ANY, 1},
    {"affine", 1, op_affine, F, TN_ANY, 0},
    {"eq", 2, op_eq, F | I | B, TN_BOOL, 0},
    {"ne", 2, op_ne, F | I | B, TN_BOOL, 0},
    {"lt", 2, op_lt, F | I | B, TN_BOOL, 0},
    {"le", 2, op_le, F | I | B, TN_BOOL, 0},
    {"gt", 2, op_gt, F | I | B, TN_BOOL, 0},
    {"ge", 2, op_ge, F | I | B, TN_BOOL, 0},
    {"is_finite", 1, op_is_finite, F | I | B, TN_BOOL, 0},
    {"and", 2, op_and, B, TN_BOOL, 0},
    {"or", 2, op_or, B, TN_BOOL, 0},
    {"not", 1, op_not, B, TN_BOOL, 0},
    {"where", 3, op_where, F | I | B, TN_ANY, 0},
};
enum { N_OPS = sizeof ops / sizeof ops[0] };

static const tn_affine_attributes affine_attributes = {2, -0.25};

static int32_t kind_of(int32_t dtype) {
  return tn_dtype_is_float(dtype) ? F : dtype == TN_BOOL ? B : dtype == TN_U8 ? I | B : I;
}

static bool takes(const op_case *op, int32_t dtype) {
  if (!(op->types & kind_of(dtype))) return false;
  return op->types != B || dtype == TN_BOOL;
}

static void check_close(const op_case *op, int32_t dtype, double got, double want, const double *x) {
  double rounded = rig_rounded(dtype, want);
  if (got == rounded || (got != got && rounded != rounded)) return;
  if (isfinite(got) && isfinite(rounded) && fabs(got - want) <= (op->ulps + 0.5) * rig_ulp(dtype, want) &&
      op->ulps > 0)
    return;
  fail_msg("%s of %s(%g, %g, %g) is %.17g, expected %.17g", op->op, tn_dtype_name(dtype), x[0], x[1], x[2],
           got, rounded);
}

static void check_op(const op_case *op, int32_t dtype, tn_rng *rng) {
  rig_match m;
  tn_type space = drawn_space(rng, dtype), types[3];
  int32_t number[3];
  void *in[3];
  rig_start(&m);
  for (int32_t i = 0; i < op->n_in; i++) {
    int32_t own = strcmp(op->op, "where") == 0 && i == 0 ? TN_BOOL : dtype;
    types[i] = drawn_operand(rng, &space, own);
    number[i] = rig_in(&m, &types[i]);
    in[i] = rig_drawn(&types[i], rng);
  }
  tn_type out_type = broadcast_type(types, op->n_in, op->result == TN_ANY ? dtype : op->result);
  rig_out(&m, rig_node(&m, op->op, &affine_attributes, number, op->n_in, &out_type, 1));
  void *out = rig_tensor(&out_type);
  rig_run_on_all(&tn_kernel_cpu_pointwise, &m, in, &out);
  for (int64_t i = 0; i < tn_type_count(&out_type); i++) {
    int64_t at[TN_MAX_RANK];
    double x[3] = {0, 0, 0};
    rig_coordinates(&out_type, i, at);
    for (int32_t k = 0; k < op->n_in; k++)
      x[k] = rig_get(&types[k], in[k], rig_broadcast_at(&types[k], &out_type, at));
    check_close(op, out_type.dtype, rig_get(&out_type, out, i), op->meaning(x[0], x[1], x[2]), x);
  }
  for (int32_t i = 0; i < op->n_in; i++) free(in[i]);
  free(out);
}

static void every_op_means_what_libm_says_over_drawn_shapes(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(11, 0);
  for (int32_t k = 0; k < N_OPS; k++)
    for (int32_t dtype = TN_BOOL; dtype < TN_DTYPES; dtype++)
      for (int32_t round = 0; round < 6 && takes(&ops[k], dtype); round++) check_op(&ops[k], dtype, &rng);
}

/* ---- one op on given numbers ---- */

/* Runs a node without attributes that matter on rank-1 operands. */
static void run_one(const char *op, const void *attributes, int32_t n_in, const tn_type *type,
                    void *const *in, const tn_type *out_type, void *out) {
  rig_match m;
  int32_t number[3];
  rig_start(&m);
  for (int32_t i = 0; i < n_in; i++) number[i] = rig_in(&m, type);
  rig_out(&m, rig_node(&m, op, attributes, number, n_in, out_type, 1));
  rig_run_on_all(&tn_kernel_cpu_pointwise, &m, in, &out);
}

static void functions_keep_infinities_nan_and_signed_zeros(void **state) {
  (void)state;
  static const char *const names[] = {"exp",  "log", "tanh",  "sigmoid", "erf",
                                      "sqrt", "abs", "floor", "neg",     "sign"};
  float x[] = {INFINITY, -INFINITY, NAN,    0.0f,  -0.0f,   1e-42f,
               -1e-42f,  3e38f,     -3e38f, 88.8f, -103.9f, -110.0f};
  enum { N = sizeof x / sizeof x[0] };
  tn_type type = RIG_TYPE(TN_F32, N);
  for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
    float y[N];
    void *in[] = {x};
    const op_case *op = ops;
    while (strcmp(op->op, names[k]) != 0) op++;
    run_one(names[k], NULL, 1, &type, in, &type, y);
    for (int i = 0; i < N; i++) {
      double args[3] = {(double)x[i], 0, 0}, want = op->meaning((double)x[i], 0, 0);
      check_close(op, TN_F32, (double)y[i], want, args);
      if (want == 0) assert_int_equal(signbit(y[i]) != 0, signbit((float)want) != 0);
    }
  }
}

static void maximum_and_minimum_are_nan_where_either_operand_is(void **state) {
  (void)state;
  float x[] = {NAN, 1, NAN, 2}, y[] = {1, NAN, NAN, 3}, z[4];
  tn_type type = RIG_TYPE(TN_F32, 4);
  void *in[] = {x, y};
  for (int k = 0; k < 2; k++) {
    run_one(k == 0 ? "maximum" : "minimum", NULL, 2, &type, in, &type, z);
    assert_true(isnan(z[0]) && isnan(z[1]) && isnan(z[2]));
    assert_true(z[3] == (k == 0 ? 3.0f : 2.0f));
  }
}

static void whole_numbers_wrap_and_divide_without_undefined_behaviour(void **state) {
  (void)state;
  int32_t x[] = {INT32_MAX, INT32_MIN, INT32_MIN, 7, -7, 5}, y[] = {1, -1, 1, -2, 2, 0}, z[6];
  tn_type type = RIG_TYPE(TN_I32, 6);
  void *in[] = {x, y};
  run_one("add", NULL, 2, &type, in, &type, z);
  assert_int_equal(z[0], INT32_MIN);
  assert_int_equal(z[1], INT32_MAX);
  run_one("div", NULL, 2, &type, in, &type, z);
  assert_int_equal(z[1], INT32_MIN);
  assert_int_equal(z[3], -3);
  assert_int_equal(z[4], -3);
  assert_int_equal(z[5], 0);
  run_one("neg", NULL, 1, &type, in, &type, z);
  assert_int_equal(z[1], INT32_MIN);
  run_one("abs", NULL, 1, &type, in, &type, z);
  assert_int_equal(z[1], INT32_MIN);
}

/* Of every operation on two bytes: what C computes in int, cut to the byte. */
static int byte_meaning(int op, int x, int y, int bits) {
  bool is_long = y < 0 || y >= bits;
  switch (op) {
  case 0: return x + y;
  case 1: return x - y;
  case 2: return x * y;
  case 3: return y == 0 ? 0 : x / y;
  case 4: return y == 0 ? 0 : x % y;
  case 5: return is_long ? 0 : x << y;
  case 6: return x >> (is_long ? bits : y);
  case 7: return x & y;
  case 8: return x ^ y;
  case 9: return x > y ? x : y;
  default: return x < y ? x : y;
  }
}

static void every_pair_of_bytes_wraps(void **state) {
  (void)state;
  static const char *const names[] = {"add",         "sub",        "mul",         "quotient",
                                      "fmod",        "shift_left", "shift_right", "bitwise_and",
                                      "bitwise_xor", "maximum",    "minimum"};
  enum { PAIRS = 1 << 16 };
  static uint8_t x[PAIRS], y[PAIRS], z[PAIRS];
  void *in[] = {x, y};
  for (int i = 0; i < PAIRS; i++) {
    x[i] = (uint8_t)i;
    y[i] = (uint8_t)(i >> 8);
  }
  for (int k = 0; k < 2; k++)
    for (int op = 0; op < (int)(sizeof names / sizeof *names); op++) {
      tn_type type = RIG_TYPE(k == 0 ? TN_U8 : TN_I8, PAIRS);
      run_one(names[op], NULL, 2, &type, in, &type, z);
      for (int i = 0; i < PAIRS; i++) {
        int a = k == 0 ? x[i] : (int8_t)x[i], b = k == 0 ? y[i] : (int8_t)y[i];
        if (z[i] != (uint8_t)byte_meaning(op, a, b, 8))
          fail_msg("%s of %s(%d, %d) is %d", names[op], tn_dtype_name(type.dtype), a, b, z[i]);
      }
    }
}

/* ---- conversion ---- */

/* A float as a whole number of this type: toward zero, as far as the type reaches. */
static double saturated(int32_t dtype, double x) {
  double low = dtype == TN_U8 ? 0 : dtype == TN_I8 ? -128 : dtype == TN_I32 ? -0x1p31 : -0x1p63;
  double high = dtype == TN_U8 ? 255 : dtype == TN_I8 ? 127 : dtype == TN_I32 ? 0x1p31 - 1 : 0x1p63;
  if (x != x) return 0;
  return x < low ? low : x > high ? high : trunc(x);
}

static double converted(int32_t from, int32_t to, double x) {
  if (to == TN_BOOL) return x != 0;
  if (tn_dtype_is_float(to)) return rig_rounded(to, x);
  if (tn_dtype_is_float(from)) return saturated(to, x);
  return to == TN_U8 ? (double)(uint8_t)(int64_t)x : to == TN_I8 ? (double)(int8_t)(int64_t)x : x;
}

static void casts_between_all_types_round_truncate_and_saturate(void **state) {
  (void)state;
  double x[] = {0,          1,   -1,   2.5,  -2.5,  3.99,     255,       256, 300, -300, 65519, 1e6,
                2147483520, 4e9, -4e9, 1e19, -1e19, INFINITY, -INFINITY, NAN, 0.1, -0.1, 1e-30};
  enum { N = sizeof x / sizeof x[0] };
  for (int32_t from = TN_BOOL; from < TN_DTYPES; from++)
    for (int32_t to = TN_BOOL; to < TN_DTYPES; to++) {
      tn_type in_type = RIG_TYPE(from, N), out_type = RIG_TYPE(to, N);
      tn_cast_attributes a = {to};
      uint64_t memory[N], result[N];
      void *in[] = {memory};
      for (int i = 0; i < N; i++) {
        double v = tn_dtype_is_float(from) ? x[i] : fabs(x[i]) < 200 && x[i] == x[i] ? x[i] : 77;
        rig_put(&in_type, memory, i, from == TN_BOOL ? v > 0 : from == TN_U8 ? fabs(v) : v);
      }
      run_one("cast", &a, 1, &in_type, in, &out_type, result);
      for (int i = 0; i < N; i++) {
        double v = rig_get(&in_type, memory, i), want = converted(from, to, v),
               got = rig_get(&out_type, result, i);
        if (got != want && !(got != got && want != want))
          fail_msg("%g of %s as %s is %.17g, expected %.17g", v, tn_dtype_name(from), tn_dtype_name(to), got,
                   want);
      }
    }
}

/* ---- positions ---- */

static void full_and_iota_fill_every_type(void **state) {
  (void)state;
  for (int32_t dtype = TN_BOOL; dtype < TN_DTYPES; dtype++) {
    int64_t dims[] = {3, 5, 700};
    tn_type type = rig_type(dtype, 3, dims);
    tn_full_attributes full = {{3, dims}, 3.25, dtype};
    void *out = rig_tensor(&type);
    run_one("full", &full, 0, NULL, NULL, &type, out);
    for (int64_t i = 0; i < tn_type_count(&type); i++)
      assert_true(rig_get(&type, out, i) == (dtype == TN_BOOL ? 1 : rig_rounded(dtype, 3.25)));
    for (int64_t axis = -3; axis < 3 && dtype != TN_BOOL; axis++) {
      tn_iota_attributes iota = {{3, dims}, axis, dtype};
      run_one("iota", &iota, 0, NULL, NULL, &type, out);
      for (int64_t i = 0; i < tn_type_count(&type); i++) {
        int64_t at[TN_MAX_RANK];
        rig_coordinates(&type, i, at);
        assert_true(rig_get(&type, out, i) == rig_rounded(dtype, (double)at[axis < 0 ? axis + 3 : axis]));
      }
    }
    free(out);
  }
}

static void spread_gives_each_range_its_value(void **state) {
  (void)state;
  int64_t starts[] = {0, 3, 3, 700, 701, 5000}, index[] = {1, 0, 2, 0, 3, 1};
  tn_spread_attributes a = {{6, starts}, {6, index}, 2000};
  static const int32_t dtypes[] = {TN_F32, TN_F16, TN_F64, TN_I64, TN_BOOL};
  for (size_t k = 0; k < sizeof dtypes / sizeof dtypes[0]; k++) {
    rig_match m;
    tn_type values = RIG_TYPE(dtypes[k], 4), type = RIG_TYPE(dtypes[k], 2000);
    tn_rng rng = tn_rng_at(5, k);
    void *in[] = {rig_drawn(&values, &rng)}, *out = rig_tensor(&type);
    rig_start(&m);
    int32_t number = rig_in(&m, &values);
    rig_out(&m, rig_node(&m, "spread", &a, &number, 1, &type, 1));
    rig_run_on_all(&tn_kernel_cpu_pointwise, &m, in, &out);
    for (int64_t i = 0; i < 2000; i++) {
      int64_t r = i < 3 ? 0 : i < 700 ? 2 : i < 701 ? 3 : 4;
      assert_true(rig_get(&type, out, i) == rig_get(&values, in[0], index[r]));
    }
    free(in[0]);
    free(out);
  }
}

/* ---- random numbers ---- */

static double defined_random(bool normal, const tn_random_attributes *a, int64_t iteration, int64_t i) {
  tn_philox w = tn_philox_at((uint64_t)a->stream, (uint64_t)iteration, (uint64_t)i / 4);
  int64_t pair = i % 4 & ~1;
  if (!normal && a->dtype == TN_F64) return a->a + (a->b - a->a) * (double)tn_uniform_of(w.v[i % 4]);
  if (!normal) return (double)((float)a->a + ((float)a->b - (float)a->a) * tn_uniform_of(w.v[i % 4]));
  double r = sqrt(-2 * log(1 - (double)tn_uniform_of(w.v[pair])));
  double turn = 2 * acos(-1) * (double)tn_uniform_of(w.v[pair + 1]);
  return a->a + a->b * r * (i % 2 == 0 ? cos(turn) : sin(turn));
}

/* Draws a tensor of `dims` broadcast to `space` and compares with the definition. */
static void check_random(const tn_kernel *kernel, bool normal, int32_t dtype, const tn_type *own,
                         const tn_type *space, int64_t block) {
  rig_match m;
  tn_random_attributes a = {{own->rank, own->dims}, -77123456789, -1.5, 2.5, dtype};
  tn_type scalar = rig_type(TN_I64, 0, NULL), type = *own, wide = *space;
  int64_t iteration = 123456789012;
  type.dtype = wide.dtype = dtype;
  rig_start(&m);
  int32_t numbers[] = {rig_in(&m, &scalar), rig_in(&m, block < 0 ? NULL : &scalar)};
  if (block < 0) numbers[1] = -1;
  int32_t v = rig_node(&m, normal ? "random_normal" : "random_uniform", &a, numbers, 2, &type, 1);
  int64_t before = block > 0 ? block * tn_type_count(&type) : 0;
  tn_broadcast_attributes dims = {{wide.rank, wide.dims}};
  if (kernel == &tn_kernel_cpu_pointwise) v = rig_node(&m, "broadcast", &dims, &v, 1, &wide, 1);
  rig_out(&m, v);
  void *in[] = {&iteration, block < 0 ? NULL : &block}, *out = rig_tensor(&wide);
  rig_run_on_all(kernel, &m, in, &out);
  for (int64_t i = 0; i < tn_type_count(&wide); i++) {
    int64_t at[TN_MAX_RANK];
    rig_coordinates(&wide, i, at);
    double want = defined_random(normal, &a, iteration, before + rig_broadcast_at(&type, &wide, at));
    double got = rig_get(&wide, out, i), slack = normal ? 1e-6 + rig_ulp(dtype, want) : 0;
    if (dtype == TN_F64 && normal) slack = 1e-14;
    if (!(fabs(got - rig_rounded(dtype, want)) <= slack))
      fail_msg("number %lld is %.17g, expected %.17g", (long long)i, got, want);
  }
  free(out);
}

static void random_numbers_are_the_defined_function_of_stream_iteration_and_global_index(void **state) {
  (void)state;
  tn_type types[] = {RIG_TYPE(0, 40000), RIG_TYPE(0, 3, 5, 7), RIG_TYPE(0, 1), RIG_TYPE(0, 2, 4099)};
  tn_type wide = RIG_TYPE(0, 3, 2, 5, 7), part = RIG_TYPE(0, 2, 1, 7);
  for (int normal = 0; normal < 2; normal++)
    for (int32_t dtype = TN_F16; dtype <= TN_F64; dtype++) {
      for (size_t k = 0; k < sizeof types / sizeof types[0]; k++) {
        for (int64_t block = -1; block < 3; block++) {
          check_random(&tn_kernel_cpu_pointwise, normal, dtype, &types[k], &types[k], block);
          check_random(normal ? &tn_kernel_cpu_random_normal : &tn_kernel_cpu_random_uniform, normal, dtype,
                       &types[k], &types[k], block);
        }
      }
      check_random(&tn_kernel_cpu_pointwise, normal, dtype, &part, &wide, -1);
      check_random(&tn_kernel_cpu_pointwise, normal, dtype, &part, &wide, 5);
    }
}

static void normal_numbers_have_their_mean_and_deviation(void **state) {
  (void)state;
  rig_match m;
  int64_t dims[] = {200000}, iteration = 3;
  tn_random_attributes a = {{1, dims}, 9, 2, 3, TN_F32};
  tn_type scalar = rig_type(TN_I64, 0, NULL), type = rig_type(TN_F32, 1, dims);
  rig_start(&m);
  int32_t number = rig_in(&m, &scalar);
  rig_out(&m, rig_node(&m, "random_normal", &a, &number, 1, &type, 1));
  void *in[] = {&iteration}, *out = rig_tensor(&type);
  rig_run_on_all(&tn_kernel_cpu_random_normal, &m, in, &out);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < dims[0]; i++) {
    double x = rig_get(&type, out, i) - 2;
    sum += x;
    squares += x * x;
  }
  assert_true(fabs(sum / 200000) < 0.03);
  assert_true(fabs(sqrt(squares / 200000) - 3) < 0.03);
  free(out);
}

/* ---- regions ---- */

/* A drawn region: nodes over f32, f16, bf16, f64 and bool values of the same space or broadcast to it. */
typedef struct region {
  rig_match whole;
  tn_full_attributes full[RIG_NODES];
  tn_cast_attributes cast[RIG_NODES];
  tn_broadcast_attributes broadcast[RIG_NODES];
  tn_type broadcast_types[RIG_NODES];
  tn_random_attributes random[RIG_NODES];
  int32_t n_values;
} region;

static int32_t value_with(tn_rng *rng, const region *r, int32_t dtype) {
  for (int32_t tries = 0; tries < 200; tries++) {
    int32_t v = (int32_t)tn_rng_below(rng, r->n_values);
    if (dtype == TN_ANY ? tn_dtype_is_float(r->whole.types[v].dtype) : r->whole.types[v].dtype == dtype)
      return v;
  }
  return -1;
}

static void add_random_node(tn_rng *rng, region *r, const tn_type *space) {
  rig_match *m = &r->whole;
  int32_t k = m->match.n_nodes, v = value_with(rng, r, TN_I64);
  tn_type type = drawn_operand(rng, space, TN_F32);
  r->random[k] = (tn_random_attributes){{type.rank, m->types[r->n_values].dims}, k, 0, 1, TN_F32};
  rig_node(m, tn_rng_below(rng, 2) ? "random_uniform" : "random_normal", &r->random[k], &v, 1, &type, 1);
}

static void add_cast_node(tn_rng *rng, region *r) {
  rig_match *m = &r->whole;
  int32_t k = m->match.n_nodes, v = value_with(rng, r, TN_ANY);
  tn_type type = m->types[v];
  r->cast[k].to = type.dtype = TN_F16 + (int32_t)tn_rng_below(rng, 4);
  rig_node(m, "cast", &r->cast[k], &v, 1, &type, 1);
}

static void add_op_node(tn_rng *rng, region *r) {
  rig_match *m = &r->whole;
  const op_case *op = &ops[tn_rng_below(rng, N_OPS)];
  int32_t v[3], lead = value_with(rng, r, TN_ANY), dtype = m->types[lead].dtype;
  if (!(op->types & F)) return;
  for (int32_t i = 0; i < op->n_in; i++) {
    v[i] = value_with(rng, r, strcmp(op->op, "where") == 0 && i == 0 ? TN_BOOL : dtype);
    if (v[i] < 0) return;
  }
  tn_type types[3];
  for (int32_t i = 0; i < op->n_in; i++) types[i] = m->types[v[i]];
  tn_type type = broadcast_type(types, op->n_in, op->result == TN_ANY ? dtype : op->result);
  rig_node(m, op->op, &affine_attributes, v, op->n_in, &type, 1);
}

static void add_broadcast_node(tn_rng *rng, region *r, const tn_type *space) {
  rig_match *m = &r->whole;
  int32_t k = m->match.n_nodes, v = value_with(rng, r, TN_ANY);
  r->broadcast_types[k] = *space;
  r->broadcast_types[k].dtype = m->types[v].dtype;
  r->broadcast[k].dims = (tn_ints){space->rank, r->broadcast_types[k].dims};
  rig_node(m, "broadcast", &r->broadcast[k], &v, 1, &r->broadcast_types[k], 1);
}

static void draw_region(tn_rng *rng, region *r, int32_t n_in, int32_t n_nodes) {
  rig_match *m = &r->whole;
  tn_type space = drawn_space(rng, TN_F32), scalar = rig_type(TN_I64, 0, NULL);
  memset(r, 0, sizeof *r);
  rig_start(m);
  rig_in(m, &scalar);
  for (int32_t i = 1; i < n_in; i++) {
    tn_type type = drawn_operand(rng, &space, TN_F16 + (int32_t)tn_rng_below(rng, 4));
    if (tn_rng_below(rng, 5) == 0) type.dtype = TN_BOOL;
    if (i == 1) type = space;
    rig_in(m, &type);
  }
  while (m->match.n_nodes < n_nodes) {
    r->n_values = m->match.n_in + m->match.n_nodes;
    switch (tn_rng_below(rng, 8)) {
    case 0: add_cast_node(rng, r); break;
    case 1: add_random_node(rng, r, &space); break;
    case 2: add_broadcast_node(rng, r, &space); break;
    default: add_op_node(rng, r); break;
    }
  }
  r->n_values = m->match.n_in + m->match.n_nodes;
  for (int32_t v = m->match.n_in; v < r->n_values && m->match.n_out < 4; v++)
    if (tn_type_same_dims(&m->types[v], &space) && (tn_rng_below(rng, 3) == 0 || v == r->n_values - 1))
      rig_out(m, v);
}

/* Every node by itself, in order: what the region must equal, bit by bit. */
static void run_by_node(const region *r, void **values) {
  const tn_match *m = &r->whole.match;
  for (int32_t k = 0; k < m->n_nodes; k++) {
    const tn_match_node *n = &m->nodes[k];
    rig_match single;
    int32_t number[3];
    void *in[3];
    rig_start(&single);
    for (int32_t i = 0; i < n->node->n_in; i++) {
      number[i] = rig_in(&single, n->node->in[i]);
      in[i] = values[n->in[i]];
    }
    rig_out(&single,
            rig_node(&single, n->node->op, n->node->attributes, number, n->node->n_in, &n->node->out[0], 1));
    values[n->first_out] = rig_tensor(&n->node->out[0]);
    rig_memory memory = {.in = in, .out = &values[n->first_out], .threads = 1};
    assert_int_equal(rig_run(&tn_kernel_cpu_pointwise, &single, &memory, NULL), TN_OK);
  }
}

static void check_results(const region *r, void *const *values, void *const *out) {
  const tn_match *m = &r->whole.match;
  for (int32_t i = 0; i < m->n_out; i++) {
    if (memcmp(values[m->out_number[i]], out[i], tn_type_bytes(m->out[i])) == 0) continue;
    for (int32_t k = 0; k < m->n_nodes; k++)
      print_error("%d: %s %s <- %d %d %d\n", m->nodes[k].first_out, m->nodes[k].node->op,
                  tn_dtype_name(m->nodes[k].node->out[0].dtype),
                  m->nodes[k].node->n_in > 0 ? m->nodes[k].in[0] : -1,
                  m->nodes[k].node->n_in > 1 ? m->nodes[k].in[1] : -1,
                  m->nodes[k].node->n_in > 2 ? m->nodes[k].in[2] : -1);
    fail_msg("result %d (value %d) differs from its nodes run one by one", i, m->out_number[i]);
  }
}

/* Each in-place pair that the kernel offers, with the result in the operand's memory. */
static int32_t check_pairs(const region *r, void *const *values, void *const *out) {
  const tn_match *m = &r->whole.match;
  rig_answer answer = rig_query(&tn_kernel_cpu_pointwise, &r->whole);
  for (int32_t p = 0; p < answer.n_inplace; p++) {
    int32_t operand = answer.inplace[p][0], result = answer.inplace[p][1];
    void *in[RIG_VALUES], *to[RIG_VALUES];
    assert_true(tn_type_equal(m->in[operand], m->out[result]));
    for (int32_t i = 0; i < m->n_in; i++) in[i] = values[i];
    for (int32_t i = 0; i < m->n_out; i++) to[i] = out[i];
    in[operand] = to[result] =
        memcpy(rig_tensor(m->in[operand]), values[operand], tn_type_bytes(m->in[operand]));
    rig_memory memory = {.in = in, .out = to, .threads = 2};
    assert_int_equal(rig_run(&tn_kernel_cpu_pointwise, &r->whole, &memory, NULL), TN_OK);
    check_results(r, values, to);
    free(to[result]);
  }
  return answer.n_inplace;
}

static void check_region(tn_rng *rng, region *r, int32_t *pairs) {
  const tn_match *m = &r->whole.match;
  void *values[RIG_VALUES] = {NULL}, *out[RIG_VALUES];
  if (m->n_out == 0) return;
  for (int32_t i = 0; i < m->n_in; i++) values[i] = rig_drawn(m->in[i], rng);
  for (int32_t i = 0; i < m->n_out; i++) out[i] = rig_tensor(m->out[i]);
  run_by_node(r, values);
  rig_run_on_all(&tn_kernel_cpu_pointwise, &r->whole, values, out);
  check_results(r, values, out);
  *pairs += check_pairs(r, values, out);
  for (int32_t i = 0; i < r->n_values; i++) free(values[i]);
  for (int32_t i = 0; i < m->n_out; i++) free(out[i]);
}

static void a_region_gives_the_bits_of_its_nodes_also_in_place(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(21, 0);
  region *r = malloc(sizeof *r);
  int32_t pairs = 0;
  for (int32_t k = 0; k < 400; k++) {
    draw_region(&rng, r, 2 + (int32_t)tn_rng_below(&rng, 5), 1 + (int32_t)tn_rng_below(&rng, 25));
    check_region(&rng, r, &pairs);
  }
  assert_true(pairs > 100);
  free(r);
}

/* x, x + 1, x + 2 ... , all made before `op` makes one of them: n values are alive at once. */
static void make_wide_region(rig_match *m, const tn_type *type, int32_t n, tn_affine_attributes *shifts,
                             const char *op) {
  rig_start(m);
  int32_t x = rig_in(m, type), values[160], sum = -1;
  for (int32_t i = 0; i < n; i++) {
    shifts[i] = (tn_affine_attributes){1, i};
    values[i] = rig_node(m, "affine", &shifts[i], &x, 1, type, 1);
  }
  for (int32_t i = 0; i < n; i++) {
    int32_t in[2] = {i == 0 ? values[0] : sum, values[i]};
    sum = rig_node(m, op, NULL, in, 2, type, 1);
  }
  rig_out(m, sum);
}

static void a_region_with_many_live_values_uses_smaller_tiles_or_is_refused(void **state) {
  (void)state;
  rig_match *m = malloc(sizeof *m);
  tn_affine_attributes shifts[160];
  tn_type type = RIG_TYPE(TN_F32, 3000);
  tn_rng rng = tn_rng_at(1, 2);
  void *in[] = {rig_drawn(&type, &rng)}, *out = rig_tensor(&type);
  for (int32_t n = 10; n < 100; n += 40) {
    make_wide_region(m, &type, n, shifts, "maximum");
    rig_run_on_all(&tn_kernel_cpu_pointwise, m, in, &out);
    for (int i = 0; i < 3000; i++) assert_true(((float *)out)[i] == ((float *)in[0])[i] + (float)(n - 1));
  }
  make_wide_region(m, &type, 150, shifts, "div");
  rig_answer answer = rig_query(&tn_kernel_cpu_pointwise, m);
  assert_int_equal(answer.status, TN_EUNSUPPORTED);
  assert_non_null(strstr(answer.text, "alive at once"));
  free(in[0]);
  free(out);
  free(m);
}

static void a_region_of_full_operands_runs_over_storage_and_keeps_padding_zero(void **state) {
  (void)state;
  rig_match m;
  tn_type type = RIG_TYPE(TN_F32, 2, 5, 3, 2), scalar = rig_type(TN_F32, 0, NULL);
  tn_layout layout = {1, 1, {0, 1, 2, 3}, {{1, 4}}};
  rig_start(&m);
  int32_t in_numbers[2] = {rig_in(&m, &type), rig_in(&m, &scalar)};
  int32_t e = rig_node(&m, "exp", NULL, in_numbers, 1, &type, 1), pair[2] = {e, in_numbers[1]};
  rig_out(&m, rig_node(&m, "mul", NULL, pair, 2, &type, 1));
  rig_answer answer = rig_query(&tn_kernel_cpu_pointwise, &m);
  assert_int_equal(answer.in[0].rule, TN_LAYOUT_ANY);
  assert_int_equal(answer.in[1].rule, TN_LAYOUT_ROW_MAJOR);
  assert_int_equal(answer.out[0].rule, TN_LAYOUT_ANY);
  float x[2 * 2 * 6 * 4] = {0}, y[2 * 2 * 6 * 4], two = 2;
  void *in[] = {x, &two}, *out[] = {y};
  tn_layout in_layout[] = {layout, tn_layout_row_major(0)};
  rig_memory memory = {.in = in, .out = out, .in_layout = in_layout, .out_layout = &layout, .threads = 2};
  assert_int_equal(rig_run(&tn_kernel_cpu_pointwise, &m, &memory, NULL), TN_OK);
  for (int i = 0; i < 96; i++) {
    int channel = i / 24 % 2 * 4 + i % 4;
    assert_true(y[i] == (channel < 5 ? 2.0f : 0.0f));
  }
}

static void broadcast_operands_and_positions_want_row_major(void **state) {
  (void)state;
  rig_match m;
  tn_type type = RIG_TYPE(TN_F32, 2, 5, 3), row = RIG_TYPE(TN_F32, 3);
  rig_start(&m);
  int32_t in[2] = {rig_in(&m, &type), rig_in(&m, &row)};
  rig_out(&m, rig_node(&m, "add", NULL, in, 2, &type, 1));
  rig_answer answer = rig_query(&tn_kernel_cpu_pointwise, &m);
  assert_int_equal(answer.in[0].rule, TN_LAYOUT_ROW_MAJOR);
  assert_int_equal(answer.n_inplace, 1);
  assert_int_equal(answer.inplace[0][0], 0);
}

static void empty_tensors_and_scalars_are_handled(void **state) {
  (void)state;
  rig_match m;
  tn_type empty = RIG_TYPE(TN_F32, 3, 0, 2), scalar = rig_type(TN_F32, 0, NULL),
          eight = RIG_TYPE(TN_F32, 1, 2, 1, 2, 2, 1, 3, 2);
  const tn_type *types[] = {&empty, &scalar, &eight};
  for (int k = 0; k < 3; k++) {
    tn_rng rng = tn_rng_at(4, (uint64_t)k);
    rig_start(&m);
    int32_t in[2] = {rig_in(&m, types[k]), rig_in(&m, &scalar)};
    rig_out(&m, rig_node(&m, "mul", NULL, in, 2, types[k], 1));
    float three = 3;
    void *data[] = {rig_drawn(types[k], &rng), &three}, *out = rig_tensor(types[k]);
    rig_run_on_all(&tn_kernel_cpu_pointwise, &m, data, &out);
    for (int64_t i = 0; i < tn_type_count(types[k]); i++)
      assert_true(((float *)out)[i] == ((float *)data[0])[i] * 3);
    free(data[0]);
    free(out);
  }
}

static void every_failing_allocation_is_an_error_and_nothing_leaks(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(23, 0);
  region *r = malloc(sizeof *r);
  do draw_region(&rng, r, 4, 20);
  while (r->whole.match.n_out < 2);
  rig_sweep_allocations(&tn_kernel_cpu_pointwise, &r->whole);
  free(r);
}

static void what_it_cannot_do_is_refused_with_a_reason(void **state) {
  (void)state;
  rig_match m;
  tn_type type = RIG_TYPE(TN_F32, 4), other = RIG_TYPE(TN_F32, 5), u8 = RIG_TYPE(TN_U8, 4);
  rig_start(&m);
  int32_t in[2] = {rig_in(&m, &type), rig_in(&m, &other)};
  rig_out(&m, rig_node(&m, "swish", NULL, in, 1, &type, 1));
  rig_answer answer = rig_query(&tn_kernel_cpu_pointwise, &m);
  assert_int_equal(answer.status, TN_EUNSUPPORTED);
  assert_non_null(strstr(answer.text, "swish"));
  rig_start(&m);
  in[0] = rig_in(&m, &u8);
  rig_out(&m, rig_node(&m, "exp", NULL, in, 1, &u8, 1));
  answer = rig_query(&tn_kernel_cpu_pointwise, &m);
  assert_int_equal(answer.status, TN_EUNSUPPORTED);
  assert_non_null(strstr(answer.text, "exp of u8"));
  rig_start(&m);
  in[0] = rig_in(&m, &type);
  in[1] = rig_in(&m, &other);
  rig_out(&m, rig_node(&m, "neg", NULL, &in[0], 1, &type, 1));
  rig_out(&m, rig_node(&m, "neg", NULL, &in[1], 1, &other, 1));
  assert_int_equal(rig_query(&tn_kernel_cpu_pointwise, &m).status, TN_EUNSUPPORTED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_op_means_what_libm_says_over_drawn_shapes),
      cmocka_unit_test(functions_keep_infinities_nan_and_signed_zeros),
      cmocka_unit_test(maximum_and_minimum_are_nan_where_either_operand_is),
      cmocka_unit_test(whole_numbers_wrap_and_divide_without_undefined_behaviour),
      cmocka_unit_test(every_pair_of_bytes_wraps),
      cmocka_unit_test(casts_between_all_types_round_truncate_and_saturate),
      cmocka_unit_test(full_and_iota_fill_every_type),
      cmocka_unit_test(spread_gives_each_range_its_value),
      cmocka_unit_test(random_numbers_are_the_defined_function_of_stream_iteration_and_global_index),
      cmocka_unit_test(normal_numbers_have_their_mean_and_deviation),
      cmocka_unit_test(a_region_gives_the_bits_of_its_nodes_also_in_place),
      cmocka_unit_test(a_region_with_many_live_values_uses_smaller_tiles_or_is_refused),
      cmocka_unit_test(a_region_of_full_operands_runs_over_storage_and_keeps_padding_zero),
      cmocka_unit_test(broadcast_operands_and_positions_want_row_major),
      cmocka_unit_test(empty_tensors_and_scalars_are_handled),
      cmocka_unit_test(every_failing_allocation_is_an_error_and_nothing_leaks),
      cmocka_unit_test(what_it_cannot_do_is_refused_with_a_reason),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
