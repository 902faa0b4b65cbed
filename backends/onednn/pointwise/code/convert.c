/* Conversions between lanes, and between lanes and memory. f32 becomes whole numbers as
 * backends/shared/saturate.h has them: toward zero, as far as the type reaches, and 0 where it is no number.
 * It is limited first, so that the processor's conversion always has a result. */
#include "backends/onednn/pointwise/code/unit.h"

UNIT_OP(MOVE, 1, P_NONE, LONGEST, 0x28, false);
UNIT_OP(AND, 1, P_66, LONGEST, 0xdb, false);
UNIT_OP(ADD_I, 1, P_66, LONGEST, 0xfe, false);
UNIT_OP(MAX, 1, P_NONE, LONGEST, 0x5f, false); /* the operand where one is no number */
UNIT_OP(MIN, 1, P_NONE, LONGEST, 0x5d, false);
UNIT_OP(TRUNCATE, 1, P_F3, LONGEST, 0x5b, false);
UNIT_OP(FROM_WHOLE, 1, P_NONE, LONGEST, 0x5b, false);
UNIT_OP(WIDEN_UNSIGNED, 2, P_66, LONGEST, 0x31, false);
UNIT_OP(WIDEN_SIGNED, 2, P_66, LONGEST, 0x21, false);
UNIT_OP(WIDEN_WORDS, 2, P_66, LONGEST, 0x33, false);
UNIT_OP(FROM_F16, 2, P_66, LONGEST, 0x13, false);
UNIT_OP(TO_F16, 3, P_66, LONGEST, 0x1d, true);

enum { NEAREST = 0 };

/* ---- halves ---- */

/* The sum whose upper half is the rounded bf16, the upper half of x moved down, and the mask of NaN. */
static void convert_sum_bf16(tn_unit_writer *w, int32_t x, int32_t upper, int32_t sum, int32_t mask) {
  tn_unit_shift(w, RIGHT, upper, x, 16);
  tn_unit_compare(w, mask, x, tn_unit_register(x), UNORDERED);
  tn_unit_two(w, AND, sum, upper, tn_unit_constant(TN_X86_BIT));
  tn_unit_two(w, ADD_I, sum, sum, tn_unit_register(x));
  tn_unit_two(w, ADD_I, sum, sum, tn_unit_constant(TN_X86_BF16_HALF));
}

/* The upper half, rounded, in the lower one: see v_bf16_bits in simd/vector_load.h. */
static void convert_to_bf16_bits(tn_unit_writer *w, int32_t to, int32_t x) {
  const int32_t upper = tn_unit_spare(w, 0), sum = tn_unit_spare(w, 1), mask = tn_unit_mask(w, 0);
  convert_sum_bf16(w, x, upper, sum, mask);
  tn_unit_shift(w, RIGHT, to, sum, 16);
  tn_unit_put_or(w, mask, to, upper, tn_unit_constant(TN_X86_BF16_QUIET));
}

/* The same sum, whose lower half becomes 0. */
static void convert_round_bf16(tn_unit_writer *w, int32_t to, int32_t x) {
  const int32_t upper = tn_unit_spare(w, 0), sum = tn_unit_spare(w, 1), mask = tn_unit_mask(w, 0);
  convert_sum_bf16(w, x, upper, sum, mask);
  tn_unit_two(w, MOVE, upper, 0, tn_unit_register(x));
  tn_unit_put_or(w, mask, sum, upper, tn_unit_constant(TN_X86_QUIET));
  tn_unit_two(w, AND, to, sum, tn_unit_constant(TN_X86_UPPER_HALF));
}

void tn_unit_write_round(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, int32_t x) {
  const int32_t half = tn_unit_spare(w, 0);
  if (insn->dtype == TN_BF16) {
    convert_round_bf16(w, to, x);
    return;
  }
  tn_unit_with(w, TO_F16, x, 0, tn_unit_register(half), NEAREST);
  tn_unit_two(w, FROM_F16, to, 0, tn_unit_register(half));
}

void tn_unit_write_widen(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to) {
  tn_x86_operand from = tn_unit_memory(w, insn->in[0], TN_PW_NONE);
  tn_unit_two(w, insn->dtype == TN_BF16 ? WIDEN_WORDS : FROM_F16, to, 0, from);
  if (insn->dtype == TN_BF16) tn_unit_shift(w, LEFT, to, to, 16);
}

/* Whether the value that a register has in front of instruction `at` is a rounded one, or a choice between
 * two, at most so many choices deep. */
static bool convert_is_rounded(const tn_unit_writer *w, int32_t at, int32_t reg, int32_t dtype,
                               int32_t choices) {
  while (--at >= w->first && tn_unit_insn(w, at)->out != reg) continue;
  if (at < w->first) return false;
  const tn_tile_insn *made = tn_unit_insn(w, at);
  const int32_t yes = made->op == TILE_PICK ? 2 : 1;
  if (made->op == TN_PW_ROUND) return made->dtype == dtype;
  return (made->op == TILE_PICK || made->op == TN_PW_WHERE) && choices > 0 &&
         convert_is_rounded(w, at, made->in[yes], dtype, choices - 1) &&
         convert_is_rounded(w, at, made->in[yes + 1], dtype, choices - 1);
}

/* A value that is rounded already is not rounded again. */
static void convert_store_bf16(tn_unit_writer *w, const tn_tile_insn *insn, int32_t x, tn_x86_operand to) {
  enum { CHOICES = 4 };
  const int32_t bits = tn_unit_spare(w, 2);
  if (convert_is_rounded(w, w->at, insn->in[0], TN_BF16, CHOICES))
    tn_unit_shift(w, RIGHT, bits, x, 16);
  else
    convert_to_bf16_bits(w, bits, x);
  tn_unit_store_words(w, bits, to);
}

void tn_unit_write_store(tn_unit_writer *w, const tn_tile_insn *insn, int32_t x) {
  tn_x86_operand to = tn_unit_memory(w, TN_PW_NONE, insn->view);
  switch (insn->dtype) {
  case TN_F16: tn_unit_with(w, TO_F16, x, 0, to, NEAREST); break;
  case TN_BF16: convert_store_bf16(w, insn, x, to); break;
  default:
    if (tn_lane_size(insn->lane) == 1)
      tn_unit_store_bytes(w, x, to);
    else
      tn_unit_write_result(w, x, to);
  }
}

/* ---- f32 to whole numbers ---- */

/* to = low .. high, rounded toward zero */
static void convert_limited(tn_unit_writer *w, int32_t to, int32_t x, tn_x86_operand low, int32_t high) {
  tn_unit_two(w, MAX, to, x, low);
  tn_unit_two(w, MIN, to, to, tn_unit_constant(high));
  tn_unit_two(w, TRUNCATE, to, 0, tn_unit_register(to));
}

/* to = x is a number ? from : 0 */
static void convert_keep_numbers(tn_unit_writer *w, int32_t to, int32_t from, int32_t x) {
  const int32_t zero = tn_unit_spare(w, 1), mask = tn_unit_mask(w, 0);
  tn_unit_clear(w, zero);
  tn_unit_compare(w, mask, x, tn_unit_register(x), UNORDERED);
  tn_unit_choose(w, mask, to, tn_unit_register(zero), from);
}

/* The greatest number of i32 lies between two of f32. */
static void convert_to_i32(tn_unit_writer *w, int32_t to, int32_t x) {
  const int32_t whole = tn_unit_spare(w, 2), mask = tn_unit_mask(w, 0);
  convert_limited(w, whole, x, tn_unit_constant(TN_X86_LEAST_OF_I32), TN_X86_LAST_BELOW_I32);
  tn_unit_compare(w, mask, x, tn_unit_constant(TN_X86_BEYOND_I32), GE);
  tn_unit_choose(w, mask, whole, tn_unit_constant(TN_X86_NO_SIGN), whole);
  convert_keep_numbers(w, to, whole, x);
}

static void convert_to_i8(tn_unit_writer *w, int32_t to, int32_t x) {
  const int32_t whole = tn_unit_spare(w, 2);
  convert_limited(w, whole, x, tn_unit_constant(TN_X86_LEAST_OF_I8), TN_X86_MOST_OF_I8);
  convert_keep_numbers(w, whole, whole, x);
  tn_unit_pack_bytes(w, to, whole);
}

static void convert_to_u8(tn_unit_writer *w, int32_t to, int32_t x) {
  const int32_t whole = tn_unit_spare(w, 2), zero = tn_unit_spare(w, 1);
  tn_unit_clear(w, zero);
  convert_limited(w, whole, x, tn_unit_register(zero), TN_X86_MOST_OF_U8);
  tn_unit_pack_bytes(w, to, whole);
}

static void convert_f32(tn_unit_writer *w, int32_t dtype, int32_t to, int32_t x) {
  const int32_t zero = tn_unit_spare(w, 1), mask = tn_unit_mask(w, 0);
  switch (dtype) {
  case TN_U8: convert_to_u8(w, to, x); break;
  case TN_I8: convert_to_i8(w, to, x); break;
  case TN_I32: convert_to_i32(w, to, x); break;
  default: /* TN_BOOL */
    tn_unit_clear(w, zero);
    tn_unit_compare(w, mask, x, tn_unit_register(zero), NE);
    tn_unit_truths(w, to, mask);
  }
}

/* ---- whole numbers ---- */

void tn_unit_write_lanes(tn_unit_writer *w, int32_t lane, int32_t to, tn_x86_operand bytes) {
  tn_unit_two(w, lane == TN_LANE_U8 ? WIDEN_UNSIGNED : WIDEN_SIGNED, to, 0, bytes);
}

/* Lanes of four bytes, or of one, to bytes or truths. */
static void convert_to_bytes(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, int32_t x) {
  const int32_t lanes = tn_unit_spare(w, 2), zero = tn_unit_spare(w, 1), mask = tn_unit_mask(w, 0);
  const bool bytes = insn->lane != TN_LANE_I32;
  if (bytes && insn->dtype == TN_BOOL)
    tn_unit_write_lanes(w, insn->lane, lanes, tn_unit_register(x));
  else
    tn_unit_two(w, MOVE, bytes ? to : lanes, 0, tn_unit_register(x));
  if (insn->dtype == TN_BOOL) {
    tn_unit_clear(w, zero);
    tn_unit_compare_whole(w, mask, TN_PW_NE, lanes, zero);
    tn_unit_truths(w, to, mask);
  } else if (!bytes) {
    tn_unit_pack_bytes(w, to, lanes);
  }
}

/* Whole numbers to lanes of four bytes. */
static void convert_to_lanes(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, tn_x86_operand x) {
  if (insn->lane != TN_LANE_I32) {
    tn_unit_write_lanes(w, insn->lane, to, x);
    x = tn_unit_register(to);
  }
  if (insn->dtype != TN_I32) tn_unit_two(w, FROM_WHOLE, to, 0, x);
}

/* ---- casts ---- */

static bool convert_has(int32_t lane) { return tn_lane_size(lane) <= sizeof(float); }

bool tn_unit_has_cast(const tn_tile_insn *insn) {
  return convert_has(insn->lane) && convert_has(tn_lane_of(insn->dtype));
}

void tn_unit_write_cast(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, tn_x86_operand x) {
  if (insn->lane == TN_LANE_F32)
    convert_f32(w, insn->dtype, to, x.number);
  else if (tn_lane_size(tn_lane_of(insn->dtype)) == 1)
    convert_to_bytes(w, insn, to, x.number);
  else
    convert_to_lanes(w, insn, to, x);
}
