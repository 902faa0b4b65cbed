/* Launches of CUDA C on the host: their numbers, their order, their limits. */
#include "tests/fakecuda/kernels/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static fake_module *threads;

static int open_threads(void **state) {
  (void)state;
  threads = rig_compile_file("threads.cu");
  return 0;
}

static int close_threads(void **state) {
  (void)state;
  fake_module_unload(threads);
  return 0;
}

/* Seeds 0 to 4: every kernel has the same result in each order. */
#define EACH_SEED(seed) for (uint64_t seed = 0; seed < 5; seed++)

static void threads_without_barriers(void **state) {
  (void)state;
  enum { N = 1000 };
  float from[N], to[N + 24];
  for (int i = 0; i < N; i++) from[i] = (float)i;
  EACH_SEED(seed) {
    memset(to, 0, sizeof to);
    assert_int_equal(
        RIG_LAUNCH(threads, "scale", rig_line(8, 128, 0, seed), RIG_POINTER(to), RIG_POINTER(from), N), 0);
    for (int i = 0; i < N; i++) assert_float_equal(to[i], 2.0f * (float)i + 1.0f, 0);
    for (int i = N; i < N + 24; i++) assert_float_equal(to[i], 0, 0);
  }
}

static void grid_of_three_dimensions(void **state) {
  (void)state;
  static uint32_t to[6 * 12 * 20];
  EACH_SEED(seed) {
    memset(to, 0xff, sizeof to);
    fake_launch launch = {.grid = {5, 4, 2}, .block = {4, 3, 3}, .seed = seed};
    assert_int_equal(RIG_LAUNCH(threads, "coordinates", launch, RIG_POINTER(to)), 0);
    for (uint32_t i = 0; i < 6 * 12 * 20; i++)
      assert_int_equal(to[i], i % 20 | i / 20 % 12 << 8 | i / 240 << 16);
  }
}

static void sums_over_a_block(void **state) {
  (void)state;
  float from[1024], to[4];
  for (int i = 0; i < 1024; i++) from[i] = (float)(i % 256) + (float)(i / 256);
  EACH_SEED(seed) {
    memset(to, 0, sizeof to);
    assert_int_equal(
        RIG_LAUNCH(threads, "tree_sum", rig_line(4, 256, 0, seed), RIG_POINTER(to), RIG_POINTER(from)), 0);
    for (int i = 0; i < 4; i++) assert_float_equal(to[i], 32640.0f + 256.0f * (float)i, 0);
    assert_int_equal(
        RIG_LAUNCH(threads, "warp_sums", rig_line(1, 1024, 0, seed), RIG_POINTER(to), RIG_POINTER(from)), 0);
    assert_float_equal(to[0], 4 * 32640.0f + 256.0f * 6, 0);
  }
}

static void dynamic_shared_memory(void **state) {
  (void)state;
  int from[192], to[192];
  for (int i = 0; i < 192; i++) from[i] = i;
  EACH_SEED(seed) {
    assert_int_equal(
        RIG_LAUNCH(threads, "reverse", rig_line(3, 64, 256, seed), RIG_POINTER(to), RIG_POINTER(from)), 0);
    for (int i = 0; i < 192; i++) assert_int_equal(to[i], i / 64 * 64 + 63 - i % 64);
  }
}

static void last_block_adds_up(void **state) {
  (void)state;
  float from[33], part[33], to[34];
  for (int i = 0; i < 33; i++) from[i] = (float)i;
  EACH_SEED(seed) {
    fake_launch launch = rig_line(33, 32, 0, seed);
    assert_int_equal(
        RIG_LAUNCH(threads, "last_block", launch, RIG_POINTER(to), RIG_POINTER(part), RIG_POINTER(from)), 0);
    assert_float_equal(to[0], 33 * 16.0f, 0);
    float last = 0;
    for (int i = 1; i < 34; i++) last += to[i];
    assert_float_equal(last, 1, 0);
    if (seed == 0) assert_float_equal(to[33], 1, 0);
  }
}

static void atomics_over_blocks(void **state) {
  (void)state;
  EACH_SEED(seed) {
    uint32_t sum = 0;
    uint64_t wide = 0;
    float real = 0;
    int32_t largest = INT32_MIN;
    assert_int_equal(RIG_LAUNCH(threads, "count_all", rig_line(10, 50, 0, seed), RIG_POINTER(&sum),
                                RIG_POINTER(&wide), RIG_POINTER(&real), RIG_POINTER(&largest)),
                     0);
    assert_int_equal(sum, 500 * 499 / 2);
    assert_int_equal(wide, 500ull << 33);
    assert_float_equal(real, 250.0f, 0);
    assert_int_equal(largest, 499);
  }
}

static void votes_of_a_block(void **state) {
  (void)state;
  uint32_t to[192];
  EACH_SEED(seed) {
    assert_int_equal(RIG_LAUNCH(threads, "votes", rig_line(1, 64, 0, seed), RIG_POINTER(to)), 0);
    for (int i = 0; i < 64; i++) {
      assert_int_equal(to[i], 22);
      assert_int_equal(to[64 + i], 1);
      assert_int_equal(to[128 + i], 1);
    }
  }
}

static void exited_threads_do_not_count(void **state) {
  (void)state;
  EACH_SEED(seed) {
    uint32_t to[64] = {0};
    assert_int_equal(RIG_LAUNCH(threads, "early_exit", rig_line(1, 64, 0, seed), RIG_POINTER(to), 40), 0);
    for (int i = 0; i < 64; i++) assert_int_equal(to[i], i < 40 ? 40 : 0);
  }
}

static void locks_let_the_holder_run(void **state) {
  (void)state;
  EACH_SEED(seed) {
    uint32_t lock = 0, count = 0;
    assert_int_equal(
        RIG_LAUNCH(threads, "locked", rig_line(2, 64, 0, seed), RIG_POINTER(&lock), RIG_POINTER(&count)), 0);
    assert_int_equal(count, 128);
  }
}

/* A seed gives its own order of threads, the same one each time. */
static void seeds_give_orders(void **state) {
  (void)state;
  uint32_t natural[64], first[64], again[64], other[64];
  assert_int_equal(RIG_LAUNCH(threads, "tickets", rig_line(1, 64, 0, 0), RIG_POINTER(natural)), 0);
  assert_int_equal(RIG_LAUNCH(threads, "tickets", rig_line(1, 64, 0, 1), RIG_POINTER(first)), 0);
  assert_int_equal(RIG_LAUNCH(threads, "tickets", rig_line(1, 64, 0, 1), RIG_POINTER(again)), 0);
  assert_int_equal(RIG_LAUNCH(threads, "tickets", rig_line(1, 64, 0, 2), RIG_POINTER(other)), 0);
  for (uint32_t i = 0; i < 64; i++) assert_int_equal(natural[i], i);
  assert_memory_equal(first, again, sizeof first);
  assert_memory_not_equal(first, natural, sizeof first);
  assert_memory_not_equal(first, other, sizeof first);
}

static void shared_memory_begins_with_nan(void **state) {
  (void)state;
  uint32_t to[8];
  assert_int_equal(RIG_LAUNCH(threads, "unwritten", rig_line(4, 8, 32, 3), RIG_POINTER(to)), 0);
  for (int i = 0; i < 8; i++) assert_int_equal(to[i], UINT32_MAX);
}

static void functions_know_their_shape(void **state) {
  (void)state;
  const fake_function *scale = fake_module_function(threads, "scale"),
                      *tree = fake_module_function(threads, "tree_sum");
  assert_null(fake_module_function(threads, "scal"));
  assert_int_equal(fake_function_parameters(scale), 3);
  assert_int_equal(fake_function_parameter_bytes(scale, 2), 8);
  assert_int_equal(fake_function_parameter_offset(scale, 2), 16);
  assert_int_equal(fake_function_max_threads(scale), 1024);
  assert_int_equal(fake_function_max_threads(tree), 256);
  assert_int_equal(fake_function_shared_bytes(scale), 0);
  assert_int_equal(fake_function_shared_bytes(tree), 1024);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threads_without_barriers),
      cmocka_unit_test(grid_of_three_dimensions),
      cmocka_unit_test(sums_over_a_block),
      cmocka_unit_test(dynamic_shared_memory),
      cmocka_unit_test(last_block_adds_up),
      cmocka_unit_test(atomics_over_blocks),
      cmocka_unit_test(votes_of_a_block),
      cmocka_unit_test(exited_threads_do_not_count),
      cmocka_unit_test(locks_let_the_holder_run),
      cmocka_unit_test(seeds_give_orders),
      cmocka_unit_test(shared_memory_begins_with_nan),
      cmocka_unit_test(functions_know_their_shape),
  };
  return cmocka_run_group_tests(tests, open_threads, close_threads);
}
