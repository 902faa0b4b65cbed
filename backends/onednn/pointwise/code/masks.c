/* Lanes compared and chosen by masks, bytes, and the lower halves of lanes. AVX-512 has registers for masks
 * and instructions that write some lanes of a vector; with AVX2 a mask is a vector whose lanes are all ones
 * or 0, and bytes and halves are packed within 128 bits. */
#include "backends/onednn/pointwise/code/unit.h"

/* AVX-512 */
UNIT_OP(MOVE, 1, P_NONE, LONGEST, 0x28, false);
UNIT_OP(BLEND, 2, P_66, LONGEST, 0x65, false);
UNIT_OP(TEST_BYTES, 2, P_66, XMM, 0x26, false);
UNIT_OP(LOAD_BYTES, 1, P_F2, XMM, 0x6f, false);
UNIT_OP(STORE_BYTES, 1, P_F2, XMM, 0x7f, false);
UNIT_OP(NARROW_WORDS, 2, P_F3, LONGEST, 0x33, false);
UNIT_OP(NARROW_BYTES, 2, P_F3, LONGEST, 0x31, false); /* of `to`, into the operand */
UNIT_OP(BLEND_BYTES, 2, P_66, XMM, 0x66, false);
UNIT_OP(COMPARE_WHOLE, 3, P_66, LONGEST, 0x1f, true);
/* AVX2 */
UNIT_OP(BLEND_BY, 3, P_66, LONGEST, 0x4a, true);
UNIT_OP(BLEND_BYTES_BY, 3, P_66, XMM, 0x4c, true);
UNIT_OP(EQUAL, 1, P_66, LONGEST, 0x76, false);
UNIT_OP(EQUAL_BYTES, 1, P_66, XMM, 0x74, false);
UNIT_OP(GREATER, 1, P_66, LONGEST, 0x66, false);
UNIT_OP(WIDEN_BYTES, 2, P_66, LONGEST, 0x31, false);
UNIT_OP(UPPER_HALF, 3, P_66, LONGEST, 0x39, true); /* of `to`, into the operand */
UNIT_OP(PACK_TO_WORDS, 1, P_66, XMM, 0x6b, false);
UNIT_OP(PACK_TO_BYTES, 1, P_66, XMM, 0x63, false);
UNIT_OP(PACK_UNSIGNED, 2, P_66, XMM, 0x2b, false);
UNIT_OP(PACK_TO_UNSIGNED_BYTES, 1, P_66, XMM, 0x67, false);
UNIT_OP(SIZE_OF_BYTES, 2, P_66, XMM, 0x1c, false);
UNIT_OP(LOAD_8_BYTES, 1, P_F3, XMM, 0x7e, false);
UNIT_OP(STORE_8_BYTES, 1, P_66, XMM, 0xd6, false);
UNIT_OP(STORE_16_BYTES, 1, P_NONE, XMM, 0x11, false);
/* both */
UNIT_OP(OR, 1, P_66, LONGEST, 0xeb, false);
UNIT_OP(XOR, 1, P_66, LONGEST, 0xef, false);
UNIT_OP(SHIFT, 1, P_66, LONGEST, 0x72, true); /* right as to 2, left as to 6; `from` is the destination */
UNIT_OP(COMPARE, 1, P_NONE, LONGEST, 0xc2, true);

static bool mask_is_vector(const tn_unit_writer *w) { return w->target->set == TN_X86_AVX2; }

/* An instruction under a mask of AVX-512. */
static void mask_two(tn_unit_writer *w, tn_x86_op op, int32_t mask, bool zero, int32_t to, int32_t from,
                     tn_x86_operand y) {
  tn_x86_vector(&w->x, op, to, from, y, (tn_x86_mask){(uint8_t)mask, zero}, 0);
}

void tn_unit_shift(tn_unit_writer *w, int32_t direction, int32_t to, int32_t from, uint8_t bits) {
  tn_unit_with(w, SHIFT, direction, to, tn_unit_register(from), bits);
}

void tn_unit_clear(tn_unit_writer *w, int32_t to) { tn_unit_two(w, XOR, to, to, tn_unit_register(to)); }

/* ---- comparisons ---- */

void tn_unit_compare(tn_unit_writer *w, int32_t mask, int32_t x, tn_x86_operand y, uint8_t predicate) {
  tn_unit_with(w, COMPARE, mask, x, y, predicate);
}

/* AVX2 compares for equal and greater; the other four are those with operands exchanged, or opposites. */
static void mask_compare_by_two(tn_unit_writer *w, int32_t mask, int32_t op, int32_t x, int32_t y) {
  const bool equal = op == TN_PW_EQ || op == TN_PW_NE, exchanged = op == TN_PW_LT || op == TN_PW_GE;
  const int32_t ones = tn_unit_spare(w, 0);
  tn_unit_two(w, equal ? EQUAL : GREATER, mask, exchanged ? y : x, tn_unit_register(exchanged ? x : y));
  if (op != TN_PW_NE && op != TN_PW_LE && op != TN_PW_GE) return;
  tn_unit_two(w, EQUAL, ones, ones, tn_unit_register(ones));
  tn_unit_two(w, XOR, mask, mask, tn_unit_register(ones));
}

void tn_unit_compare_whole(tn_unit_writer *w, int32_t mask, int32_t op, int32_t x, int32_t y) {
  static const uint8_t predicate[] = {[TN_PW_EQ - TN_PW_EQ] = 0, [TN_PW_NE - TN_PW_EQ] = 4,
                                      [TN_PW_LT - TN_PW_EQ] = 1, [TN_PW_LE - TN_PW_EQ] = 2,
                                      [TN_PW_GT - TN_PW_EQ] = 6, [TN_PW_GE - TN_PW_EQ] = 5};
  if (mask_is_vector(w))
    mask_compare_by_two(w, mask, op, x, y);
  else
    tn_unit_with(w, COMPARE_WHOLE, mask, x, tn_unit_register(y), predicate[op - TN_PW_EQ]);
}

/* ---- choices ---- */

void tn_unit_choose(tn_unit_writer *w, int32_t mask, int32_t to, tn_x86_operand yes, int32_t no) {
  if (mask_is_vector(w))
    tn_unit_with(w, BLEND_BY, to, no, yes, (uint8_t)(mask << 4));
  else
    mask_two(w, BLEND, mask, false, to, no, yes);
}

void tn_unit_put(tn_unit_writer *w, int32_t mask, int32_t to, int32_t from) {
  if (mask_is_vector(w))
    tn_unit_choose(w, mask, to, tn_unit_register(from), to);
  else
    mask_two(w, MOVE, mask, false, to, 0, tn_unit_register(from));
}

void tn_unit_put_or(tn_unit_writer *w, int32_t mask, int32_t to, int32_t from, tn_x86_operand y) {
  if (!mask_is_vector(w)) {
    mask_two(w, OR, mask, false, to, from, y);
    return;
  }
  tn_unit_two(w, OR, from, from, y);
  tn_unit_put(w, mask, to, from);
}

/* ---- truths ---- */

void tn_unit_truths(tn_unit_writer *w, int32_t to, int32_t mask) {
  const tn_x86_operand ones = {.kind = TN_X86_CONSTANT, .number = TN_X86_TRUTHS, .whole = true};
  if (!mask_is_vector(w)) {
    mask_two(w, LOAD_BYTES, mask, true, to, 0, ones);
    return;
  }
  tn_unit_with(w, UPPER_HALF, mask, 0, tn_unit_register(to), 1);
  tn_unit_two(w, PACK_TO_WORDS, to, mask, tn_unit_register(to));
  tn_unit_two(w, PACK_TO_BYTES, to, to, tn_unit_register(to));
  tn_unit_two(w, SIZE_OF_BYTES, to, 0, tn_unit_register(to));
}

void tn_unit_test(tn_unit_writer *w, int32_t mask, tn_x86_operand truths) {
  const int32_t spare = tn_unit_spare(w, 0);
  if (mask_is_vector(w)) {
    tn_unit_two(w, WIDEN_BYTES, mask, 0, truths);
    tn_unit_clear(w, spare);
    tn_unit_two(w, GREATER, mask, mask, tn_unit_register(spare));
    return;
  }
  if (truths.kind == TN_X86_MEMORY) {
    tn_unit_load_bytes(w, spare, truths);
    truths = tn_unit_register(spare);
  }
  tn_unit_two(w, TEST_BYTES, mask, truths.number, truths);
}

/* ---- bytes ---- */

void tn_unit_load_bytes(tn_unit_writer *w, int32_t to, tn_x86_operand from) {
  tn_unit_two(w, mask_is_vector(w) ? LOAD_8_BYTES : LOAD_BYTES, to, 0, from);
}

void tn_unit_store_bytes(tn_unit_writer *w, int32_t from, tn_x86_operand to) {
  tn_unit_two(w, mask_is_vector(w) ? STORE_8_BYTES : STORE_BYTES, from, 0, to);
}

void tn_unit_pack_bytes(tn_unit_writer *w, int32_t to, int32_t from) {
  enum { ABOVE_A_BYTE = 24 };
  const int32_t upper = tn_unit_spare(w, 0);
  if (!mask_is_vector(w)) {
    tn_unit_two(w, NARROW_BYTES, from, 0, tn_unit_register(to));
    return;
  }
  tn_unit_shift(w, LEFT, from, from, ABOVE_A_BYTE);
  tn_unit_shift(w, RIGHT, from, from, ABOVE_A_BYTE);
  tn_unit_with(w, UPPER_HALF, from, 0, tn_unit_register(upper), 1);
  tn_unit_two(w, PACK_UNSIGNED, from, from, tn_unit_register(upper));
  tn_unit_two(w, PACK_TO_UNSIGNED_BYTES, to, from, tn_unit_register(from));
}

void tn_unit_choose_bytes(tn_unit_writer *w, int32_t to, int32_t truths, int32_t yes, int32_t no) {
  const int32_t zero = tn_unit_spare(w, 0), mask = tn_unit_mask(w, 0);
  if (!mask_is_vector(w)) {
    tn_unit_two(w, TEST_BYTES, mask, truths, tn_unit_register(truths));
    mask_two(w, BLEND_BYTES, mask, false, to, no, tn_unit_register(yes));
    return;
  }
  tn_unit_clear(w, zero);
  tn_unit_two(w, EQUAL_BYTES, mask, truths, tn_unit_register(zero));
  tn_unit_with(w, BLEND_BYTES_BY, to, yes, tn_unit_register(no), (uint8_t)(mask << 4));
}

void tn_unit_not(tn_unit_writer *w, int32_t to, int32_t x) {
  const tn_x86_operand truths = {.kind = TN_X86_CONSTANT, .number = TN_X86_TRUTHS, .whole = true};
  const int32_t ones = tn_unit_spare(w, 0);
  if (mask_is_vector(w)) {
    tn_unit_two(w, EQUAL_BYTES, ones, ones, tn_unit_register(ones));
    tn_unit_two(w, SIZE_OF_BYTES, ones, 0, tn_unit_register(ones));
  } else {
    tn_unit_load_bytes(w, ones, truths);
  }
  tn_unit_two(w, XOR, to, x, tn_unit_register(ones));
}

/* ---- halves ---- */

void tn_unit_store_words(tn_unit_writer *w, int32_t from, tn_x86_operand to) {
  const int32_t upper = tn_unit_spare(w, 0);
  if (!mask_is_vector(w)) {
    tn_unit_two(w, NARROW_WORDS, from, 0, to);
    return;
  }
  tn_unit_with(w, UPPER_HALF, from, 0, tn_unit_register(upper), 1);
  tn_unit_two(w, PACK_UNSIGNED, from, from, tn_unit_register(upper));
  tn_unit_two(w, STORE_16_BYTES, from, 0, to);
}
