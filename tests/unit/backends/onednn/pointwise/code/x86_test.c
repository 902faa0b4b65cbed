#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "backends/onednn/pointwise/code/x86.h"

/* Bytes of instructions of each form, with low and high registers, as GNU as has them. Of a base alone the
 * writer has the form with an index byte, which is one byte longer. */

enum { P_NONE, P_66, P_F3, P_F2, XMM = 0, LONGEST = 2 };
#define REGISTER(n)                                                                                          \
  { .kind = TN_X86_REGISTER, .number = n }
#define MEMORY(base, size, distance)                                                                         \
  { .kind = TN_X86_MEMORY, .number = base, .scale = size, .displacement = distance }
#define CONSTANT(n, all)                                                                                     \
  { .kind = TN_X86_CONSTANT, .number = n, .whole = all }
#define BYTES(...)                                                                                           \
  sizeof((uint8_t[]){__VA_ARGS__}), { __VA_ARGS__ }

static const struct {
  tn_x86_set set;
  const char *text;
  tn_x86_op op;
  int32_t to, from;
  tn_x86_operand operand;
  tn_x86_mask mask;
  uint8_t immediate;
  size_t n;
  uint8_t bytes[12];
} cases[] = {
    /* clang-format off */
    {TN_X86_AVX2, "vaddps ymm12, ymm3, ymm10", {1, P_NONE, LONGEST, 0x58, false}, 12, 3, REGISTER(10), {0}, 0,
     BYTES(0xc4, 0x41, 0x64, 0x58, 0xe2)},
    {TN_X86_AVX2, "vmulps ymm2, ymm1, [rcx+rax*4]", {1, P_NONE, LONGEST, 0x59, false}, 2, 1, MEMORY(TN_X86_RCX, 4, 0), {0}, 0,
     BYTES(0xc4, 0xe1, 0x74, 0x59, 0x14, 0x81)},
    {TN_X86_AVX2, "vmulps ymm2, ymm1, [r13+rax*4]", {1, P_NONE, LONGEST, 0x59, false}, 2, 1, MEMORY(13, 4, 0), {0}, 0,
     BYTES(0xc4, 0xc1, 0x74, 0x59, 0x54, 0x85, 0x00)},
    {TN_X86_AVX2, "vmovups [rbp+rax*4+32], ymm9", {1, P_NONE, LONGEST, 0x11, false}, 9, 0, MEMORY(TN_X86_RBP, 4, 32), {0}, 0,
     BYTES(0xc4, 0x61, 0x7c, 0x11, 0x4c, 0x85, 0x20)},
    {TN_X86_AVX2, "vmovups ymm0, [rdi+1280]", {1, P_NONE, LONGEST, 0x10, false}, 0, 0, MEMORY(TN_X86_RDI, 0, 1280), {0}, 0,
     BYTES(0xc4, 0xe1, 0x7c, 0x10, 0x84, 0x27, 0x00, 0x05, 0x00, 0x00)},
    {TN_X86_AVX2, "vmovq [r15+rax+8], xmm8", {1, P_66, XMM, 0xd6, false}, 8, 0, MEMORY(15, 1, 8), {0}, 0,
     BYTES(0xc4, 0x41, 0x79, 0xd6, 0x44, 0x07, 0x08)},
    {TN_X86_AVX2, "vblendvps ymm6, ymm5, [rdx+rax*4], ymm14", {3, P_66, LONGEST, 0x4a, true}, 6, 5, MEMORY(TN_X86_RDX, 4, 0), {0}, 14 << 4,
     BYTES(0xc4, 0xe3, 0x55, 0x4a, 0x34, 0x82, 0xe0)},
    {TN_X86_AVX2, "vpsrld ymm11, ymm4, 16", {1, P_66, LONGEST, 0x72, true}, 2, 11, REGISTER(4), {0}, 16,
     BYTES(0xc4, 0xe1, 0x25, 0x72, 0xd4, 0x10)},
    {TN_X86_AVX2, "vcvtps2ph [r8+rax*2], ymm7, 0", {3, P_66, LONGEST, 0x1d, true}, 7, 0, MEMORY(8, 2, 0), {0}, 0,
     BYTES(0xc4, 0xc3, 0x7d, 0x1d, 0x3c, 0x40, 0x00)},
    {TN_X86_AVX2, "vextracti128 xmm11, ymm14, 1", {3, P_66, LONGEST, 0x39, true}, 14, 0, REGISTER(11), {0}, 1,
     BYTES(0xc4, 0x43, 0x7d, 0x39, 0xf3, 0x01)},
    {TN_X86_AVX2, "vpackusdw xmm13, xmm13, xmm11", {2, P_66, XMM, 0x2b, false}, 13, 13, REGISTER(11), {0}, 0,
     BYTES(0xc4, 0x42, 0x11, 0x2b, 0xeb)},
    {TN_X86_AVX2, "vandps ymm1, ymm2, [number 2]", {1, P_NONE, LONGEST, 0x54, false}, 1, 2, CONSTANT(2, false), {0}, 0,
     BYTES(0xc4, 0xe1, 0x6c, 0x54, 0x0d, 0x57, 0xfe, 0xff, 0xff)},
    {TN_X86_AVX512, "vaddps zmm12, zmm19, zmm26", {1, P_NONE, LONGEST, 0x58, false}, 12, 19, REGISTER(26), {0}, 0,
     BYTES(0x62, 0x11, 0x64, 0x40, 0x58, 0xe2)},
    {TN_X86_AVX512, "vmulps zmm29, zmm1, [rcx+rax*4]", {1, P_NONE, LONGEST, 0x59, false}, 29, 1, MEMORY(TN_X86_RCX, 4, 0), {0}, 0,
     BYTES(0x62, 0x61, 0x74, 0x48, 0x59, 0x2c, 0x81)},
    {TN_X86_AVX512, "vmulps zmm2, zmm1, [r13+rax*4]", {1, P_NONE, LONGEST, 0x59, false}, 2, 1, MEMORY(13, 4, 0), {0}, 0,
     BYTES(0x62, 0xd1, 0x74, 0x48, 0x59, 0x54, 0x85, 0x00)},
    {TN_X86_AVX512, "vcmpltps k1, zmm2, zmm3", {1, P_NONE, LONGEST, 0xc2, true}, 1, 2, REGISTER(3), {0}, 17,
     BYTES(0x62, 0xf1, 0x6c, 0x48, 0xc2, 0xcb, 0x11)},
    {TN_X86_AVX512, "vblendmps zmm6{k2}, zmm5, zmm30", {2, P_66, LONGEST, 0x65, false}, 6, 5, REGISTER(30), {2, false}, 0,
     BYTES(0x62, 0x92, 0x55, 0x4a, 0x65, 0xf6)},
    {TN_X86_AVX512, "vmovdqu8 [r15+rax], xmm8", {1, P_F2, XMM, 0x7f, false}, 8, 0, MEMORY(15, 1, 0), {0}, 0,
     BYTES(0x62, 0x51, 0x7f, 0x08, 0x7f, 0x04, 0x07)},
    {TN_X86_AVX512, "vpmovdw [r8+rax*2], zmm31", {2, P_F3, LONGEST, 0x33, false}, 31, 0, MEMORY(8, 2, 0), {0}, 0,
     BYTES(0x62, 0x42, 0x7e, 0x48, 0x33, 0x3c, 0x40)},
    {TN_X86_AVX512, "vandps zmm1, zmm2, [number 2]{1to16}", {1, P_NONE, LONGEST, 0x54, false}, 1, 2, CONSTANT(2, false), {0}, 0,
     BYTES(0x62, 0xf1, 0x6c, 0x58, 0x54, 0x0d, 0xaa, 0xff, 0xff, 0xff)},
    /* clang-format on */
};

static void instructions_have_the_bytes_of_the_manual(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint8_t bytes[512];
    tn_x86 x;
    tn_x86_start(&x, cases[i].set, bytes, sizeof bytes);
    const size_t start = x.n;
    tn_x86_vector(&x, cases[i].op, cases[i].to, cases[i].from, cases[i].operand, cases[i].mask,
                  cases[i].immediate);
    if (x.n - start != cases[i].n || memcmp(bytes + start, cases[i].bytes, cases[i].n) != 0)
      fail_msg("%s has %zu other bytes, beginning with %02x %02x %02x %02x", cases[i].text, x.n - start,
               bytes[start], bytes[start + 1], bytes[start + 2], bytes[start + 3]);
  }
}

static void constants_stand_in_front(void **state) {
  (void)state;
  uint8_t bytes[512];
  uint32_t one;
  tn_x86 x;
  tn_x86_start(&x, TN_X86_AVX512, bytes, sizeof bytes);
  assert_int_equal(x.n, 4 * TN_X86_CONSTANTS);
  tn_x86_start(&x, TN_X86_AVX2, bytes, sizeof bytes);
  assert_int_equal(x.n, 32 * TN_X86_NUMBERS);
  for (size_t lane = 0; lane < 8; lane++) {
    memcpy(&one, bytes + 32 * TN_X86_ONE + 4 * lane, sizeof one);
    assert_int_equal(one, 0x3f800000u);
  }
}

static void code_that_does_not_fit_is_marked(void **state) {
  (void)state;
  uint8_t bytes[512];
  tn_x86 x;
  tn_x86_start(&x, TN_X86_AVX2, bytes, 32 * TN_X86_NUMBERS + 3);
  tn_x86_return(&x);
  assert_true(x.full);
  assert_int_equal(x.n, 32 * TN_X86_NUMBERS + 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(instructions_have_the_bytes_of_the_manual),
                                     cmocka_unit_test(constants_stand_in_front),
                                     cmocka_unit_test(code_that_does_not_fit_is_marked)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
