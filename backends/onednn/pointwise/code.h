/* backends/onednn/pointwise/code.h: machine code for instructions over floats that follow each other, on
 * processors with AVX-512. A value between two of them stays in the processor's registers, so a tile costs a
 * load for each operand, a store for each result, and the arithmetic.
 *
 * Code stands beside the program, which stays whole: it does the groups of 16 elements of a tile, and the
 * instructions do the others. Tests compare the code with the instructions. The instructions do everything on
 * other processors, where the system grants no executable memory, and with option `code = off`. */
#pragma once

#include "backends/onednn/pointwise/program.h"

enum { TILE_CODE_POINTERS = 12 + 14 };

/* Where an element comes from or goes to: a register of the program, or a result (the register is
 * TN_PW_NONE).
 */
typedef struct tn_tile_pointer {
  int32_t reg, result, size; /* of an element; 0: narrow */
} tn_tile_pointer;

/* The instructions from `first` to `end` - 1. */
typedef struct tn_tile_unit {
  void (*run)(void *const *pointers, int64_t elements);
  int32_t first, end, n_pointers;
  tn_tile_pointer pointer[TILE_CODE_POINTERS];
} tn_tile_unit;

typedef struct tn_tile_code {
  void *memory;
  size_t bytes;
  int32_t n_units;
  tn_tile_unit unit[];
} tn_tile_code;

/* The code is the caller's (tn_tile_code_delete). It is NULL where the program has no such instructions, or
 * the system grants no memory that may be executed. TN_ENOMEM: the host has no memory. */
tn_status tn_tile_code_new(const void *handle, const tn_tile_program *program, tn_tile_code **code);
void tn_tile_code_delete(const void *handle, tn_tile_code *code);
/* Runs a unit over n elements of a tile. */
void tn_tile_code_run(const tn_tile_unit *unit, const tn_tile_run *run, int64_t n);
