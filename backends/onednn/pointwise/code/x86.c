#include "backends/onednn/pointwise/code/x86.h"

#include <string.h>

static void x86_byte(tn_x86 *x, uint32_t byte) {
  x->full = x->full || x->n == x->room;
  if (!x->full) x->bytes[x->n++] = (uint8_t)byte;
}

static void x86_word(tn_x86 *x, uint32_t word) {
  for (int32_t i = 0; i < 4; i++) x86_byte(x, word >> 8 * i);
}

/* ---- constants ---- */

/* Bytes from one constant to the next. AVX-512 repeats a number to all lanes as it reads it. */
static size_t x86_stride(const tn_x86 *x) {
  enum { AVX2_LANES = 8 };
  return x->set == TN_X86_AVX2 ? AVX2_LANES * sizeof(uint32_t) : sizeof(uint32_t);
}

void tn_x86_start(tn_x86 *x, tn_x86_set set, uint8_t *bytes, size_t room) {
  static const uint32_t constants[TN_X86_CONSTANTS] = {
      [TN_X86_SIGN] = 0x80000000u,         [TN_X86_NO_SIGN] = 0x7fffffffu,
      [TN_X86_ONE] = 0x3f800000u,          [TN_X86_INFINITY] = 0x7f800000u,
      [TN_X86_BF16_HALF] = 0x7fffu,        [TN_X86_BIT] = 1,
      [TN_X86_BF16_QUIET] = 0x40,          [TN_X86_MOST_OF_U8] = 0x437f0000u,
      [TN_X86_MOST_OF_I8] = 0x42fe0000u,   [TN_X86_LEAST_OF_I8] = 0xc3000000u,
      [TN_X86_BEYOND_I32] = 0x4f000000u,   [TN_X86_LAST_BELOW_I32] = 0x4effffffu,
      [TN_X86_LEAST_OF_I32] = 0xcf000000u, [TN_X86_UPPER_HALF] = 0xffff0000u,
      [TN_X86_QUIET] = 0x400000u,          [TN_X86_TRUTHS] = 0x01010101u,
      [TN_X86_TRUTHS + 1] = 0x01010101u,   [TN_X86_TRUTHS + 2] = 0x01010101u,
      [TN_X86_TRUTHS + 3] = 0x01010101u,   [TN_X86_QUOTIENTS_FROM] = 0x65000001u};
  *x = (tn_x86){bytes, 0, room, false, set};
  const int32_t n = set == TN_X86_AVX2 ? TN_X86_NUMBERS : TN_X86_CONSTANTS;
  for (int32_t i = 0; i < n; i++)
    for (size_t at = 0; at < x86_stride(x); at += sizeof constants[i]) x86_word(x, constants[i]);
}

/* ---- vectors ---- */

/* Bit `bit` of a register's number, inverted, as EVEX has it. */
static uint32_t x86_not(int32_t number, int32_t bit) { return ~(uint32_t)number >> bit & 1; }

static uint32_t x86_base(tn_x86_operand r) { return r.kind == TN_X86_CONSTANT ? 1 : x86_not(r.number, 3); }

static void x86_evex(tn_x86 *x, tn_x86_op op, int32_t to, int32_t from, tn_x86_operand r, tn_x86_mask mask) {
  bool memory = r.kind == TN_X86_MEMORY, constant = r.kind == TN_X86_CONSTANT;
  uint32_t high = memory || constant ? 1 : x86_not(r.number, 4); /* of the index, which is rax */
  x86_byte(x, 0x62);
  x86_byte(x, x86_not(to, 3) << 7 | high << 6 | x86_base(r) << 5 | x86_not(to, 4) << 4 | op.map);
  x86_byte(x, (~(uint32_t)from & 15) << 3 | 4u | op.prefix);
  x86_byte(x, (uint32_t)mask.zero << 7 | (uint32_t)op.length << 5 | (uint32_t)(constant && !r.whole) << 4 |
                  x86_not(from, 4) << 3 | mask.number);
}

static void x86_vex(tn_x86 *x, tn_x86_op op, int32_t to, int32_t from, tn_x86_operand r) {
  x86_byte(x, 0xc4);
  x86_byte(x, x86_not(to, 3) << 7 | 1u << 6 | x86_base(r) << 5 | op.map);
  x86_byte(x, (~(uint32_t)from & 15) << 3 | (uint32_t)(op.length != 0) << 2 | op.prefix);
}

static void x86_constant(tn_x86 *x, uint32_t to, int32_t constant, bool immediate) {
  size_t after = x->n + 5 + immediate;
  x86_byte(x, to << 3 | 5);
  x86_word(x, (uint32_t)(x86_stride(x) * (size_t)constant - after));
}

/* Bytes of a displacement. Without one rbp and r13 are no bases. EVEX scales a displacement of one byte, so
 * there it has four. */
static int32_t x86_displacement(const tn_x86 *x, tn_x86_operand r) {
  if (r.displacement == 0) return (r.number & 7) == TN_X86_RBP;
  return x->set == TN_X86_AVX2 && r.displacement >= INT8_MIN && r.displacement <= INT8_MAX ? 1 : 4;
}

/* [base + rax * scale + displacement] */
static void x86_memory(tn_x86 *x, uint32_t to, tn_x86_operand r) {
  uint32_t low = (uint32_t)r.number & 7, scale = r.scale == 4 ? 2 : r.scale == 2 ? 1 : 0;
  uint32_t index = r.scale == 0 ? TN_X86_RSP : TN_X86_RAX;
  int32_t displaced = x86_displacement(x, r);
  x86_byte(x, (displaced == 4 ? 2u : (uint32_t)displaced) << 6 | to << 3 | 4);
  x86_byte(x, scale << 6 | index << 3 | low);
  if (displaced == 1) x86_byte(x, (uint32_t)r.displacement);
  if (displaced == 4) x86_word(x, (uint32_t)r.displacement);
}

void tn_x86_vector(tn_x86 *x, tn_x86_op op, int32_t to, int32_t from, tn_x86_operand r, tn_x86_mask mask,
                   uint8_t immediate) {
  uint32_t low = (uint32_t)to & 7;
  if (x->set == TN_X86_AVX2)
    x86_vex(x, op, to, from, r);
  else
    x86_evex(x, op, to, from, r, mask);
  x86_byte(x, op.code);
  if (r.kind == TN_X86_REGISTER) x86_byte(x, 0xc0u | low << 3 | ((uint32_t)r.number & 7));
  if (r.kind == TN_X86_CONSTANT) x86_constant(x, low, r.number, op.immediate);
  if (r.kind == TN_X86_MEMORY) x86_memory(x, low, r);
  if (op.immediate) x86_byte(x, immediate);
}

/* ---- others ---- */

void tn_x86_push(tn_x86 *x, int32_t number) {
  if (number > 7) x86_byte(x, 0x41);
  x86_byte(x, 0x50u | ((uint32_t)number & 7));
}

void tn_x86_pop(tn_x86 *x, int32_t number) {
  if (number > 7) x86_byte(x, 0x41);
  x86_byte(x, 0x58u | ((uint32_t)number & 7));
}

void tn_x86_load_pointer(tn_x86 *x, int32_t number, int32_t index) {
  x86_byte(x, number > 7 ? 0x4c : 0x48);
  x86_byte(x, 0x8b);
  x86_byte(x, 0x87u | ((uint32_t)number & 7) << 3);
  x86_word(x, (uint32_t)index * (uint32_t)sizeof(void *));
}

size_t tn_x86_jump_unless(tn_x86 *x, int32_t mask) {
  static const uint8_t test_mask[] = {0xc5, 0xf8, 0x98}, jump_if_zero = 0x74;
  for (size_t i = 0; i < sizeof test_mask; i++) x86_byte(x, test_mask[i]);
  x86_byte(x, 0xc0u | (uint32_t)mask << 3 | (uint32_t)mask);
  x86_byte(x, jump_if_zero);
  x86_byte(x, 0);
  return x->n;
}

size_t tn_x86_jump(tn_x86 *x) {
  x86_byte(x, 0xeb);
  x86_byte(x, 0);
  return x->n;
}

void tn_x86_land(tn_x86 *x, size_t jump) {
  if (!x->full) x->bytes[jump - 1] = (uint8_t)(x->n - jump);
}

void tn_x86_start_count(tn_x86 *x) {
  x86_byte(x, 0x31);
  x86_byte(x, 0xc0);
}

void tn_x86_repeat(tn_x86 *x, size_t start, uint8_t elements) {
  static const uint8_t add[] = {0x48, 0x83, 0xc0}, compare_and_jump[] = {0x48, 0x39, 0xf0, 0x0f, 0x8c};
  for (size_t i = 0; i < sizeof add; i++) x86_byte(x, add[i]);
  x86_byte(x, elements);
  for (size_t i = 0; i < sizeof compare_and_jump; i++) x86_byte(x, compare_and_jump[i]);
  x86_word(x, (uint32_t)(start - (x->n + 4)));
}

void tn_x86_return(tn_x86 *x) {
  static const uint8_t code[] = {0xc5, 0xf8, 0x77, 0xc3};
  for (size_t i = 0; i < sizeof code; i++) x86_byte(x, code[i]);
}
