/* backends/onednn/own/pointwise.h: the program that a region of pointwise ops becomes.
 *
 * The region's elements are walked in the order in which its results lie in memory, in tiles of some hundred
 * that never leave a *segment*: a stretch of memory over which every operand that is repeated to the
 * region's dimensions either follows the elements, or stays at one value, or goes round in one block of
 * channels. A program is a straight line of instructions between registers, each a loop over a tile.
 *
 * A register holds one lane per element (wide), or 16 lanes that all groups of 16 elements share (narrow):
 * one value, or the values of a block of channels. Instructions whose operands do not change from tile to
 * tile run when a chunk begins or when a segment does: what a region computes per channel costs nothing
 * per element. A wide register is a piece of a buffer that stays in the first cache, or the memory of an
 * operand or result itself. */
#ifndef TN_BACKENDS_ONEDNN_OWN_POINTWISE_H
#define TN_BACKENDS_ONEDNN_OWN_POINTWISE_H

#include <stdbool.h>

#include "backends/onednn/simd/loops.h"
#include "tenon/plugin/kernel.h"

/* ---- lanes: what registers hold; f16 and bf16 are computed as f32, bool is a byte ---------------- */

enum { TN_TILE_U8, TN_TILE_I32, TN_TILE_I64, TN_TILE_F32, TN_TILE_F64, TN_TILE_LANES };

static inline int32_t tn_tile_lane(int32_t dtype) {
  switch (dtype) {
  case TN_F64: return TN_TILE_F64;
  case TN_I64: return TN_TILE_I64;
  case TN_I32: return TN_TILE_I32;
  case TN_BOOL:
  case TN_U8: return TN_TILE_U8;
  default: return TN_TILE_F32;
  }
}
static inline size_t tn_tile_lane_size(int32_t lane) {
  static const uint8_t size[TN_TILE_LANES] = {1, 4, 8, 4, 8};
  return size[lane];
}
static inline bool tn_tile_is_half(int32_t dtype) { return dtype == TN_F16 || dtype == TN_BF16; }

/* ---- instructions ------------------------------------------------------------------------------- */

enum {
  TILE_NEG,
  TILE_ABS,
  TILE_SIGN,
  TILE_SQRT,
  TILE_RSQRT,
  TILE_RECIPROCAL,
  TILE_FLOOR,
  TILE_EXP,
  TILE_LOG,
  TILE_TANH,
  TILE_SIGMOID,
  TILE_ERF,
  TILE_SIN,
  TILE_COS,
  TILE_POW,
  TILE_ADD, /* ADD to MINIMUM can be the first of a pair, and the second */
  TILE_SUB,
  TILE_MUL,
  TILE_MAXIMUM,
  TILE_MINIMUM,
  TILE_SUB_FROM, /* y - x; only as the second of a pair */
  TILE_DIV,
  TILE_EQ,
  TILE_NE,
  TILE_LT,
  TILE_LE,
  TILE_GT,
  TILE_GE,
  TILE_IS_FINITE,
  TILE_AND,
  TILE_OR,
  TILE_NOT,
  TILE_WHERE,
  TILE_CAST,
  TILE_ROUND, /* to f16 or bf16 and back */
  TILE_FILL,
  TILE_OPS, /* what stands before is the same for every place in the region */
  TILE_SPLAT = TILE_OPS,
  TILE_PERIOD,
  TILE_WIDEN,
  TILE_GATHER,
  TILE_CYCLE,
  TILE_INDEX,
  TILE_SPREAD,
  TILE_UNIFORM,
  TILE_NORMAL,
  TILE_STORE,
  TILE_PAIR, /* (x op y) op2 z */
  TILE_PICK  /* x op y ? z : w */
};
enum { TILE_PAIR_FIRST = 5, TILE_PAIR_SECOND = 6 }; /* ops from TILE_ADD on */

enum { TILE_NONE = -1, TILE_INPUTS = 4 };

/* How often an instruction runs: once per chunk, per segment, per tile. */
enum { TILE_PER_CHUNK, TILE_PER_SEGMENT, TILE_PER_TILE, TILE_RATES };

typedef struct tn_tile_insn tn_tile_insn;
typedef struct tn_tile_run tn_tile_run;
/* n lanes; 16 where all registers are narrow. */
typedef void (*tn_tile_fn)(const tn_tile_insn *insn, const tn_tile_run *run, int64_t n);

struct tn_tile_insn {
  tn_tile_fn fn;
  const struct tn_tile_random_loops *random;
  void (*widen)(const void *from, float *to, int64_t n); /* of loads from halves */
  uint8_t op, op2;                                       /* TILE_... */
  uint8_t lane;                                          /* of the operands; of the result if none */
  uint8_t dtype;                                         /* cast, round: wanted; memory: of the elements */
  uint8_t rate;
  uint8_t wide;              /* the result is */
  uint8_t step[TILE_INPUTS]; /* 1: that register is wide */
  int32_t out, in[TILE_INPUTS];
  int32_t view, map; /* memory: which operand or result, and its walk; index and random: of the indices */
  int32_t table, n_table; /* spread: n starts, then n indices */
  int64_t count;          /* random: elements of a block */
  double a, b;            /* random: as its attributes */
  uint64_t bits;          /* fill: the lane; random: the stream */
};

/* ---- where elements are ------------------------------------------------------------------------- */

/* An axis of the walk through memory: `extent` positions, one step of which is `scale` elements along
 * dimension `dim`. A dimension that is cut into blocks has two. */
typedef struct tn_tile_axis {
  int32_t dim;
  int64_t extent, scale;
} tn_tile_axis;

enum { TILE_AXES = TN_MAX_RANK + 1 };

typedef struct tn_tile_space {
  tn_type type;          /* of the region */
  int32_t n_axes, first; /* the segment is axes `first` and on */
  int64_t count, segment;
  tn_tile_axis axis[TILE_AXES];
} tn_tile_space;

/* A walk through a tensor in step with the region's: `strides` elements for a step along each of `dims`. */
typedef struct tn_tile_map {
  int32_t rank; /* at least 1 */
  int64_t dims[TILE_AXES], strides[TILE_AXES];
} tn_tile_map;

/* A place on such a walk. */
typedef struct tn_tile_walk {
  const tn_tile_map *map;
  int64_t at[TILE_AXES]; /* coordinates */
  int64_t offset;        /* of the element there */
} tn_tile_walk;

/* How an operand goes along the elements of a segment. */
enum { TILE_FOLLOWS, TILE_STAYS, TILE_GOES_ROUND, TILE_WANDERS };

bool tn_tile_broadcasts(const tn_type *type, const tn_type *space);
/* The layout may have one block, of 8 or 16 along dimension 1, that divides it; else false. */
bool tn_tile_space_of(const tn_type *type, const tn_layout *layout, tn_tile_space *space);
/* Every position of storage, whatever lies there. */
tn_tile_space tn_tile_space_flat(const tn_type *type, int64_t count);
/* Chooses the segment for the operands `types` (n of them, NULL entries skipped). */
void tn_tile_space_cut(tn_tile_space *space, const tn_type *const *types, int32_t n);
/* The walk of a tensor whose dimensions have these steps, over the axes from .. to - 1. */
tn_tile_map tn_tile_map_of(const tn_tile_space *space, const tn_type *type, const int64_t *steps,
                           int32_t from, int32_t to);
void tn_tile_steps(const tn_type *type, int64_t *steps); /* row-major */
int32_t tn_tile_manner(const tn_tile_space *space, const tn_type *type, int32_t first);
/* Elements of an operand that the whole region goes through again and again; 0: it does not. */
int64_t tn_tile_cycle(const tn_tile_space *space, const tn_type *type);
int64_t tn_tile_offset(const tn_tile_map *map, int64_t position);
tn_tile_walk tn_tile_walk_to(const tn_tile_map *map, int64_t position);
/* How many elements follow with the stride of the innermost dimension, at most n. */
int64_t tn_tile_walk_run(const tn_tile_walk *w, int64_t n);
/* Goes n elements on, n being at most the last tn_tile_walk_run. */
void tn_tile_walk_on(tn_tile_walk *w, int64_t n);
/* Index of n elements from position `at` on. */
void tn_tile_indices(const tn_tile_map *map, int64_t at, int64_t n, int64_t *to);

/* ---- the program -------------------------------------------------------------------------------- */

/* A register that is the memory of an operand or result; `map` over the segments where it is an operand that
 * is repeated, else TILE_NONE. */
typedef struct tn_tile_binding {
  int32_t reg, view; /* operands first, then results */
  int32_t map;
  size_t size; /* of an element */
} tn_tile_binding;

enum {
  TILE_MOST = 512, /* elements of a tile */
  TILE_LEAST = 64,
  TILE_LEAST_SEGMENT = 257, /* shorter ones are not worth their own tiles */
  TILE_BUFFER = 24 << 10,   /* bytes for registers, so that they stay in the first cache */
  TILE_REGISTERS = 256
};

/* One block of memory; the arrays lie behind the struct. */
typedef struct tn_tile_program {
  size_t bytes; /* of the block */
  int64_t count, segment, tile, chunk, n_chunks;
  double cost_s;           /* on one thread */
  bool streams;            /* operands and results come from beyond the second cache */
  int32_t end[TILE_RATES]; /* instructions of each rate end here */
  int32_t n_slots, n_bindings, n_inplace, n_maps;
  tn_tile_insn *insns;
  tn_tile_map *maps;
  int64_t *tables;
  uint32_t *slots; /* where each register begins in the buffer */
  tn_tile_binding *bindings;
  int32_t (*inplace)[2];
} tn_tile_program;

struct tn_tile_run {
  const tn_tile_program *program;
  const tn_launch *launch;
  int64_t at, segment; /* position of the tile, and number of its segment */
  void *reg[TILE_REGISTERS];
};

/* Compiles a match whose results lie as the layout says (NULL: row-major) for an instruction set. The program
 * is the caller's (tn_delete). TN_EUNSUPPORTED names what cannot be done. (pointwise_compile.c) */
tn_status tn_tile_compile(const void *handle, const tn_match *match, const tn_layout *layout, int32_t isa,
                          tn_tile_program **program);
/* Whether any layout will do, since every operand is read where it lies or has one value. */
bool tn_tile_takes_any_layout(const tn_match *match);

/* Gives an instruction its loop. false: there is none. (pointwise_loops.c) */
bool tn_tile_resolve(tn_tile_insn *insn, int32_t isa);
/* The loop of an instruction that looks at positions. (pointwise_access.c) */
tn_tile_fn tn_tile_access(int32_t op);

/* ---- loops, per instruction set ----------------------------------------------------------------- */

typedef struct tn_tile_loops {
  tn_tile_fn f32[TILE_OPS];
  tn_tile_fn pair[TILE_PAIR_FIRST][TILE_PAIR_SECOND];
  tn_tile_fn pick[TILE_GE - TILE_EQ + 1];
  tn_tile_fn round[2], narrow[2], load[2]; /* bf16, f16 */
  void (*widen[2])(const void *from, float *to, int64_t n);
} tn_tile_loops;

typedef struct tn_tile_math_loops {
  tn_tile_fn f32[TILE_OPS];
} tn_tile_math_loops;

typedef struct tn_tile_lane_loops {
  tn_tile_fn op[TN_TILE_LANES][TILE_OPS]; /* f32: where, fill, casts alone */
  tn_tile_fn cast[TN_TILE_LANES][TN_DTYPES];
  tn_tile_fn copy[TN_TILE_LANES];
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

#endif
