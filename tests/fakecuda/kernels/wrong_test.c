/* Launches that CUDA leaves undefined, or refuses: each ends with its reason, and the next launch is as good
 * as before. */
#include "tests/fakecuda/kernels/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static fake_module *wrong;

static int open_wrong(void **state) {
  (void)state;
  wrong = rig_compile_file("wrong.cu");
  return 0;
}

static int close_wrong(void **state) {
  (void)state;
  fake_module_unload(wrong);
  return 0;
}

/* Neither the output nor the count is compared where the kernel has not got so far. */
static void expect_refusal(const char *kernel, fake_launch launch, int64_t n, const char *reason) {
  float to[2048];
  const uint64_t parameters[] = {RIG_POINTER(to), (uint64_t)n};
  for (uint64_t seed = 0; seed < 4; seed++) {
    launch.seed = seed;
    rig_why[0] = 0;
    assert_int_equal(rig_launch(wrong, kernel, launch, parameters, n ? 2 : 1), -1);
    if (!strstr(rig_why, reason) || !strstr(rig_why, kernel))
      fail_msg("%s: \"%s\", expected \"%s\"", kernel, rig_why, reason);
  }
  assert_int_equal(RIG_LAUNCH(wrong, "fine", rig_line(1, 64, 0, 1), RIG_POINTER(to)), 0);
  for (int i = 0; i < 64; i++) assert_float_equal(to[i], 5, 0);
}

static void barriers(void **state) {
  (void)state;
  expect_refusal("part_at_barrier", rig_line(2, 64, 0, 0), 0,
                 "63 of 64 threads wait at __syncthreads (wrong.cu:5)");
  expect_refusal("two_barriers", rig_line(1, 64, 0, 0), 0, "wait at different barriers (wrong.cu:");
  expect_refusal("barrier_and_warp", rig_line(1, 64, 0, 0), 0,
                 "40 of 64 threads wait at __syncthreads (wrong.cu:20)");
}

static void lanes_that_exited(void **state) {
  (void)state;
  expect_refusal("shuffle_after_exit", rig_line(1, 64, 0, 0), 40, "__shfl_down_sync (wrong.cu:29)");
  expect_refusal("shuffle_after_exit", rig_line(1, 64, 0, 0), 40, "which has exited");
  expect_refusal("sync_after_exit", rig_line(1, 32, 0, 0), 31,
                 "lane 31 of mask 0xffffffff, which has exited");
  expect_refusal("ballot_after_exit", rig_line(1, 32, 0, 0), 1, "__ballot_sync");
  expect_refusal("sync_after_exit", rig_line(1, 20, 0, 0), 20,
                 "lane 20 of mask 0xffffffff, which lies outside the block");
}

static void lanes_that_never_arrive(void **state) {
  (void)state;
  expect_refusal("ballot_never", rig_line(1, 32, 0, 0), 0,
                 "mask 0xffffffff, for lanes 0x00000080, which do not arrive");
  expect_refusal("different_verbs", rig_line(1, 32, 0, 0), 0, "which do not arrive");
  expect_refusal("foreign_mask", rig_line(1, 32, 0, 0), 0, "mask 0x0000ffff, which does not name the lane");
  expect_refusal("bad_width", rig_line(1, 32, 0, 0), 0, "width 12, expected a power of two up to 32");
}

static void sizes_of_launches(void **state) {
  (void)state;
  expect_refusal("bounded", rig_line(1, 65, 0, 0), 0, "its __launch_bounds__ says at most 64");
  expect_refusal("fine", rig_line(1, 1025, 0, 0), 0, "expected at most 1024 threads");
  expect_refusal("fine", rig_line(0, 32, 0, 0), 0, "a size is 0");
  expect_refusal("fine", rig_line(1, 32, 232449, 0), 0, "232449 bytes of dynamic shared memory");
  expect_refusal("fine", (fake_launch){.grid = {1, 65536, 1}, .block = {1, 1, 1}}, 0,
                 "expected at most (2147483647");
  expect_refusal("fine", (fake_launch){.grid = {1, 1, 1}, .block = {1, 1, 65}}, 0, "(1024, 1024, 64)");
}

static void writes_and_traps(void **state) {
  (void)state;
  expect_refusal("writes_past", rig_line(1, 33, 128, 0), 0,
                 "wrote past the 128 bytes of dynamic shared memory");
  expect_refusal("trapped", rig_line(1, 32, 0, 0), 0, "thread (3, 0, 0): __trap() (wrong.cu:");
  expect_refusal("asserted", rig_line(1, 32, 0, 0), 0, "assert(threadIdx.x != 2)");
}

static void foreign_images(void **state) {
  (void)state;
  static const char wrong_bytes[4][256] = {"not an image", "// .version 9.0", "\x50\xed\x55\xba",
                                           "\x7f"
                                           "ELF\x02\x01\x01"};
  static const char *const reasons[4] = {"no ELF file", "no ELF file", "a fatbin of nvcc",
                                         "no shared object"};
  for (int i = 0; i < 4; i++) {
    assert_null(fake_module_load(wrong_bytes[i], rig_why));
    assert_non_null(strstr(rig_why, reasons[i]));
  }
  _Alignas(8) char cubin[256] = "\x7f"
                                "ELF\x02\x01\x01";
  cubin[18] = (char)190;
  assert_null(fake_module_load(cubin, rig_why));
  assert_non_null(strstr(rig_why, "a cubin for a GPU"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(barriers),
      cmocka_unit_test(lanes_that_exited),
      cmocka_unit_test(lanes_that_never_arrive),
      cmocka_unit_test(sizes_of_launches),
      cmocka_unit_test(writes_and_traps),
      cmocka_unit_test(foreign_images),
  };
  return cmocka_run_group_tests(tests, open_wrong, close_wrong);
}
