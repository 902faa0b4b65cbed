/* backends/onednn/pointwise/program.h: the program that a region of pointwise ops
 * (backends/shared/pointwise/ir.h) becomes.
 *
 * The region's elements are walked in the order in which its results lie in memory, in tiles of some hundred
 * that never leave a *segment*: a stretch of memory over which every operand that is repeated to the
 * region's dimensions either follows the elements, or stays at one value, or goes round in one block of
 * channels, or repeats. A program is a straight line of instructions between registers, each a loop over a
 * tile.
 *
 * A register holds one lane per element (wide), or 16 lanes that all groups of 16 elements share (narrow):
 * one value, or the values of a block of channels. Instructions whose operands do not change from tile to
 * tile run when a chunk begins or when a segment does: values per channel cost nothing per element. A wide
 * register is a piece of a buffer that stays in the first cache, or the memory of an operand or result
 * itself. */
#pragma once

#include <stdbool.h>

#include "backends/onednn/simd/loops.h"
#include "backends/shared/pointwise/program.h"

/* ---- instructions ------------------------------------------------------------------------------- */

/* Besides those of the shared list, without LOAD and AFFINE. */
enum {
  TILE_SPLAT = TN_PW_OPS, /* 16 lanes for a segment: one value */
  TILE_PERIOD,            /* the first `count` elements again and again */
  TILE_WIDEN,             /* from halves in memory */
  TILE_GATHER,
  TILE_CYCLE, /* a whole tile of an operand that repeats within it */
  TILE_PAIR,  /* (x op y) op2 z */
  TILE_PICK   /* x op y ? z : w */
};

/* The ops of a pair: from TN_PW_ADD on, and y - x for the second. */
enum {
  TILE_PAIR_ADD,
  TILE_PAIR_SUB,
  TILE_PAIR_MUL,
  TILE_PAIR_MAXIMUM,
  TILE_PAIR_MINIMUM,
  TILE_PAIR_FIRST,
  TILE_PAIR_SUB_FROM = TILE_PAIR_FIRST,
  TILE_PAIR_SECOND
};

typedef struct tn_tile_insn tn_tile_insn;
typedef struct tn_tile_run tn_tile_run;
/* n lanes; 16 where all registers are narrow. */
typedef void (*tn_tile_fn)(const tn_tile_insn *insn, const tn_tile_run *run, int64_t n);

struct tn_tile_insn {
  tn_tile_fn fn;
  const struct tn_tile_random_loops *random;
  void (*widen)(const void *from, float *to, int64_t n); /* of loads from halves */
  uint8_t op, op2;                                       /* TN_PW_... or TILE_... */
  uint8_t lane;                                          /* of the operands; of the result if none */
  uint8_t dtype;                                         /* cast, round: wanted; memory: of the elements */
  uint8_t wide;                                          /* the result is */
  uint8_t step[TN_PW_INPUTS];                            /* 1: that register is wide */
  int32_t out, in[TN_PW_INPUTS];
  int32_t view, map; /* memory: which operand or result, and its walk; index and random: of the indices */
  int32_t table, n_table; /* spread: n starts, then n indices */
  int64_t count;          /* random: elements of a block */
  double a, b;            /* random: as its attributes */
  uint64_t bits;          /* constant: the lane; random: the stream */
};

/* ---- where elements are ------------------------------------------------------------------------- */

/* How an operand goes along the elements of a segment. */
enum { TILE_FOLLOWS, TILE_STAYS, TILE_GOES_ROUND, TILE_REPEATS, TILE_WANDERS };

/* The layout may have any order of dimensions, or one block, of 8 or 16 along dimension 1, that divides it;
 * else false. */
bool tn_tile_space_of(const tn_type *type, const tn_layout *layout, tn_pw_space *space);
/* Every position of storage, padding included. */
tn_pw_space tn_tile_space_flat(const tn_type *type, const tn_layout *layout);
/* Chooses the segment for the operands `types` (n of them, NULL entries skipped): the axes from the returned
 * one on. */
int32_t tn_tile_space_cut(const tn_pw_space *space, const tn_type *const *types, int32_t n);
int32_t tn_tile_manner(const tn_pw_space *space, const tn_type *type, int32_t first);
/* Elements of an operand that the axes from `first` on go through again and again; 0: they do not. */
int64_t tn_tile_cycle(const tn_pw_space *space, const tn_type *type, int32_t first);

/* ---- the program -------------------------------------------------------------------------------- */

enum {
  TILE_MOST = 512, /* elements of a tile */
  TILE_LEAST = 64,
  TILE_LEAST_SEGMENT = 257, /* shorter ones are not worth their own tiles */
  TILE_BUFFER = 24 << 10    /* bytes for registers, so that they stay in the first cache */
};

typedef struct tn_tile_program {
  tn_pw_program base; /* its instructions are tn_tile_insn; rates: once per chunk, per segment, per tile */
  int64_t segment, chunk, n_chunks;
  double work_s; /* of the instructions on a thread as tn_thread_speed defines it (shared/cost.h) */
  bool streams;  /* operands and results come from memory, beyond the caches */
} tn_tile_program;

struct tn_tile_run {
  const tn_tile_program *program;
  const tn_launch *launch;
  int64_t at, segment; /* position of the tile, and number of its segment */
  bool past_caches;    /* code may write results past the caches: no operand is where a result is */
  void *reg[TN_PW_REGISTERS];
};

/* Compiles a match whose results lie as the layout says (NULL: row-major) for an instruction set. The program
 * is the caller's (tn_delete). TN_EUNSUPPORTED comes with the reason. (compile.c) */
tn_status tn_tile_compile(const void *handle, const tn_match *match, const tn_layout *layout, int32_t isa,
                          tn_tile_program **program);
/* Whether any layout will do, since every operand is read where it lies or has one value. */
bool tn_tile_takes_any_layout(const tn_match *match);

/* Gives an instruction its loop. false: it has no loop. (resolve.c) */
bool tn_tile_resolve(tn_tile_insn *insn, int32_t isa);
/* The loop of an instruction that looks at positions. (access.c) */
tn_tile_fn tn_tile_access(int32_t op);

/* ---- loops, per instruction set ----------------------------------------------------------------- */

typedef struct tn_tile_loops {
  tn_tile_fn f32[TN_PW_COMPUTED];
  tn_tile_fn pair[TILE_PAIR_FIRST][TILE_PAIR_SECOND];
  tn_tile_fn pick[TN_PW_GE - TN_PW_EQ + 1];
  tn_tile_fn round[2], narrow[2], load[2]; /* bf16, f16 */
  void (*widen[2])(const void *from, float *to, int64_t n);
} tn_tile_loops;

typedef struct tn_tile_math_loops {
  tn_tile_fn f32[TN_PW_COMPUTED];
} tn_tile_math_loops;

typedef struct tn_tile_lane_loops {
  tn_tile_fn op[TN_LANES][TN_PW_COMPUTED]; /* f32: where, fill, casts alone */
  tn_tile_fn cast[TN_LANES][TN_DTYPES];
  tn_tile_fn copy[TN_LANES];
} tn_tile_lane_loops;

typedef struct tn_tile_random_loops {
  /* Numbers for n words that follow each other from `first` on. */
  void (*run)(const tn_tile_insn *insn, uint64_t iteration, int64_t first, int64_t n, void *to);
  /* Numbers for n indices. */
  void (*scattered)(const tn_tile_insn *insn, uint64_t iteration, const int64_t *index, int64_t n, void *to);
} tn_tile_random_loops;

TN_LOOPS_DECLARE(tn_tile_loops, tn_tile_f32);
TN_LOOPS_DECLARE(tn_tile_math_loops, tn_tile_math);
TN_LOOPS_DECLARE(tn_tile_lane_loops, tn_tile_lanes);
TN_LOOPS_DECLARE(tn_tile_random_loops, tn_tile_random);
