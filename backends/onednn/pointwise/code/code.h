/* backends/onednn/pointwise/code/code.h: machine code for instructions that follow each other, over lanes of
 * four bytes and of one, on processors with AVX2 or AVX-512. A value between two of them stays in the
 * processor's registers, so a tile costs a load for each operand, a store for each result, and the
 * arithmetic.
 *
 * Code stands beside the program, which stays whole: it does the groups of 16 elements of a tile, and the
 * instructions do the others. Tests compare the code with the instructions. The instructions do everything on
 * other processors, where the system grants no executable memory, and with option `code = off`. */
#pragma once

#include "backends/onednn/pointwise/program.h"

enum {
  TILE_CODE_NARROW = 64,
  TILE_CODE_POINTERS = 12 + TILE_CODE_NARROW,
  TILE_CODE_SPILLS = 32,
  TILE_CODE_DIVISORS = 4
};

/* Where an element comes from or goes to: a register of the program, or a result (the register is
 * TN_PW_NONE).
 */
typedef struct tn_tile_pointer {
  int32_t reg, result, size; /* of an element; 0: narrow */
} tn_tile_pointer;

/* For a narrow value c by which the unit divides (quotients.c): 1 / c = high + low, and the place of
 * the greatest dividend to which that applies. */
typedef struct tn_tile_divisor {
  float high[16], low[16];
  int32_t most[16];
} tn_tile_divisor;

/* The memory of one run of a unit. Code keeps here what registers do not hold: the lanes of narrow values,
 * and values that wait for their next use. */
typedef struct tn_tile_frame {
  void *pointer[TILE_CODE_POINTERS];
  _Alignas(64) float narrow[TILE_CODE_NARROW][16];
  float spilled[TILE_CODE_SPILLS][16];
  tn_tile_divisor divisor[TILE_CODE_DIVISORS];
} tn_tile_frame;

/* The instructions from `first` to `end` - 1. */
typedef struct tn_tile_unit {
  void (*run)(tn_tile_frame *frame, int64_t elements);
  /* The same with f32 results that are written past the caches, whose pointers are multiples of 64 bytes.
   * NULL where the unit has no such form. */
  void (*run_past_caches)(tn_tile_frame *frame, int64_t elements);
  int32_t first, end, n_pointers, n_divisors;
  int32_t divisor[TILE_CODE_DIVISORS]; /* registers */
  tn_tile_pointer pointer[TILE_CODE_POINTERS];
} tn_tile_unit;

typedef struct tn_tile_code {
  void *memory;
  size_t bytes;
  int32_t n_units;
  tn_tile_unit unit[];
} tn_tile_code;

/* The code for an instruction set (TN_ISA_...) is the caller's (tn_tile_code_delete). It is NULL where the
 * program has no such instructions, the set is too small, or the system grants no memory that may be
 * executed. TN_ENOMEM: the host has no memory. */
tn_status tn_tile_code_new(const void *handle, const tn_tile_program *program, int32_t isa,
                           tn_tile_code **code);
void tn_tile_code_delete(const void *handle, tn_tile_code *code);
/* Whether the first unit is all that is done for an element, and reads and writes nothing but operands and
 * results: then it needs no tiles. */
bool tn_tile_code_is_all(const tn_tile_program *program, const tn_tile_code *code);
/* Runs a unit over n elements. */
void tn_tile_code_run(const tn_tile_unit *unit, const tn_tile_run *run, int64_t n);
/* Behind results that were written past the caches: other threads see them from here on. */
void tn_tile_code_fence(void);
