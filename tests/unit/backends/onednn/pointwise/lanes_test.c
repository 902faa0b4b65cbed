#include "tests/unit/backends/onednn/isa_rig.h"

#include <math.h>

#include "backends/onednn/onednn.h"

extern const tn_kernel tn_kernel_cpu_pointwise, tn_kernel_onednn_pointwise;

/* Regions over whole numbers, conversions, and choices by one truth: machine code and instructions have the
 * bits of the reference, at the ends of what each type reaches, too. */

enum { ELEMENTS = 1000, MOST_IN = 3 };

static const double ends[] = {
    0,    -0.0,     1,         -1,         0.99,       -0.99,        31,       32,
    33,   127,      127.9,     128,        -128,       -128.9,       -129,     254.5,
    255,  255.9,    256,       2147483520, 2147483647, 2147483648.0, 4.3e9,    -2147483648.0,
    -3e9, INFINITY, -INFINITY, NAN,        1e-40,      -1e-40,       16777217, 3e38};
enum { ENDS = sizeof ends / sizeof ends[0] };

/* Ends of ranges among other numbers; whole numbers have those that they reach. */
static void *drawn_with_ends(const tn_type *type, tn_rng *rng) {
  void *data = rig_drawn(type, rng);
  for (int64_t i = 0; i < tn_type_count(type); i++) {
    double value = ends[tn_rng_below(rng, ENDS)];
    if (type->dtype == TN_I32 && !(value >= INT32_MIN && value <= INT32_MAX)) value = INT32_MIN;
    if (type->dtype == TN_I8) value = (double)(tn_rng_below(rng, 256) - 128);
    if (type->dtype == TN_U8) value = (double)tn_rng_below(rng, 256);
    if (type->dtype != TN_BOOL && tn_rng_below(rng, 2) == 0) rig_put(type, data, i, value);
  }
  return data;
}

static void check_region(const rig_match *m, tn_rng *rng) {
  tn_onednn interpreted = {.options = {.code = TN_CODE_OFF}};
  void *in[MOST_IN];
  for (int32_t i = 0; i < m->match.n_in; i++) in[i] = drawn_with_ends(m->in[i], rng);
  ways_check(&tn_kernel_onednn_pointwise, &tn_kernel_cpu_pointwise, m, in, 0, 0);
  ways_use_backend(&interpreted);
  ways_check(&tn_kernel_onednn_pointwise, &tn_kernel_cpu_pointwise, m, in, 0, 0);
  ways_use_backend(NULL);
  for (int32_t i = 0; i < m->match.n_in; i++) free(in[i]);
}

/* ---- one op ---- */

static int32_t node_of(rig_match *m, const char *op, const void *attributes, int32_t n_in, const int32_t *in,
                       int32_t dtype) {
  tn_type type = RIG_TYPE(dtype, ELEMENTS);
  return rig_node(m, op, attributes, in, n_in, &type, 1);
}

/* The op twice, so that a value passes between two instructions, and its first result. */
static void check_op(const char *op, int32_t dtype, int32_t n_in, int32_t result, tn_rng *rng) {
  rig_match *m = calloc(1, sizeof *m);
  tn_type type = RIG_TYPE(dtype, ELEMENTS);
  int32_t in[2] = {0, 0};
  rig_start(m);
  for (int32_t i = 0; i < n_in; i++) in[i] = rig_in(m, &type);
  const int32_t first = node_of(m, op, NULL, n_in, in, result);
  rig_out(m, first);
  if (result == dtype) rig_out(m, node_of(m, op, NULL, n_in, (int32_t[]){first, in[0]}, result));
  check_region(m, rng);
  free(m);
}

static void ops_of_whole_numbers_have_the_bits_of_the_reference(void **state) {
  (void)state;
  static const char *const two[] = {"add",        "sub",         "mul",        "maximum",
                                    "minimum",    "bitwise_and", "bitwise_or", "bitwise_xor",
                                    "shift_left", "shift_right", "quotient"};
  static const char *const one[] = {"neg", "abs", "sign"}, *const compared[] = {"eq", "ne", "lt",
                                                                                "le", "gt", "ge"};
  static const int32_t dtypes[] = {TN_I32, TN_I8, TN_U8};
  tn_rng rng = tn_rng_at(91, 0);
  for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
    for (size_t i = 0; i < sizeof two / sizeof two[0]; i++) check_op(two[i], dtypes[d], 2, dtypes[d], &rng);
    for (size_t i = 0; i < sizeof one / sizeof one[0]; i++) check_op(one[i], dtypes[d], 1, dtypes[d], &rng);
    for (size_t i = 0; i < sizeof compared / sizeof compared[0]; i++)
      check_op(compared[i], dtypes[d], 2, TN_BOOL, &rng);
  }
}

static void ops_of_truths_have_the_bits_of_the_reference(void **state) {
  (void)state;
  static const char *const two[] = {"and", "or", "bitwise_xor", "eq", "ne", "lt", "ge"};
  tn_rng rng = tn_rng_at(92, 0);
  for (size_t i = 0; i < sizeof two / sizeof two[0]; i++) check_op(two[i], TN_BOOL, 2, TN_BOOL, &rng);
  check_op("not", TN_BOOL, 1, TN_BOOL, &rng);
}

/* ---- casts ---- */

/* There and to f32, so that one cast reads memory and the other a register. */
static void check_cast(int32_t from, int32_t to, tn_rng *rng) {
  rig_match *m = calloc(1, sizeof *m);
  const tn_cast_attributes there = {to}, back = {TN_F32};
  tn_type type = RIG_TYPE(from, ELEMENTS);
  rig_start(m);
  const int32_t x = rig_in(m, &type), y = node_of(m, "cast", &there, 1, &x, to);
  rig_out(m, y);
  rig_out(m, node_of(m, "cast", &back, 1, &y, TN_F32));
  check_region(m, rng);
  free(m);
}

static void casts_saturate_and_wrap_as_the_reference_does(void **state) {
  (void)state;
  static const int32_t dtypes[] = {TN_F32, TN_BF16, TN_F16, TN_I32, TN_I8, TN_U8, TN_BOOL, TN_I64, TN_F64};
  enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };
  tn_rng rng = tn_rng_at(93, 0);
  for (size_t from = 0; from < DTYPES; from++)
    for (size_t to = 0; to < DTYPES; to++)
      if (from != to) check_cast(dtypes[from], dtypes[to], &rng);
}

/* ---- choices ---- */

/* x >= k ? a : b for ascending k, where each truth has two or three uses: the last one stands behind another
 * comparison in every third step. With `shown` the truths are results, too. */
static void check_choices(int32_t dtype, int32_t steps, bool shown, tn_rng *rng) {
  rig_match *m = calloc(1, sizeof *m);
  tn_full_attributes full[40];
  tn_type type = RIG_TYPE(TN_F32, ELEMENTS), chosen = RIG_TYPE(dtype, ELEMENTS),
          scalar = rig_type(TN_F32, 0, NULL);
  rig_start(m);
  const int32_t x = rig_in(m, &type), a = rig_in(m, &chosen), b = rig_in(m, &chosen);
  int32_t slope = x, start = a, last = 0;
  for (int32_t i = 0; i < steps; i++) {
    full[i] = (tn_full_attributes){{0, NULL}, -3 + 0.7 * i, TN_F32};
    const int32_t k = rig_node(m, "full", &full[i], NULL, 0, &scalar, 1), before = last;
    const int32_t truth = node_of(m, "ge", NULL, 2, (int32_t[]){x, k}, TN_BOOL);
    slope = node_of(m, "where", NULL, 3, (int32_t[]){truth, k, slope}, TN_F32);
    start = node_of(m, "where", NULL, 3, (int32_t[]){truth, b, start}, dtype);
    if (i % 3 == 2) slope = node_of(m, "where", NULL, 3, (int32_t[]){before, x, slope}, TN_F32);
    if (shown && i % 5 == 0) rig_out(m, truth);
    last = truth;
  }
  rig_out(m, slope);
  rig_out(m, start);
  check_region(m, rng);
  free(m);
}

static void choices_by_one_truth_have_the_bits_of_the_reference(void **state) {
  (void)state;
  static const int32_t dtypes[] = {TN_F32, TN_BF16, TN_I32, TN_U8, TN_I8, TN_BOOL};
  tn_rng rng = tn_rng_at(94, 0);
  for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++)
    for (int32_t steps = 1; steps < 40; steps += steps < 3 ? 1 : 12)
      for (int32_t shown = 0; shown < 2; shown++) check_choices(dtypes[d], steps, shown, &rng);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ops_of_whole_numbers_have_the_bits_of_the_reference),
      cmocka_unit_test(ops_of_truths_have_the_bits_of_the_reference),
      cmocka_unit_test(casts_saturate_and_wrap_as_the_reference_does),
      cmocka_unit_test(choices_by_one_truth_have_the_bits_of_the_reference),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
