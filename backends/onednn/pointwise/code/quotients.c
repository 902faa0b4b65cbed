/* Quotients x / c by a value c that many elements share, made by products: with the bits of the processor's
 * division, which takes 16 cycles for a vector of AVX-512 where a product takes half of one.
 *
 * q = x r + x s for 1 / c = r + s is one of the two numbers beside the quotient, so that q + (x - q c) r is
 * the quotient rounded to nearest (Markstein, "Computation of elementary functions on the IBM RISC
 * System/6000 processor", IBM Journal 1990). The products fuse with the sums. Vectors with a lane outside a
 * range in which nothing is subnormal or overflows are divided. */
#include "backends/onednn/pointwise/code/unit.h"

UNIT_OP(MOVE, 1, P_NONE, LONGEST, 0x28, false);
UNIT_OP(MUL, 1, P_NONE, LONGEST, 0x59, false);
UNIT_OP(DIV, 1, P_NONE, LONGEST, 0x5e, false);
UNIT_OP(ADD_I, 1, P_66, LONGEST, 0xfe, false);
UNIT_OP(ABOVE, 3, P_66, LONGEST, 0x1f, true);        /* compares i32 into a mask */
UNIT_OP(ADD_PRODUCT, 2, P_66, LONGEST, 0xb8, false); /* to += from * y */
UNIT_OP(SUB_PRODUCT, 2, P_66, LONGEST, 0xbc, false); /* to -= from * y */

enum { GREATER = 6 };

/* Jumps where each lane of x is within the range of a divisor's row `most`. */
static size_t quotient_jump_within(tn_unit_writer *w, int32_t x, tn_x86_operand most) {
  const int32_t place = tn_unit_spare(w, 2), mask = tn_unit_mask(w, 1);
  tn_unit_shift(w, LEFT, place, x, 1); /* without the sign */
  tn_unit_two(w, ADD_I, place, place, tn_unit_constant(TN_X86_QUOTIENTS_FROM));
  tn_unit_with(w, ABOVE, mask, place, most, GREATER);
  return tn_x86_jump_unless(&w->x, mask);
}

/* The number of the unit's divisor in a register; TN_PW_NONE: it has too many. */
static int32_t quotient_divisor(tn_unit_writer *w, int32_t reg) {
  tn_tile_unit *u = w->unit;
  for (int32_t i = 0; i < u->n_divisors; i++)
    if (u->divisor[i] == reg) return i;
  if (u->n_divisors == TILE_CODE_DIVISORS) return TN_PW_NONE;
  u->divisor[u->n_divisors] = reg;
  return u->n_divisors++;
}

static tn_x86_operand quotient_row(int32_t divisor, size_t row) {
  return tn_unit_in_frame(offsetof(tn_tile_frame, divisor) + sizeof(tn_tile_divisor) * (size_t)divisor + row);
}

bool tn_unit_write_quotient(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, int32_t x,
                            tn_x86_operand y) {
  const int32_t q = tn_unit_spare(w, 0), rest = tn_unit_spare(w, 1);
  const int32_t divisor =
      w->target->products && !insn->step[1] ? quotient_divisor(w, insn->in[1]) : TN_PW_NONE;
  if (divisor == TN_PW_NONE) return false;
  const tn_x86_operand high = quotient_row(divisor, offsetof(tn_tile_divisor, high));
  size_t within = quotient_jump_within(w, x, quotient_row(divisor, offsetof(tn_tile_divisor, most)));
  tn_unit_two(w, DIV, to, x, y);
  size_t end = tn_x86_jump(&w->x);
  tn_x86_land(&w->x, within);
  tn_unit_two(w, MUL, q, x, quotient_row(divisor, offsetof(tn_tile_divisor, low)));
  tn_unit_two(w, ADD_PRODUCT, q, x, high);
  tn_unit_two(w, MOVE, rest, 0, tn_unit_register(x));
  tn_unit_two(w, SUB_PRODUCT, rest, q, y);
  tn_unit_two(w, ADD_PRODUCT, q, rest, high);
  tn_unit_two(w, MOVE, to, 0, tn_unit_register(q));
  tn_x86_land(&w->x, end);
  return true;
}
