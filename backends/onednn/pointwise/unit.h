/* backends/onednn/pointwise/unit.h: the code of one unit (code.h) while it is being written. Private to
 * unit.c and code.c. */
#pragma once

#include "backends/onednn/pointwise/code.h"
#include "backends/onednn/pointwise/x86.h"

/* Vector registers 0 to 28 hold values; the others are for one instruction. */
enum { UNIT_VALUES = 29, UNIT_SPARE = 29, UNIT_MASK = 1, UNIT_MASK_2 = 2, UNIT_NARROW = 14, UNIT_BASES = 12 };

typedef struct tn_unit_writer {
  const tn_tile_program *program;
  tn_x86 x;
  int32_t first, end; /* the instructions */
  int32_t
      held[TN_PW_REGISTERS];  /* the vector register with the value of a register; TN_PW_NONE: none has it */
  int32_t owner[UNIT_VALUES]; /* the register whose value it has; TN_PW_NONE: it is free */
  int32_t n_narrow, n_bases;
  tn_tile_unit *unit;
} tn_unit_writer;

/* Whether there is code for an instruction. */
bool tn_unit_has(const tn_tile_insn *insn);
/* Bytes of an element of operand k. */
int32_t tn_unit_operand_size(const tn_tile_insn *insn, int32_t k);
/* Of the result in its register. */
int32_t tn_unit_result_size(const tn_tile_insn *insn);
/* Appends the code of instructions first .. end - 1 to `x`. Returns `end`, or the instruction that needs more
 * registers than there are: then the code so far does not count. */
int32_t tn_unit_write(tn_unit_writer *w, int32_t first, int32_t end, tn_tile_unit *unit);
