/* Which instructions of the processor do an instruction of the program: one choice for AVX2 and AVX-512,
 * whose arithmetic has the same opcodes. Here are those over f32, truths and choices. Operands are registers,
 * but for the last one of an instruction, which may be memory. A result's register may be that of an operand,
 * so it is written last. */
#include "backends/onednn/pointwise/code/unit.h"

UNIT_OP(AND, 1, P_66, LONGEST, 0xdb, false);
UNIT_OP(OR, 1, P_66, LONGEST, 0xeb, false);
UNIT_OP(XOR, 1, P_66, LONGEST, 0xef, false);
UNIT_OP(SQRT, 1, P_NONE, LONGEST, 0x51, false);
UNIT_OP(DIV, 1, P_NONE, LONGEST, 0x5e, false);
UNIT_OP(ROUND, 3, P_66, LONGEST, 0x08, true);
UNIT_OP(BROADCAST, 2, P_66, LONGEST, 0x18, false);

enum { FLOOR = 1 };

static void insn_one(tn_unit_writer *w, int32_t to) {
  const tn_x86_operand one = {.kind = TN_X86_CONSTANT, .number = TN_X86_ONE, .whole = true};
  tn_unit_two(w, BROADCAST, to, 0, one);
}

/* ---- what there is code for ---- */

static bool insn_has_f32(const tn_tile_insn *insn) {
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
  default: return tn_unit_is_comparison(insn->op);
  }
}

bool tn_unit_has(const tn_tile_insn *insn) {
  if (insn->op == TN_PW_CAST) return tn_unit_has_cast(insn);
  if (insn->lane == TN_LANE_F32) return insn_has_f32(insn);
  return tn_unit_has_whole(insn);
}

/* Whether operand k is the last one of the instruction of the processor that reads it, and of no other. Those
 * over bytes read more than the bytes of the lanes. */
static bool insn_reads_memory(const tn_tile_insn *insn, int32_t k) {
  if (insn->op == TN_PW_CAST) return insn->lane != TN_LANE_F32 && tn_unit_result_size(insn) > 1;
  if (tn_lane_size(insn->lane) == 1 || (insn->lane != TN_LANE_F32 && tn_unit_is_comparison(insn->op)))
    return false;
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
  tn_unit_compare(w, tn_unit_mask(w, 1), x, tn_unit_register(x), UNORDERED);
  tn_unit_two(w, op, tn_unit_spare(w, 0), x, y);
  tn_unit_choose(w, tn_unit_mask(w, 1), to, tn_unit_register(x), tn_unit_spare(w, 0));
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
  const int32_t second = insn->op2 % 16, first = tn_unit_spare(w, 1);
  insn_binary(w, TN_PW_ADD + insn->op2 / 16, first, in[0].number, in[1]);
  if (second == TILE_PAIR_SUB_FROM)
    insn_binary(w, TN_PW_SUB, to, in[2].number, tn_unit_register(first));
  else
    insn_binary(w, TN_PW_ADD + second, to, first, in[2]);
}

/* 1, -1 or 0, and x where it is no number. */
static void insn_sign(tn_unit_writer *w, int32_t to, int32_t x) {
  const int32_t sign = tn_unit_spare(w, 0), one = tn_unit_spare(w, 1);
  tn_unit_clear(w, sign);
  insn_one(w, one);
  tn_unit_compare(w, tn_unit_mask(w, 0), x, tn_unit_register(sign), GT);
  tn_unit_compare(w, tn_unit_mask(w, 1), x, tn_unit_register(sign), LT);
  tn_unit_put(w, tn_unit_mask(w, 0), sign, one);
  tn_unit_two(w, OR, one, one, tn_unit_constant(TN_X86_SIGN));
  tn_unit_put(w, tn_unit_mask(w, 1), sign, one);
  tn_unit_compare(w, tn_unit_mask(w, 0), x, tn_unit_register(x), UNORDERED);
  tn_unit_choose(w, tn_unit_mask(w, 0), to, tn_unit_register(x), sign);
}

static void insn_reciprocal(tn_unit_writer *w, int32_t to, int32_t x) {
  insn_one(w, tn_unit_spare(w, 1));
  tn_unit_two(w, DIV, to, tn_unit_spare(w, 1), tn_unit_register(x));
}

static void insn_rsqrt(tn_unit_writer *w, int32_t to, int32_t x) {
  tn_unit_two(w, SQRT, tn_unit_spare(w, 0), 0, tn_unit_register(x));
  insn_reciprocal(w, to, tn_unit_spare(w, 0));
}

/* ---- truths ---- */

static uint8_t insn_predicate(int32_t op) {
  static const uint8_t predicate[] = {EQ, NE, LT, LE, GT, GE};
  return predicate[op - TN_PW_EQ];
}

static void insn_test_finite(tn_unit_writer *w, int32_t x) {
  const int32_t magnitude = tn_unit_spare(w, 0);
  tn_unit_two(w, AND, magnitude, x, tn_unit_constant(TN_X86_NO_SIGN));
  tn_unit_compare(w, tn_unit_mask(w, 0), magnitude, tn_unit_constant(TN_X86_INFINITY), LT);
}

static bool insn_makes_truths(const tn_tile_insn *insn) {
  return tn_unit_is_comparison(insn->op) || insn->op == TN_PW_IS_FINITE;
}

/* The truths of an instruction in the first mask. */
static void insn_test(tn_unit_writer *w, const tn_tile_insn *insn, const tn_x86_operand *in) {
  if (insn->op == TN_PW_IS_FINITE)
    insn_test_finite(w, in[0].number);
  else if (insn->lane != TN_LANE_F32)
    tn_unit_test_whole(w, insn, in);
  else
    tn_unit_compare(w, tn_unit_mask(w, 0), in[0].number, in[1], insn_predicate(insn->op));
}

static bool insn_chooses_by(const tn_tile_insn *insn, int32_t reg) {
  return insn->op == TN_PW_WHERE && insn->in[0] == reg && tn_lane_size(insn->lane) > 1;
}

/* Whether the first mask is the same behind an instruction. */
static bool insn_keeps_mask(const tn_tile_insn *insn) {
  switch (insn->op) {
  case TN_PW_NEG:
  case TN_PW_ABS:
  case TN_PW_SQRT:
  case TN_PW_RSQRT:
  case TN_PW_RECIPROCAL:
  case TN_PW_FLOOR:
  case TN_PW_ADD:
  case TN_PW_SUB:
  case TN_PW_MUL:
  case TN_PW_DIV:
  case TN_PW_MAXIMUM:
  case TN_PW_MINIMUM:
  case TILE_WIDEN:
  case TILE_PAIR: return true;
  default: return false;
  }
}

/* Whether choices alone read the truths that the instruction makes, before another one takes the mask. */
static bool insn_stays_in_mask(const tn_unit_writer *w) {
  const int32_t reg = tn_unit_insn(w, w->at)->out;
  bool stays = !tn_unit_is_stored(w, w->at), same = true;
  for (int32_t i = w->at + 1; i < w->end && stays; i++) {
    const tn_tile_insn *next = tn_unit_insn(w, i);
    const bool chooses = insn_chooses_by(next, reg);
    for (int32_t k = 0; k < TN_PW_INPUTS; k++)
      if (next->in[k] == reg) stays = stays && same && chooses && k == 0;
    if (next->out == reg) break;
    same = same && (chooses || insn_keeps_mask(next));
  }
  return stays;
}

static void insn_where(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, const tn_x86_operand *in) {
  if (tn_lane_size(insn->lane) == 1) {
    tn_unit_choose_bytes(w, to, in[0].number, in[1].number, in[2].number);
    return;
  }
  if (insn->in[0] != w->in_mask) tn_unit_test(w, tn_unit_mask(w, 0), in[0]);
  tn_unit_choose(w, tn_unit_mask(w, 0), to, in[1], in[2].number);
}

static void insn_pick(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, const tn_x86_operand *in) {
  tn_unit_compare(w, tn_unit_mask(w, 0), in[0].number, in[1], insn_predicate(TN_PW_EQ + insn->op2));
  tn_unit_choose(w, tn_unit_mask(w, 0), to, in[2], in[3].number);
}

/* ---- one instruction ---- */

static void insn_compute_f32(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to,
                             const tn_x86_operand *in) {
  const int32_t x = in[0].number;
  switch (insn->op) {
  case TN_PW_NEG: tn_unit_two(w, XOR, to, x, tn_unit_constant(TN_X86_SIGN)); break;
  case TN_PW_ABS: tn_unit_two(w, AND, to, x, tn_unit_constant(TN_X86_NO_SIGN)); break;
  case TN_PW_SIGN: insn_sign(w, to, x); break;
  case TN_PW_SQRT: tn_unit_two(w, SQRT, to, 0, in[0]); break;
  case TN_PW_RSQRT: insn_rsqrt(w, to, x); break;
  case TN_PW_RECIPROCAL: insn_reciprocal(w, to, x); break;
  case TN_PW_FLOOR: tn_unit_with(w, ROUND, to, 0, in[0], FLOOR); break;
  case TN_PW_ROUND: tn_unit_write_round(w, insn, to, x); break;
  case TILE_WIDEN: tn_unit_write_widen(w, insn, to); break;
  case TILE_PAIR: insn_pair(w, insn, to, in); break;
  case TILE_PICK: insn_pick(w, insn, to, in); break;
  case TN_PW_DIV:
    if (!tn_unit_write_quotient(w, insn, to, x, in[1])) insn_binary(w, TN_PW_DIV, to, x, in[1]);
    break;
  default: insn_binary(w, insn->op, to, x, in[1]);
  }
}

static void insn_compute(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, const tn_x86_operand *in) {
  if (insn_makes_truths(insn)) {
    insn_test(w, insn, in);
    tn_unit_truths(w, to, tn_unit_mask(w, 0));
  } else if (insn->op == TN_PW_CAST) {
    tn_unit_write_cast(w, insn, to, in[0]);
  } else if (insn->op == TN_PW_WHERE) {
    insn_where(w, insn, to, in);
  } else if (insn->lane == TN_LANE_F32) {
    insn_compute_f32(w, insn, to, in);
  } else {
    tn_unit_write_whole(w, insn, to, in);
  }
}

/* The operands in their places. A condition that is in the mask has no other. */
static bool insn_place_operands(tn_unit_writer *w, const tn_tile_insn *insn, tn_x86_operand *in) {
  const bool in_mask = w->in_mask != TN_PW_NONE && insn_chooses_by(insn, w->in_mask);
  if (!in_mask && !insn_keeps_mask(insn)) w->in_mask = TN_PW_NONE;
  for (int32_t k = in_mask; k < TN_PW_INPUTS && insn->op != TILE_WIDEN; k++)
    if (insn->in[k] != TN_PW_NONE && !tn_unit_operand(w, k, insn_reads_memory(insn, k), &in[k])) return false;
  tn_unit_release(w);
  return true;
}

/* The result goes to its vector register, or stays in the mask. */
static bool insn_make_result(tn_unit_writer *w, const tn_tile_insn *insn, const tn_x86_operand *in) {
  if (insn_makes_truths(insn) && insn_stays_in_mask(w)) {
    tn_unit_drop(w, insn->out);
    insn_test(w, insn, in);
    w->in_mask = insn->out;
    return true;
  }
  int32_t to = tn_unit_result(w);
  if (to == TN_PW_NONE) return false;
  insn_compute(w, insn, to, in);
  if (insn->out == w->in_mask) w->in_mask = TN_PW_NONE;
  tn_unit_finish(w);
  return true;
}

bool tn_unit_write_insn(tn_unit_writer *w) {
  const tn_tile_insn *insn = tn_unit_insn(w, w->at);
  tn_x86_operand in[TN_PW_INPUTS] = {{0}};
  if (!insn_place_operands(w, insn, in)) return false;
  if (insn->op != TN_PW_STORE) return insn_make_result(w, insn, in);
  tn_unit_write_store(w, insn, in[0].number);
  return true;
}
