#include "tests/unit/backends/onednn/isa_rig.h"

#include <math.h>

#include "backends/onednn/onednn.h"

extern const tn_kernel tn_kernel_onednn_pointwise;

/* Quotients by one value: machine code, which may make them by products, has the bits of division. */

enum { MANTISSAS = 1 << 23, ANY = 1 << 20 };

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* Runs a region with machine code and with instructions. */
static void check_equal(const rig_match *m, void *const *in, int64_t n) {
  tn_onednn interpreted = {.options = {.code = TN_CODE_OFF}};
  float *y[2];
  for (int32_t way = 0; way < 2; way++) {
    y[way] = calloc((size_t)n, sizeof *y[way]);
    rig_memory memory = {
        .in = in, .out = (void *const *)&y[way], .threads = 2, .backend = way ? &interpreted : NULL};
    assert_int_equal(rig_run(&tn_kernel_onednn_pointwise, m, &memory, NULL), TN_OK);
  }
  for (int64_t i = 0; i < n; i++)
    if (bits_of(y[0][i]) != bits_of(y[1][i]))
      fail_msg("of %a, %a: %a, expected %a", (double)((const float *)in[0])[i], (double)*(const float *)in[1],
               (double)y[0][i], (double)y[1][i]);
  for (int32_t way = 0; way < 2; way++) free(y[way]);
}

static void check_quotients(const float *x, int64_t n, const float *divisor) {
  rig_match *m = calloc(1, sizeof *m);
  tn_type type = RIG_TYPE(TN_F32, n), scalar = rig_type(TN_F32, 0, NULL);
  rig_start(m);
  const int32_t in[2] = {rig_in(m, &type), rig_in(m, &scalar)};
  rig_out(m, rig_node(m, "div", NULL, in, 2, &type, 1));
  check_equal(m, (void *const[]){(void *)(uintptr_t)x, (void *)(uintptr_t)divisor}, n);
  free(m);
}

/* All numbers from 1 to 2. */
static float *mantissas(void) {
  float *x = malloc(MANTISSAS * sizeof *x);
  for (uint32_t i = 0; i < MANTISSAS; i++) x[i] = float_of((uint32_t)127 << 23 | i);
  return x;
}

/* Half of the numbers have magnitudes from 2^-100 on and below 2^100, the others any bits. */
static float *any_numbers(tn_rng *rng) {
  float *x = malloc(ANY * sizeof *x);
  for (int64_t i = 0; i < ANY; i++) {
    uint32_t bits = (uint32_t)tn_rng_below(rng, (int64_t)1 << 32);
    uint32_t exponent = (uint32_t)(127 - 100 + tn_rng_below(rng, 200));
    x[i] = float_of(i < ANY / 2 ? (bits & 0x807fffffu) | exponent << 23 : bits);
  }
  return x;
}

static void quotients_have_the_bits_of_division(void **state) {
  (void)state;
  static const float divisors[] = {1,      1.0000001f,     1.9999999f, 3,       -0.7f,      0.0316227766f,
                                   1e-3f,  0x1.fffffep-1f, 0x1p-20f,   0x1p20f, 0x1.8p-21f, 0x1.000002p20f,
                                   1e-30f, 1e30f,          1e-40f,     0,       -0.0f,      INFINITY,
                                   NAN};
  tn_rng rng = tn_rng_at(95, 0);
  float *all = mantissas(), *any = any_numbers(&rng);
  for (size_t i = 0; i < sizeof divisors / sizeof divisors[0] + 8; i++) {
    float c = i < sizeof divisors / sizeof divisors[0] ? divisors[i] : (float)tn_rng_between(&rng, 1, 2);
    if (i % 2 == 0) check_quotients(all, MANTISSAS, &c);
    check_quotients(any, ANY, &c);
  }
  free(all);
  free(any);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(quotients_have_the_bits_of_division),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
