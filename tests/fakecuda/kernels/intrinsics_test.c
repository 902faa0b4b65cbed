/* Each function of host_cuda.h and host_math.h against plain C. */
#include "tests/fakecuda/kernels/rig.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static fake_module *module;

static int open_module(void **state) {
  (void)state;
  module = rig_compile_file("intrinsics.cu");
  return 0;
}

static int close_module(void **state) {
  (void)state;
  fake_module_unload(module);
  return 0;
}

static void compare_words(const uint64_t *got, const uint64_t *expected, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (got[i] != expected[i])
      fail_msg("word %zu: 0x%llx, expected 0x%llx", i, (unsigned long long)got[i],
               (unsigned long long)expected[i]);
  assert_int_equal(got[count], 77); /* the kernel writes no more */
}

static void integers(void **state) {
  (void)state;
  const int64_t wide = 0x0123456789abcdef;
  const uint32_t a = 0x89abcdef, b = (uint32_t)(wide >> 20);
  const uint64_t expected[] = {
      (uint64_t)a * b >> 32,
      (uint64_t)((int64_t)(int32_t)a * -7 >> 32),
      (uint64_t)((unsigned __int128)wide * 0xfedcba9876543210u >> 64),
      (uint64_t)((__int128)wide * -wide >> 64),
      (uint64_t)-48,
      48,
      0 + 3200 + 310000,
      7 + 6400 + 630000,
      (uint64_t)__builtin_popcount(a) + 6400,
      0 + 400 + 410000,
      0x1e6a2c48,
      1ull << 63,
      0x77224400,
      0x23456788,
      0x88000000,
      17,
      1,
      1 + 20 + 500 + 2000 + 40000,
      543,
      2 + 20 + 300 + 2000,
      (uint64_t)INT32_MIN,
      0 + 40,
      (uint64_t)999999995904,
      9999999827968,
      698,
      4000000000,
      (uint64_t)-1000000000000000,
      2 + 30 + 400 + 3000,
      15,
      8 + 1600 + 160000 + 8000000,
  };
  uint64_t to[64];
  for (int i = 0; i < 64; i++) to[i] = 77;
  assert_int_equal(RIG_LAUNCH(module, "integers", rig_line(1, 1, 0, 1), RIG_POINTER(to), (uint64_t)wide), 0);
  compare_words(to, expected, sizeof expected / sizeof *expected);
}

static uint64_t double_bits(double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return bits;
}

static void bits_and_vectors(void **state) {
  (void)state;
  const uint64_t expected[] = {0x3fc00000,
                               0xffffffffbfc00000,
                               double_bits(1.5),
                               double_bits(1.5),
                               0x1234,
                               0x3ff0000000000005,
                               0x3ff00000,
                               36,
                               10 + 26 + 65535 + 255,
                               321 + 4000 + 50000 + 100000 + 32000000,
                               1 + 0x3fc00000 + 1};
  uint64_t to[64];
  for (int i = 0; i < 64; i++) to[i] = 77;
  assert_int_equal(RIG_LAUNCH(module, "bits", rig_line(1, 1, 0, 1), RIG_POINTER(to)), 0);
  compare_words(to, expected, sizeof expected / sizeof *expected);
}

static void floats(void **state) {
  (void)state;
  const float x = 0.7f, y = 2.3f, product = x * y;
  const double pi = 3.14159265358979323846;
  const float expected[] = {
      product,
      product + x,
      x - y,
      fmaf(x, y, x),
      x / y,
      sqrtf(x),
      1.0f / y,
      fmaf(x, y, -x),
      sqrtf(y),
      x + x + x,
      -1.0f + 1.0f + 0.0f + 3.0f + 2.0f + 4.0f,
      fmodf(y, x) + remainderf(y, x) + (y - x) + -x,
      x * 8 + x / 4,
      y / 4,
      2.0f + (y - 2.0f) + 2.0f,
      x + y + 0.25f + y,
      x + y + 0.0f + 2.0f,
      1.25f,
      16777216.0f + 3.0f + 5.0f + 0.1f,
      nextafterf(x, y) + 5.0f,
      expf(x),
      expf(x),
      exp2f(x),
      powf(10.0f, x),
      expm1f(x),
      logf(y),
      logf(y),
      log2f(y),
      log2f(y),
      log10f(y),
      log10f(y),
      log1pf(y),
      sinf(x),
      sinf(x),
      cosf(x),
      cosf(x),
      tanf(x),
      tanf(x),
      asinf(x),
      acosf(x),
      atanf(x),
      atan2f(x, y),
      sinhf(x),
      coshf(x),
      tanhf(x),
      asinhf(x),
      acoshf(y),
      atanhf(x),
      erff(x),
      erfcf(x),
      tgammaf(y),
      lgammaf(y),
      cbrtf(y),
      1.0f / sqrtf(y),
      1.0f / cbrtf(y),
      powf(y, x),
      powf(y, x),
      x / y,
      x / y,
      (float)sin(pi * x),
      (float)cos(pi * x),
      (float)(0.5 * erfc(-x / sqrt(2.0))),
      expf(x) + logf(y) + y * y + 1.0f / sqrtf(y),
      sinf(x) + cosf(x),
      sinf(x) + cosf(x),
  };
  enum { N = sizeof expected / sizeof *expected, EXACT = 20 };
  float to[N + 1];
  for (int i = 0; i <= N; i++) to[i] = 77;
  const struct {
    float *to;
    float x, y;
  } buffer = {to, x, y};
  fake_launch launch = rig_line(1, 1, 0, 1);
  assert_int_equal(fake_function_run(fake_module_function(module, "floats"), &launch, &buffer, rig_why), 0);
  for (int i = 0; i < N; i++)
    if (!(fabsf(to[i] - expected[i]) <= (i < EXACT ? 0 : 4e-7f * fabsf(expected[i]))))
      fail_msg("float %d: %.9g, expected %.9g", i, (double)to[i], (double)expected[i]);
  assert_float_equal(to[N], 77, 0);
}

static void doubles(void **state) {
  (void)state;
  const double x = 0.7, y = 2.3, product = x * y, pi = 3.14159265358979323846;
  const double expected[] = {
      product,
      product + x,
      x - y,
      x / y,
      fma(x, y, x),
      sqrt(y),
      1.0 / y,
      fma(x, y, -x),
      -3.0 + 4.0 + (double)(1ll << 40),
      -1.0 + 1.0 + -0.0 + 3.0 + 2.0 + x + x + y + fmod(y, x),
      x + y + x,
      exp(x),
      log(y),
      pow(y, x),
      sin(x) + cos(x) + tan(x),
      tanh(x) + erf(x) + erfc(y) + lgamma(y),
      sqrt(y) + 1.0 / sqrt(y) + cbrt(y) + hypot(x, y) + atan2(x, y),
      exp2(x) + pow(10, x) + expm1(x) + log2(y) + log10(y) + log1p(y),
      sin(pi * x) + cos(pi * x) + 0.5 * erfc(-x / sqrt(2.0)),
      sin(x) + cos(x),
  };
  enum { N = sizeof expected / sizeof *expected };
  double to[N + 1];
  for (int i = 0; i <= N; i++) to[i] = 77;
  const struct { double *to, x, y; } buffer = {to, x, y};
  fake_launch launch = rig_line(1, 1, 0, 1);
  assert_int_equal(fake_function_run(fake_module_function(module, "doubles"), &launch, &buffer, rig_why), 0);
  for (int i = 0; i < N; i++)
    if (!(fabs(to[i] - expected[i]) <= (i < 8 ? 0 : 1e-14 * fabs(expected[i]))))
      fail_msg("double %d: %.17g, expected %.17g", i, to[i], expected[i]);
  assert_float_equal(to[N], 77, 0);
}

static void lanes(void **state) {
  (void)state;
  enum { FUNCTIONS = 12 };
  for (uint64_t seed = 0; seed < 5; seed++) {
    uint64_t to[32 * FUNCTIONS];
    memset(to, 0, sizeof to);
    assert_int_equal(RIG_LAUNCH(module, "lanes", rig_line(1, 32, 0, seed), RIG_POINTER(to)), 0);
    for (uint64_t t = 0; t < 32; t++) {
      const uint64_t expected[FUNCTIONS] = {
          (t + 1) % 32 * 10,
          t / 8 * 8 + 3,
          t < 2 ? t + 1 : t - 1,
          (t % 16 < 3 ? t : t - 3) << 40,
          t + 5 > 31 ? t : t + 5,
          t % 4 == 3 ? t : t + 1,
          t ^ 7,
          (t ^ 9) > (t | 7) ? t : t ^ 9,
          1 | 1 << 5 | 1 << 10 | 1 << 15 | 1 << 20 | 1 << 25 | 1 << 30,
          1 + 4,
          t < 16 ? 0x0000aaaa : 0xcccc0000,
          t % 16 < 8 ? t + 8 : t,
      };
      for (int i = 0; i < FUNCTIONS; i++)
        if (to[32 * i + (int)t] != expected[i])
          fail_msg("function %d, lane %d: %llu, expected %llu", i, (int)t,
                   (unsigned long long)to[32 * i + (int)t], (unsigned long long)expected[i]);
    }
  }
}

static void reductions(void **state) {
  (void)state;
  enum { FUNCTIONS = 7 };
  uint32_t to[32 * FUNCTIONS];
  assert_int_equal(RIG_LAUNCH(module, "reductions", rig_line(1, 32, 0, 3), RIG_POINTER(to)), 0);
  for (uint32_t t = 0; t < 32; t++) {
    const uint32_t expected[FUNCTIONS] = {0x11111111u << t % 4, 496, (uint32_t)-16, 31, 64, 31, 0};
    for (int i = 0; i < FUNCTIONS; i++) assert_int_equal(to[32 * i + (int)t], expected[i]);
  }
}

static void atomics(void **state) {
  (void)state;
  int32_t i[15] = {1, -5, 5, 3, 4, 6, 1, 3, [12] = 5};
  uint32_t u[15] = {1, 5, 5, 3, 4, 6, 1, 3, [12] = 5, 13, 0};
  uint64_t w[15] = {1, 5, 5, 3, 4, 6, 1, 3};
  float f[15] = {1, [4] = 4};
  double d[15] = {1};
  uint16_t h[4] = {3};
  assert_int_equal(RIG_LAUNCH(module, "atomics", rig_line(1, 1, 0, 1), RIG_POINTER(i), RIG_POINTER(u),
                              RIG_POINTER(w), RIG_POINTER(f), RIG_POINTER(d), RIG_POINTER(h)),
                   0);
  const int32_t expected_i[15] = {6, -1, -100, 30, 44, 4, 9, 2, 1, 3, 30, 4, 3};
  const uint32_t expected_u[15] = {6, 4000000000u, 1, 30, 44, 4, 9, 2, 1, 3, 0, 4, 3, 0, 100};
  const uint64_t expected_w[15] = {6, 1ull << 40, 1, 30, 44, 4, 9, 2, 1, 3, 0, 4};
  assert_memory_equal(i, expected_i, sizeof i);
  assert_memory_equal(u, expected_u, sizeof u);
  assert_memory_equal(w, expected_w, sizeof w);
  assert_true(f[0] == 6 && f[8] == 1 && f[4] == 44 && f[11] == 4);
  assert_true(d[0] == 6 && d[8] == 1);
  assert_true(h[0] == 30 && h[1] == 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(integers), cmocka_unit_test(bits_and_vectors),
      cmocka_unit_test(floats),   cmocka_unit_test(doubles),
      cmocka_unit_test(lanes),    cmocka_unit_test(reductions),
      cmocka_unit_test(atomics),
  };
  return cmocka_run_group_tests(tests, open_module, close_module);
}
