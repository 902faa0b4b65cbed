/* Writes a loop over groups of 16 elements: the pointers and narrow values in front, then each instruction in
 * turn. A value is loaded where it is first read and stored where it is made, if anything but the unit reads
 * it; in between it has a vector register, until its last use. */
#include "backends/onednn/pointwise/unit.h"

/* ---- instructions of the processor ---- */

enum { P_NONE, P_66, P_F3, P_F2, XMM = 0, ZMM = 2 };
#define OP(name, map, prefix, length, code, immediate)                                                       \
  static const tn_x86_op name = {map, prefix, length, code, immediate}
OP(LOAD, 1, P_NONE, ZMM, 0x10, false);
OP(STORE, 1, P_NONE, ZMM, 0x11, false);
OP(MOVE, 1, P_NONE, ZMM, 0x28, false);
OP(AND, 1, P_66, ZMM, 0xdb, false);
OP(OR, 1, P_66, ZMM, 0xeb, false);
OP(XOR, 1, P_66, ZMM, 0xef, false);
OP(ADD_I, 1, P_66, ZMM, 0xfe, false);
OP(SHIFT, 1, P_66, ZMM, 0x72, true); /* right as to 2, left as to 6; `from` is the destination */
OP(SQRT, 1, P_NONE, ZMM, 0x51, false);
OP(DIV, 1, P_NONE, ZMM, 0x5e, false);
OP(COMPARE, 1, P_NONE, ZMM, 0xc2, true);
OP(ROUND, 3, P_66, ZMM, 0x08, true);
OP(BLEND, 2, P_66, ZMM, 0x65, false);
OP(BROADCAST, 2, P_66, ZMM, 0x18, false);
OP(TEST_BYTES, 2, P_66, XMM, 0x26, false);
OP(LOAD_BYTES, 1, P_F2, XMM, 0x6f, false);
OP(STORE_BYTES, 1, P_F2, XMM, 0x7f, false);
OP(WIDEN_WORDS, 2, P_66, ZMM, 0x33, false);
OP(NARROW_WORDS, 2, P_F3, ZMM, 0x33, false);
OP(FROM_F16, 2, P_66, ZMM, 0x13, false);
OP(TO_F16, 3, P_66, ZMM, 0x1d, true);

enum { RIGHT = 2, LEFT = 6 };
enum { EQ = 0, UNORDERED = 3, NE = 4, LT = 17, LE = 18, GE = 29, GT = 30 }; /* no exception for quiet NaN */
enum { SPARE = UNIT_SPARE, SPARE_2, SPARE_3 };
enum { FLOOR = 1, NEAREST = 0 };

static const tn_x86_mask ALL = {0, false}, MASKED = {UNIT_MASK, false}, ZEROED = {UNIT_MASK, true};

static tn_x86_operand unit_register(int32_t number) {
  return (tn_x86_operand){.kind = TN_X86_REGISTER, .number = number};
}
static tn_x86_operand unit_constant(int32_t number) {
  return (tn_x86_operand){.kind = TN_X86_CONSTANT, .number = number};
}

static void unit_two(tn_unit_writer *w, tn_x86_op op, int32_t to, int32_t from, tn_x86_operand y) {
  tn_x86_vector(&w->x, op, to, from, y, ALL, 0);
}
static void unit_shift(tn_unit_writer *w, int32_t direction, int32_t to, int32_t from, uint8_t bits) {
  tn_x86_vector(&w->x, SHIFT, direction, to, unit_register(from), ALL, bits);
}
static void unit_compare(tn_unit_writer *w, int32_t mask, int32_t x, tn_x86_operand y, uint8_t predicate) {
  tn_x86_vector(&w->x, COMPARE, mask, x, y, ALL, predicate);
}

/* ---- what there is code for ---- */

static bool unit_is_comparison(int32_t op) { return op >= TN_PW_EQ && op <= TN_PW_GE; }

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
  default: return unit_is_comparison(insn->op);
  }
}

int32_t tn_unit_operand_size(const tn_tile_insn *insn, int32_t k) {
  if (!insn->step[k]) return 0;
  if (insn->op == TILE_WIDEN) return (int32_t)sizeof(uint16_t);
  return insn->op == TN_PW_WHERE && k == 0 ? 1 : (int32_t)sizeof(float);
}

int32_t tn_unit_result_size(const tn_tile_insn *insn) {
  return unit_is_comparison(insn->op) || insn->op == TN_PW_IS_FINITE ? 1 : (int32_t)sizeof(float);
}

/* ---- registers ---- */

static const tn_tile_insn *unit_insn(const tn_unit_writer *w, int32_t i) {
  return (const tn_tile_insn *)w->program->base.insns + i;
}

static bool unit_reads(const tn_tile_insn *insn, int32_t reg) {
  for (int32_t k = 0; k < TN_PW_INPUTS; k++)
    if (insn->in[k] == reg) return true;
  return false;
}

/* Whether an instruction from i on and before `end` reads the value that a register has then. */
static bool unit_is_read(const tn_unit_writer *w, int32_t reg, int32_t i, int32_t end) {
  for (; i < end; i++) {
    if (unit_reads(unit_insn(w, i), reg)) return true;
    if (unit_insn(w, i)->out == reg) return false;
  }
  return false;
}

/* Whether the result of instruction i is read behind the unit, or is in memory. */
static bool unit_is_stored(const tn_unit_writer *w, int32_t i) {
  int32_t reg = unit_insn(w, i)->out, end = w->program->base.end[TN_PW_PER_ELEMENT];
  if (reg >= w->program->base.n_slots) return true;
  for (int32_t j = i + 1; j < end; j++) {
    if (j >= w->end && unit_reads(unit_insn(w, j), reg)) return true;
    if (unit_insn(w, j)->out == reg) return false;
  }
  return false;
}

static void unit_free(tn_unit_writer *w, int32_t reg) {
  if (w->held[reg] != TN_PW_NONE) w->owner[w->held[reg]] = TN_PW_NONE;
  w->held[reg] = TN_PW_NONE;
}

/* A vector register for the value of a register; TN_PW_NONE: all are in use. */
static int32_t unit_take(tn_unit_writer *w, int32_t reg) {
  unit_free(w, reg);
  for (int32_t v = 0; v < UNIT_VALUES; v++)
    if (w->owner[v] == TN_PW_NONE) {
      w->owner[v] = reg;
      w->held[reg] = v;
      return v;
    }
  return TN_PW_NONE;
}

/* ---- pointers ---- */

static const int32_t unit_base[UNIT_BASES] = {TN_X86_RCX, TN_X86_RDX, 8,  9,  10, 11,
                                              TN_X86_RBX, TN_X86_RBP, 12, 13, 14, 15};

static int32_t unit_find(const tn_unit_writer *w, int32_t reg, int32_t result) {
  for (int32_t i = 0; i < w->unit->n_pointers; i++)
    if (w->unit->pointer[i].reg == reg && w->unit->pointer[i].result == result) return i;
  return TN_PW_NONE;
}

/* Pointers to what moves come first, so that pointer i is in unit_base[i]. false: there are too many. */
static bool unit_point(tn_unit_writer *w, int32_t reg, int32_t result, int32_t size) {
  tn_tile_unit *u = w->unit;
  if (unit_find(w, reg, result) != TN_PW_NONE) return true;
  int32_t *count = size > 0 ? &w->n_bases : &w->n_narrow;
  if (*count == (size > 0 ? UNIT_BASES : UNIT_NARROW)) return false;
  for (int32_t i = u->n_pointers; size > 0 && i > w->n_bases; i--) u->pointer[i] = u->pointer[i - 1];
  u->pointer[size > 0 ? w->n_bases : u->n_pointers] = (tn_tile_pointer){reg, result, size};
  u->n_pointers++;
  (*count)++;
  return true;
}

static bool unit_point_insn(tn_unit_writer *w, int32_t i) {
  const tn_tile_insn *insn = unit_insn(w, i);
  for (int32_t k = 0; k < TN_PW_INPUTS; k++) {
    bool made = false;
    for (int32_t j = w->first; j < i && insn->in[k] != TN_PW_NONE; j++)
      made = made || unit_insn(w, j)->out == insn->in[k];
    if (insn->in[k] == TN_PW_NONE || made) continue;
    if (!unit_point(w, insn->in[k], TN_PW_NONE, tn_unit_operand_size(insn, k))) return false;
  }
  if (insn->op == TN_PW_STORE)
    return unit_point(w, TN_PW_NONE, insn->view, (int32_t)tn_dtype_size(insn->dtype));
  return !unit_is_stored(w, i) || unit_point(w, insn->out, TN_PW_NONE, tn_unit_result_size(insn));
}

static tn_x86_operand unit_memory(const tn_unit_writer *w, int32_t reg, int32_t result) {
  int32_t i = unit_find(w, reg, result);
  return (tn_x86_operand){.kind = TN_X86_MEMORY, .number = unit_base[i], .scale = w->unit->pointer[i].size};
}

/* ---- values ---- */

static bool unit_is_bytes(const tn_tile_insn *insn, int32_t k) { return insn->op == TN_PW_WHERE && k == 0; }

/* The vector register of operand k, loaded if it was not. TN_PW_NONE: all are in use. */
static int32_t unit_value(tn_unit_writer *w, const tn_tile_insn *insn, int32_t k) {
  int32_t reg = insn->in[k];
  if (w->held[reg] != TN_PW_NONE) return w->held[reg];
  int32_t v = unit_take(w, reg);
  if (v == TN_PW_NONE) return v;
  unit_two(w, unit_is_bytes(insn, k) ? LOAD_BYTES : LOAD, v, 0, unit_memory(w, reg, TN_PW_NONE));
  return v;
}

/* Operands that no later instruction reads give up their registers; narrow ones are for the next group, too.
 */
static void unit_release(tn_unit_writer *w, int32_t i) {
  const tn_tile_insn *insn = unit_insn(w, i);
  for (int32_t k = 0; k < TN_PW_INPUTS; k++)
    if (insn->in[k] != TN_PW_NONE && insn->step[k] && !unit_is_read(w, insn->in[k], i + 1, w->end))
      unit_free(w, insn->in[k]);
}

static void unit_store(tn_unit_writer *w, int32_t i, int32_t v) {
  const tn_tile_insn *insn = unit_insn(w, i);
  tn_x86_op op = tn_unit_result_size(insn) == 1 ? STORE_BYTES : STORE;
  if (unit_is_stored(w, i)) unit_two(w, op, v, 0, unit_memory(w, insn->out, TN_PW_NONE));
}

/* ---- arithmetic: to = x op y ---- */

/* The larger or smaller one, and x where it is no number: the processor gives y there. */
static void unit_extreme(tn_unit_writer *w, tn_x86_op op, int32_t to, int32_t x, int32_t y) {
  unit_compare(w, UNIT_MASK_2, x, unit_register(x), UNORDERED);
  unit_two(w, op, SPARE, x, unit_register(y));
  tn_x86_vector(&w->x, BLEND, to, SPARE, unit_register(x), (tn_x86_mask){UNIT_MASK_2, false}, 0);
}

static void unit_binary(tn_unit_writer *w, int32_t op, int32_t to, int32_t x, int32_t y) {
  static const uint8_t code[] = {[TN_PW_ADD] = 0x58,     [TN_PW_SUB] = 0x5c,     [TN_PW_MUL] = 0x59,
                                 [TN_PW_MAXIMUM] = 0x5f, [TN_PW_MINIMUM] = 0x5d, [TN_PW_DIV] = 0x5e};
  const tn_x86_op packed = {1, P_NONE, ZMM, code[op], false};
  if (op == TN_PW_MAXIMUM || op == TN_PW_MINIMUM)
    unit_extreme(w, packed, to, x, y);
  else
    unit_two(w, packed, to, x, unit_register(y));
}

/* (x op y) op2 z */
static void unit_pair(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, const int32_t *in) {
  int32_t second = insn->op2 % 16;
  unit_binary(w, TN_PW_ADD + insn->op2 / 16, SPARE_2, in[0], in[1]);
  if (second == TILE_PAIR_SUB_FROM)
    unit_binary(w, TN_PW_SUB, to, in[2], SPARE_2);
  else
    unit_binary(w, TN_PW_ADD + second, to, SPARE_2, in[2]);
}

/* 1, -1 or 0, and x where it is no number. */
static void unit_sign(tn_unit_writer *w, int32_t to, int32_t x) {
  unit_two(w, XOR, SPARE, SPARE, unit_register(SPARE));
  unit_two(w, BROADCAST, SPARE_2, 0, (tn_x86_operand){TN_X86_CONSTANT, TN_X86_ONE, 0, true});
  unit_compare(w, UNIT_MASK, x, unit_register(SPARE), GT);
  unit_compare(w, UNIT_MASK_2, x, unit_register(SPARE), LT);
  tn_x86_vector(&w->x, MOVE, SPARE, 0, unit_register(SPARE_2), MASKED, 0);
  unit_two(w, OR, SPARE_2, SPARE_2, unit_constant(TN_X86_SIGN));
  tn_x86_vector(&w->x, MOVE, SPARE, 0, unit_register(SPARE_2), (tn_x86_mask){UNIT_MASK_2, false}, 0);
  unit_compare(w, UNIT_MASK, x, unit_register(x), UNORDERED);
  tn_x86_vector(&w->x, BLEND, to, SPARE, unit_register(x), MASKED, 0);
}

static void unit_reciprocal(tn_unit_writer *w, int32_t to, int32_t x) {
  unit_two(w, BROADCAST, SPARE_2, 0, (tn_x86_operand){TN_X86_CONSTANT, TN_X86_ONE, 0, true});
  unit_two(w, DIV, to, SPARE_2, unit_register(x));
}

/* Mask 1 as bytes of 0 or 1. */
static void unit_truths(tn_unit_writer *w, int32_t to) {
  tn_x86_vector(&w->x, LOAD_BYTES, to, 0, (tn_x86_operand){TN_X86_CONSTANT, TN_X86_TRUTHS, 0, true}, ZEROED,
                0);
}

static uint8_t unit_predicate(int32_t op) {
  static const uint8_t predicate[] = {EQ, NE, LT, LE, GT, GE};
  return predicate[op - TN_PW_EQ];
}

static void unit_where(tn_unit_writer *w, int32_t to, const int32_t *in) {
  unit_two(w, TEST_BYTES, UNIT_MASK, in[0], unit_register(in[0]));
  tn_x86_vector(&w->x, BLEND, to, in[2], unit_register(in[1]), MASKED, 0);
}

static void unit_pick(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, const int32_t *in) {
  unit_compare(w, UNIT_MASK, in[0], unit_register(in[1]), unit_predicate(TN_PW_EQ + insn->op2));
  tn_x86_vector(&w->x, BLEND, to, in[3], unit_register(in[2]), MASKED, 0);
}

static void unit_is_finite(tn_unit_writer *w, int32_t to, int32_t x) {
  unit_two(w, AND, SPARE, x, unit_constant(TN_X86_NO_SIGN));
  unit_compare(w, UNIT_MASK, SPARE, unit_constant(TN_X86_INFINITY), LT);
  unit_truths(w, to);
}

/* ---- halves ---- */

/* The upper half, rounded, in the lower one: see v_bf16_bits in simd/vector_load.h. */
static void unit_bf16_bits(tn_unit_writer *w, int32_t to, int32_t x) {
  unit_shift(w, RIGHT, SPARE, x, 16);
  unit_compare(w, UNIT_MASK, x, unit_register(x), UNORDERED);
  unit_two(w, AND, SPARE_2, SPARE, unit_constant(TN_X86_BIT));
  unit_two(w, ADD_I, SPARE_2, SPARE_2, unit_register(x));
  unit_two(w, ADD_I, SPARE_2, SPARE_2, unit_constant(TN_X86_BF16_HALF));
  unit_shift(w, RIGHT, to, SPARE_2, 16);
  tn_x86_vector(&w->x, OR, to, SPARE, unit_constant(TN_X86_BF16_QUIET), MASKED, 0);
}

static void unit_round(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, int32_t x) {
  if (insn->dtype == TN_BF16) {
    unit_bf16_bits(w, SPARE_3, x);
    unit_shift(w, LEFT, to, SPARE_3, 16);
    return;
  }
  tn_x86_vector(&w->x, TO_F16, x, 0, unit_register(SPARE), ALL, NEAREST);
  unit_two(w, FROM_F16, to, 0, unit_register(SPARE));
}

static void unit_widen(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to) {
  tn_x86_operand from = unit_memory(w, insn->in[0], TN_PW_NONE);
  unit_two(w, insn->dtype == TN_BF16 ? WIDEN_WORDS : FROM_F16, to, 0, from);
  if (insn->dtype == TN_BF16) unit_shift(w, LEFT, to, to, 16);
}

/* To a result's memory. */
static void unit_narrow(tn_unit_writer *w, const tn_tile_insn *insn, int32_t x) {
  tn_x86_operand to = unit_memory(w, TN_PW_NONE, insn->view);
  if (insn->dtype == TN_F32) unit_two(w, STORE, x, 0, to);
  if (insn->dtype == TN_F16) tn_x86_vector(&w->x, TO_F16, x, 0, to, ALL, NEAREST);
  if (insn->dtype != TN_BF16) return;
  unit_bf16_bits(w, SPARE_3, x);
  unit_two(w, NARROW_WORDS, SPARE_3, 0, to);
}

/* ---- one instruction ---- */

static void unit_compute(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, const int32_t *in) {
  switch (insn->op) {
  case TN_PW_NEG: unit_two(w, XOR, to, in[0], unit_constant(TN_X86_SIGN)); break;
  case TN_PW_ABS: unit_two(w, AND, to, in[0], unit_constant(TN_X86_NO_SIGN)); break;
  case TN_PW_SIGN: unit_sign(w, to, in[0]); break;
  case TN_PW_SQRT: unit_two(w, SQRT, to, 0, unit_register(in[0])); break;
  case TN_PW_RSQRT:
    unit_two(w, SQRT, SPARE, 0, unit_register(in[0]));
    unit_reciprocal(w, to, SPARE);
    break;
  case TN_PW_RECIPROCAL: unit_reciprocal(w, to, in[0]); break;
  case TN_PW_FLOOR: tn_x86_vector(&w->x, ROUND, to, 0, unit_register(in[0]), ALL, FLOOR); break;
  case TN_PW_IS_FINITE: unit_is_finite(w, to, in[0]); break;
  case TN_PW_WHERE: unit_where(w, to, in); break;
  case TN_PW_ROUND: unit_round(w, insn, to, in[0]); break;
  case TILE_PAIR: unit_pair(w, insn, to, in); break;
  case TILE_PICK: unit_pick(w, insn, to, in); break;
  default:
    if (unit_is_comparison(insn->op)) {
      unit_compare(w, UNIT_MASK, in[0], unit_register(in[1]), unit_predicate(insn->op));
      unit_truths(w, to);
    } else {
      unit_binary(w, insn->op, to, in[0], in[1]);
    }
  }
}

static bool unit_write_insn(tn_unit_writer *w, int32_t i) {
  const tn_tile_insn *insn = unit_insn(w, i);
  int32_t in[TN_PW_INPUTS] = {0}, to;
  for (int32_t k = 0; k < TN_PW_INPUTS && insn->op != TILE_WIDEN; k++)
    if (insn->in[k] != TN_PW_NONE && (in[k] = unit_value(w, insn, k)) == TN_PW_NONE) return false;
  unit_release(w, i);
  if (insn->op == TN_PW_STORE) {
    unit_narrow(w, insn, in[0]);
    return true;
  }
  if ((to = unit_take(w, insn->out)) == TN_PW_NONE) return false;
  if (insn->op == TILE_WIDEN)
    unit_widen(w, insn, to);
  else
    unit_compute(w, insn, to, in);
  unit_store(w, i, to);
  if (!unit_is_read(w, insn->out, i + 1, w->end)) unit_free(w, insn->out);
  return true;
}

/* ---- the loop ---- */

static const int32_t unit_kept[] = {TN_X86_RBX, TN_X86_RBP, 12, 13, 14, 15};
enum { KEPT = sizeof unit_kept / sizeof unit_kept[0], GROUP = 16 };

/* rdi: the pointers; rsi: how many elements. */
static void unit_write_entry(tn_unit_writer *w) {
  for (int32_t i = 0; i < KEPT; i++) tn_x86_push(&w->x, unit_kept[i]);
  for (int32_t i = w->n_bases; i < w->unit->n_pointers; i++) {
    const tn_x86_operand at = {.kind = TN_X86_MEMORY, .number = TN_X86_RAX, .scale = 0};
    int32_t reg = w->unit->pointer[i].reg, v = unit_take(w, reg);
    tn_x86_load_pointer(&w->x, TN_X86_RAX, i);
    unit_two(w, LOAD, v, 0, at);
  }
  for (int32_t i = 0; i < w->n_bases; i++) tn_x86_load_pointer(&w->x, unit_base[i], i);
  tn_x86_start_count(&w->x);
}

static void unit_write_exit(tn_unit_writer *w) {
  for (int32_t i = KEPT; i-- > 0;) tn_x86_pop(&w->x, unit_kept[i]);
  tn_x86_return(&w->x);
}

static void unit_start(tn_unit_writer *w, int32_t first, int32_t end, tn_tile_unit *unit) {
  *unit = (tn_tile_unit){.first = first, .end = end};
  w->unit = unit;
  w->first = first;
  w->end = end;
  w->n_narrow = w->n_bases = 0;
  for (int32_t i = 0; i < TN_PW_REGISTERS; i++) w->held[i] = TN_PW_NONE;
  for (int32_t i = 0; i < UNIT_VALUES; i++) w->owner[i] = TN_PW_NONE;
}

int32_t tn_unit_write(tn_unit_writer *w, int32_t first, int32_t end, tn_tile_unit *unit) {
  unit_start(w, first, end, unit);
  for (int32_t i = first; i < end; i++)
    if (!unit_point_insn(w, i)) return i;
  unit_write_entry(w);
  size_t start = w->x.n;
  for (int32_t i = first; i < end; i++)
    if (!unit_write_insn(w, i)) return i;
  tn_x86_repeat(&w->x, start, GROUP);
  unit_write_exit(w);
  return end;
}
