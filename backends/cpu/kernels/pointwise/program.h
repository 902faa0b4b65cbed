/* backends/cpu/kernels/pointwise/program.h: how the instructions of a region (backends/shared/pointwise/ir.h)
 * are run.
 *
 * The iteration space is the dims of the region's results, walked in row-major order in tiles of at most
 * TN_TILE elements. A program is a straight line of instructions, each over a whole tile: loads (which
 * broadcast), arithmetic between registers, stores. Registers are pieces of one buffer on the stack of the
 * thread that runs a chunk, or the memory of an operand or result itself where that lies as the tile does.
 * Values that are the same everywhere are computed once per chunk, in the prologue. */
#pragma once

#include "backends/cpu/kernels/common/lane.h"
#include "backends/shared/pointwise/program.h"

enum {
  TN_CPU_PW_CHUNK = 16384,     /* elements per chunk; a multiple of every tile */
  TN_CPU_PW_BUFFER = 32 << 10, /* bytes for registers */
  TN_CPU_PW_LEAST_TILE = 64
};

/* Compiles a match; the program is the caller's (tn_delete). TN_EUNSUPPORTED comes with the reason. Its
 * instructions are tn_pw_insn whose values are registers. (compile.c) */
tn_status tn_cpu_pw_compile(const void *handle, const tn_match *match, tn_pw_program **program);

/* One tile of a program that is running. */
typedef struct tn_cpu_pw_tile {
  const tn_pw_program *program;
  const tn_launch *launch;
  void **reg;
  int64_t at, n; /* elements at .. at + n - 1 of the iteration space */
} tn_cpu_pw_tile;

/* Instructions between registers. (compute.c) */
void tn_cpu_pw_compute(const tn_pw_insn *insn, void *out, void *const *in, int64_t n);
/* Instructions from load on. (access.c) */
void tn_cpu_pw_access(const tn_pw_insn *insn, const tn_cpu_pw_tile *tile);
