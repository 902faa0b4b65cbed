/* Instructions over whole numbers of four bytes and of one: most are one instruction of the processor. Bytes
 * are compared as lanes of four. */
#include "backends/onednn/pointwise/code/unit.h"

/* Ops of whole numbers that are one instruction: op, lanes, opcode map and code. */
enum {
  OF_I32 = 1 << TN_LANE_I32,
  OF_I8 = 1 << TN_LANE_I8,
  OF_U8 = 1 << TN_LANE_U8,
  OF_BYTES = OF_I8 | OF_U8
};
static const struct {
  uint8_t op, lanes, map, code;
} whole_ops[] = {
    {TN_PW_ADD, OF_I32, 1, 0xfe},           {TN_PW_ADD, OF_BYTES, 1, 0xfc},
    {TN_PW_SUB, OF_I32, 1, 0xfa},           {TN_PW_SUB, OF_BYTES, 1, 0xf8},
    {TN_PW_MUL, OF_I32, 2, 0x40},           {TN_PW_AND, OF_I32 | OF_BYTES, 1, 0xdb},
    {TN_PW_OR, OF_I32 | OF_BYTES, 1, 0xeb}, {TN_PW_XOR, OF_I32 | OF_BYTES, 1, 0xef},
    {TN_PW_MAXIMUM, OF_I32, 2, 0x3d},       {TN_PW_MAXIMUM, OF_I8, 2, 0x3c},
    {TN_PW_MAXIMUM, OF_U8, 1, 0xde},        {TN_PW_MINIMUM, OF_I32, 2, 0x39},
    {TN_PW_MINIMUM, OF_I8, 2, 0x38},        {TN_PW_MINIMUM, OF_U8, 1, 0xda},
    {TN_PW_SHIFT_LEFT, OF_I32, 2, 0x47},    {TN_PW_SHIFT_RIGHT, OF_I32, 2, 0x46},
    {TN_PW_ABS, OF_I32, 2, 0x1e},           {TN_PW_ABS, OF_I8, 2, 0x1c},
};

/* false: the lane's op is not in the table. */
static bool whole_find(int32_t op, int32_t lane, tn_x86_op *packed) {
  for (size_t i = 0; i < sizeof whole_ops / sizeof whole_ops[0]; i++)
    if (whole_ops[i].op == op && (whole_ops[i].lanes >> lane & 1)) {
      *packed =
          (tn_x86_op){whole_ops[i].map, P_66, lane == TN_LANE_I32 ? LONGEST : XMM, whole_ops[i].code, false};
      return true;
    }
  return false;
}

bool tn_unit_has_whole(const tn_tile_insn *insn) {
  tn_x86_op packed;
  if (tn_lane_size(insn->lane) > sizeof(float)) return false;
  switch (insn->op) {
  case TN_PW_NEG:
  case TN_PW_WHERE:
  case TN_PW_STORE: return true;
  case TN_PW_NOT: return insn->lane == TN_LANE_U8;
  default: return tn_unit_is_comparison(insn->op) || whole_find(insn->op, insn->lane, &packed);
  }
}

/* Compares as lanes of four bytes. */
void tn_unit_test_whole(tn_unit_writer *w, const tn_tile_insn *insn, const tn_x86_operand *in) {
  const int32_t x = tn_unit_spare(w, 1), y = tn_unit_spare(w, 2), mask = tn_unit_mask(w, 0);
  if (insn->lane == TN_LANE_I32) {
    tn_unit_compare_whole(w, mask, insn->op, in[0].number, in[1].number);
    return;
  }
  tn_unit_write_lanes(w, insn->lane, x, in[0]);
  tn_unit_write_lanes(w, insn->lane, y, in[1]);
  tn_unit_compare_whole(w, mask, insn->op, x, y);
}

void tn_unit_write_whole(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, const tn_x86_operand *in) {
  const int32_t zero = tn_unit_spare(w, 1), x = in[0].number;
  tn_x86_op packed = {0};
  whole_find(insn->op == TN_PW_NEG ? TN_PW_SUB : insn->op, insn->lane, &packed);
  switch (insn->op) {
  case TN_PW_NOT: tn_unit_not(w, to, x); break;
  case TN_PW_ABS: tn_unit_two(w, packed, to, 0, in[0]); break;
  case TN_PW_NEG:
    tn_unit_clear(w, zero);
    tn_unit_two(w, packed, to, zero, in[0]);
    break;
  default: tn_unit_two(w, packed, to, x, in[1]);
  }
}
