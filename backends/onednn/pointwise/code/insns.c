/* Which instructions of the processor do an instruction of the program: one choice for AVX2 and AVX-512,
 * whose arithmetic has the same opcodes. Operands are registers, but for the last one of an instruction,
 * which may be memory. A result's register may be that of an operand, so it is written last. */
#include "backends/onednn/pointwise/code/unit.h"

UNIT_OP(AND, 1, P_66, LONGEST, 0xdb, false);
UNIT_OP(OR, 1, P_66, LONGEST, 0xeb, false);
UNIT_OP(XOR, 1, P_66, LONGEST, 0xef, false);
UNIT_OP(ADD_I, 1, P_66, LONGEST, 0xfe, false);
UNIT_OP(SHIFT, 1, P_66, LONGEST, 0x72, true); /* right as to 2, left as to 6; `from` is the destination */
UNIT_OP(SQRT, 1, P_NONE, LONGEST, 0x51, false);
UNIT_OP(DIV, 1, P_NONE, LONGEST, 0x5e, false);
UNIT_OP(COMPARE, 1, P_NONE, LONGEST, 0xc2, true);
UNIT_OP(ROUND, 3, P_66, LONGEST, 0x08, true);
UNIT_OP(BROADCAST, 2, P_66, LONGEST, 0x18, false);
UNIT_OP(WIDEN_WORDS, 2, P_66, LONGEST, 0x33, false);
UNIT_OP(FROM_F16, 2, P_66, LONGEST, 0x13, false);
UNIT_OP(TO_F16, 3, P_66, LONGEST, 0x1d, true);

enum { RIGHT = 2, LEFT = 6 };
enum { EQ = 0, UNORDERED = 3, NE = 4, LT = 17, LE = 18, GE = 29, GT = 30 }; /* no exception for quiet NaN */
enum { FLOOR = 1, NEAREST = 0 };

static int32_t insn_spare(const tn_unit_writer *w, int32_t i) { return w->target->spare + i; }
static int32_t insn_mask(const tn_unit_writer *w, int32_t i) { return w->target->mask + i; }

static void insn_shift(tn_unit_writer *w, int32_t direction, int32_t to, int32_t from, uint8_t bits) {
  tn_unit_with(w, SHIFT, direction, to, tn_unit_register(from), bits);
}
static void insn_compare(tn_unit_writer *w, int32_t mask, int32_t x, tn_x86_operand y, uint8_t predicate) {
  tn_unit_with(w, COMPARE, mask, x, y, predicate);
}
static void insn_one(tn_unit_writer *w, int32_t to) {
  const tn_x86_operand one = {.kind = TN_X86_CONSTANT, .number = TN_X86_ONE, .whole = true};
  tn_unit_two(w, BROADCAST, to, 0, one);
}

/* ---- what there is code for ---- */

static bool insn_is_comparison(int32_t op) { return op >= TN_PW_EQ && op <= TN_PW_GE; }

bool tn_unit_has(const tn_tile_insn *insn) {
  if (insn->lane != TN_LANE_F32) return false;
  switch (insn->op) {
  case TN_PW_NEG:
  case TN_PW_ABS:
  case TN_PW_SIGN:
  case TN_PW_SQRT:
  case TN_PW_RSQRT:
  case TN_PW_RECIPROCAL:
  case TN_PW_FLOOR:
  case TN_PW_ADD:
  case TN_PW_SUB:
  case TN_PW_MUL:
  case TN_PW_MAXIMUM:
  case TN_PW_MINIMUM:
  case TN_PW_DIV:
  case TN_PW_IS_FINITE:
  case TN_PW_WHERE:
  case TN_PW_ROUND:
  case TN_PW_STORE:
  case TILE_WIDEN:
  case TILE_PAIR:
  case TILE_PICK: return true;
  default: return insn_is_comparison(insn->op);
  }
}

/* Whether operand k is the last one of the instruction of the processor that reads it, and of no other. */
static bool insn_reads_memory(const tn_tile_insn *insn, int32_t k) {
  switch (insn->op) {
  case TN_PW_WHERE: return k <= 1;
  case TILE_PICK: return k == 1 || k == 2;
  case TILE_PAIR: return k == 1 || (k == 2 && insn->op2 % 16 != TILE_PAIR_SUB_FROM);
  default: return k == 1;
  }
}

/* ---- arithmetic: to = x op y ---- */

/* The larger or smaller one, and x where it is no number: the processor gives y there. */
static void insn_extreme(tn_unit_writer *w, tn_x86_op op, int32_t to, int32_t x, tn_x86_operand y) {
  insn_compare(w, insn_mask(w, 1), x, tn_unit_register(x), UNORDERED);
  tn_unit_two(w, op, insn_spare(w, 0), x, y);
  tn_unit_choose(w, insn_mask(w, 1), to, tn_unit_register(x), insn_spare(w, 0));
}

static void insn_binary(tn_unit_writer *w, int32_t op, int32_t to, int32_t x, tn_x86_operand y) {
  static const uint8_t code[] = {[TN_PW_ADD] = 0x58,     [TN_PW_SUB] = 0x5c,     [TN_PW_MUL] = 0x59,
                                 [TN_PW_MAXIMUM] = 0x5f, [TN_PW_MINIMUM] = 0x5d, [TN_PW_DIV] = 0x5e};
  const tn_x86_op packed = {1, P_NONE, LONGEST, code[op], false};
  if (op == TN_PW_MAXIMUM || op == TN_PW_MINIMUM)
    insn_extreme(w, packed, to, x, y);
  else
    tn_unit_two(w, packed, to, x, y);
}

/* (x op y) op2 z */
static void insn_pair(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, const tn_x86_operand *in) {
  const int32_t second = insn->op2 % 16, first = insn_spare(w, 1);
  insn_binary(w, TN_PW_ADD + insn->op2 / 16, first, in[0].number, in[1]);
  if (second == TILE_PAIR_SUB_FROM)
    insn_binary(w, TN_PW_SUB, to, in[2].number, tn_unit_register(first));
  else
    insn_binary(w, TN_PW_ADD + second, to, first, in[2]);
}

/* 1, -1 or 0, and x where it is no number. */
static void insn_sign(tn_unit_writer *w, int32_t to, int32_t x) {
  const int32_t sign = insn_spare(w, 0), one = insn_spare(w, 1);
  tn_unit_two(w, XOR, sign, sign, tn_unit_register(sign));
  insn_one(w, one);
  insn_compare(w, insn_mask(w, 0), x, tn_unit_register(sign), GT);
  insn_compare(w, insn_mask(w, 1), x, tn_unit_register(sign), LT);
  tn_unit_put(w, insn_mask(w, 0), sign, one);
  tn_unit_two(w, OR, one, one, tn_unit_constant(TN_X86_SIGN));
  tn_unit_put(w, insn_mask(w, 1), sign, one);
  insn_compare(w, insn_mask(w, 0), x, tn_unit_register(x), UNORDERED);
  tn_unit_choose(w, insn_mask(w, 0), to, tn_unit_register(x), sign);
}

static void insn_reciprocal(tn_unit_writer *w, int32_t to, int32_t x) {
  insn_one(w, insn_spare(w, 1));
  tn_unit_two(w, DIV, to, insn_spare(w, 1), tn_unit_register(x));
}

static void insn_rsqrt(tn_unit_writer *w, int32_t to, int32_t x) {
  tn_unit_two(w, SQRT, insn_spare(w, 0), 0, tn_unit_register(x));
  insn_reciprocal(w, to, insn_spare(w, 0));
}

/* ---- truths ---- */

static uint8_t insn_predicate(int32_t op) {
  static const uint8_t predicate[] = {EQ, NE, LT, LE, GT, GE};
  return predicate[op - TN_PW_EQ];
}

static void insn_comparison(tn_unit_writer *w, int32_t op, int32_t to, const tn_x86_operand *in) {
  insn_compare(w, insn_mask(w, 0), in[0].number, in[1], insn_predicate(op));
  tn_unit_truths(w, to, insn_mask(w, 0));
}

static void insn_is_finite(tn_unit_writer *w, int32_t to, int32_t x) {
  tn_unit_two(w, AND, insn_spare(w, 0), x, tn_unit_constant(TN_X86_NO_SIGN));
  insn_compare(w, insn_mask(w, 0), insn_spare(w, 0), tn_unit_constant(TN_X86_INFINITY), LT);
  tn_unit_truths(w, to, insn_mask(w, 0));
}

static void insn_where(tn_unit_writer *w, int32_t to, const tn_x86_operand *in) {
  tn_unit_test(w, insn_mask(w, 0), in[0]);
  tn_unit_choose(w, insn_mask(w, 0), to, in[1], in[2].number);
}

static void insn_pick(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, const tn_x86_operand *in) {
  insn_compare(w, insn_mask(w, 0), in[0].number, in[1], insn_predicate(TN_PW_EQ + insn->op2));
  tn_unit_choose(w, insn_mask(w, 0), to, in[2], in[3].number);
}

/* ---- halves ---- */

/* The upper half, rounded, in the lower one: see v_bf16_bits in simd/vector_load.h. */
static void insn_bf16_bits(tn_unit_writer *w, int32_t to, int32_t x) {
  const int32_t upper = insn_spare(w, 0), sum = insn_spare(w, 1);
  insn_shift(w, RIGHT, upper, x, 16);
  insn_compare(w, insn_mask(w, 0), x, tn_unit_register(x), UNORDERED);
  tn_unit_two(w, AND, sum, upper, tn_unit_constant(TN_X86_BIT));
  tn_unit_two(w, ADD_I, sum, sum, tn_unit_register(x));
  tn_unit_two(w, ADD_I, sum, sum, tn_unit_constant(TN_X86_BF16_HALF));
  insn_shift(w, RIGHT, to, sum, 16);
  tn_unit_put_or(w, insn_mask(w, 0), to, upper, tn_unit_constant(TN_X86_BF16_QUIET));
}

static void insn_round(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, int32_t x) {
  const int32_t half = insn_spare(w, 0), bits = insn_spare(w, 2);
  if (insn->dtype == TN_BF16) {
    insn_bf16_bits(w, bits, x);
    insn_shift(w, LEFT, to, bits, 16);
    return;
  }
  tn_unit_with(w, TO_F16, x, 0, tn_unit_register(half), NEAREST);
  tn_unit_two(w, FROM_F16, to, 0, tn_unit_register(half));
}

static void insn_widen(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to) {
  tn_x86_operand from = tn_unit_memory(w, insn->in[0], TN_PW_NONE);
  tn_unit_two(w, insn->dtype == TN_BF16 ? WIDEN_WORDS : FROM_F16, to, 0, from);
  if (insn->dtype == TN_BF16) insn_shift(w, LEFT, to, to, 16);
}

/* To a result's memory. */
static void insn_narrow(tn_unit_writer *w, const tn_tile_insn *insn, int32_t x) {
  tn_x86_operand to = tn_unit_memory(w, TN_PW_NONE, insn->view);
  if (insn->dtype == TN_F32) tn_unit_write_result(w, x, to);
  if (insn->dtype == TN_F16) tn_unit_with(w, TO_F16, x, 0, to, NEAREST);
  if (insn->dtype != TN_BF16) return;
  insn_bf16_bits(w, insn_spare(w, 2), x);
  tn_unit_store_words(w, insn_spare(w, 2), to);
}

/* ---- one instruction ---- */

static void insn_compute(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, const tn_x86_operand *in) {
  const int32_t x = in[0].number;
  switch (insn->op) {
  case TN_PW_NEG: tn_unit_two(w, XOR, to, x, tn_unit_constant(TN_X86_SIGN)); break;
  case TN_PW_ABS: tn_unit_two(w, AND, to, x, tn_unit_constant(TN_X86_NO_SIGN)); break;
  case TN_PW_SIGN: insn_sign(w, to, x); break;
  case TN_PW_SQRT: tn_unit_two(w, SQRT, to, 0, in[0]); break;
  case TN_PW_RSQRT: insn_rsqrt(w, to, x); break;
  case TN_PW_RECIPROCAL: insn_reciprocal(w, to, x); break;
  case TN_PW_FLOOR: tn_unit_with(w, ROUND, to, 0, in[0], FLOOR); break;
  case TN_PW_IS_FINITE: insn_is_finite(w, to, x); break;
  case TN_PW_WHERE: insn_where(w, to, in); break;
  case TN_PW_ROUND: insn_round(w, insn, to, x); break;
  case TILE_WIDEN: insn_widen(w, insn, to); break;
  case TILE_PAIR: insn_pair(w, insn, to, in); break;
  case TILE_PICK: insn_pick(w, insn, to, in); break;
  default:
    if (insn_is_comparison(insn->op))
      insn_comparison(w, insn->op, to, in);
    else
      insn_binary(w, insn->op, to, x, in[1]);
  }
}

bool tn_unit_write_insn(tn_unit_writer *w) {
  const tn_tile_insn *insn = tn_unit_insn(w, w->at);
  tn_x86_operand in[TN_PW_INPUTS] = {{0}};
  for (int32_t k = 0; k < TN_PW_INPUTS && insn->op != TILE_WIDEN; k++)
    if (insn->in[k] != TN_PW_NONE && !tn_unit_operand(w, k, insn_reads_memory(insn, k), &in[k])) return false;
  tn_unit_release(w);
  if (insn->op == TN_PW_STORE) {
    insn_narrow(w, insn, in[0].number);
    return true;
  }
  int32_t to = tn_unit_result(w);
  if (to == TN_PW_NONE) return false;
  insn_compute(w, insn, to, in);
  tn_unit_finish(w);
  return true;
}
