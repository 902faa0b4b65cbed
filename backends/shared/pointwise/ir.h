/* backends/shared/pointwise/ir.h: a region of pointwise ops as a list of typed instructions, for back ends
 * that interpret it over tiles or print it in another language.
 *
 *   build     from a match to instructions, or TN_EUNSUPPORTED with the reason (build.c)
 *   lower     the back end replaces instructions by its own, and operands by their memory
 *   schedule  order by how often instructions run, liveness (schedule.c)
 *   place     in-place pairs, and stores of the results (in_place.c)
 *   assign    registers for back ends with tiles (program.h)
 *
 * The list is in SSA form: instruction `out` defines a value once, `in` are values that stand before it. A
 * value is computed in its lane; a value of f16 or bf16 is an f32 that TN_PW_ROUND has rounded, after every
 * op that is not exact, so that a number does not depend on what shares a region with it. A printer walks the
 * list after `place`: the type of value v is values[v].lane; TN_PW_LOAD reads operand `view` at the element
 * that maps[map] gives for the position, TN_PW_INDEX is that number itself, TN_PW_STORE writes result `view`
 * at the position. Instructions whose value has rate TN_PW_ONCE are the same for all positions. */
#pragma once

#include "backends/shared/lane.h"
#include "backends/shared/pointwise/space.h"
#include "tenon/plugin/functions.h"
#include "tenon/plugin/kernel.h"

/* Up to TN_PW_CONSTANT instructions compute values from values, all in one lane. Back ends have tables of
 * loops by op: ADD to MINIMUM and EQ to GE are consecutive for them. TN_PW_FN_op is a function of C's library
 * (tenon/plugin/functions.h). */
enum {
  TN_PW_NEG,
  TN_PW_ABS,
  TN_PW_SIGN,
  TN_PW_SQRT,
  TN_PW_RSQRT,
  TN_PW_RECIPROCAL,
  TN_PW_FLOOR,
  TN_PW_EXP,
  TN_PW_LOG,
  TN_PW_TANH,
  TN_PW_SIGMOID,
  TN_PW_ERF,
  TN_PW_ADD,
  TN_PW_SUB,
  TN_PW_MUL,
  TN_PW_MAXIMUM,
  TN_PW_MINIMUM,
  TN_PW_DIV,
  TN_PW_AFFINE, /* x * a + b, rounded twice */
  TN_PW_EQ,
  TN_PW_NE,
  TN_PW_LT,
  TN_PW_LE,
  TN_PW_GT,
  TN_PW_GE,
  TN_PW_IS_FINITE,
  TN_PW_AND,
  TN_PW_OR,
  TN_PW_XOR, /* AND, OR, XOR: of the bits of whole numbers */
  TN_PW_NOT, /* of truths */
  TN_PW_SHIFT_LEFT,
  TN_PW_SHIFT_RIGHT,
  TN_PW_FMOD, /* x - trunc(x / y) y, and 0 for whole numbers where y is 0 */
#define TN_PW_ROW(op, ...) TN_PW_FN_##op,
  TN_FUNCTIONS_OF_ONE(TN_PW_ROW) TN_FUNCTIONS_OF_TWO(TN_PW_ROW)
#undef TN_PW_ROW
      TN_PW_WHERE, /* in[0] ? in[1] : in[2] */
  TN_PW_CAST,      /* from `lane` to `dtype`; floats go to whole numbers toward zero and saturate, NaN to 0 */
  TN_PW_ROUND,     /* f32 to `dtype`, f16 or bf16, and back */
  TN_PW_CONSTANT,  /* `bits` */
  TN_PW_COMPUTED,
  TN_PW_LOAD = TN_PW_COMPUTED, /* operand `view` at maps[map], widened from `dtype` */
  TN_PW_INDEX,                 /* maps[map] of the position, as i64 */
  TN_PW_SPREAD,                /* operand `view` at the range in which the index maps[map] is: `table` */
  TN_PW_UNIFORM, /* in[0]: iteration; in[1]: block or none; the index is maps[map] + block * count */
  TN_PW_NORMAL,
  TN_PW_STORE, /* in[0] to result `view`, narrowed to `dtype` */
  TN_PW_OPS    /* a back end's own ops begin here */
};

/* Whether the instruction is a function of C's library. */
static inline bool tn_pw_is_function(int32_t op) { return op > TN_PW_FMOD && op < TN_PW_WHERE; }

enum { TN_PW_NONE = -1, TN_PW_INPUTS = 4 };

typedef struct tn_pw_insn {
  uint8_t op;
  uint8_t op2;   /* of a back end's own instructions */
  uint8_t lane;  /* of the operands; of the result where the op has no operands */
  uint8_t dtype; /* cast, round: wanted; load, spread, store: of memory */
  int32_t out, in[TN_PW_INPUTS];
  int32_t view;           /* load, spread: which operand; store: which result; else TN_PW_NONE */
  int32_t map;            /* load, index, spread, random; else TN_PW_NONE */
  int32_t table, n_table; /* spread: n starts of ranges, then n numbers of elements, at tables[table] */
  int64_t count;          /* random: elements of a block */
  double a, b;            /* affine: scale, shift; random: as its attributes */
  uint64_t bits;          /* constant: the lane; random: the stream */
} tn_pw_insn;

/* How often a value changes: never, from one segment of the space to the next (a back end's own), with every
 * position. */
enum { TN_PW_ONCE, TN_PW_PER_SEGMENT, TN_PW_PER_ELEMENT, TN_PW_RATES };

enum { TN_PW_LATER = 1 << 30 /* a position behind every instruction */ };

typedef struct tn_pw_value {
  uint8_t lane, rate;
  bool narrow;             /* a back end's own: fewer lanes than positions, which all groups of them share */
  int32_t made, last_use;  /* positions of instructions; TN_PW_LATER: needed when instructions run again */
  int32_t operand, result; /* the value is in the memory of that operand or result; else TN_PW_NONE */
  int32_t map;             /* of such an operand, over segments, or TN_PW_NONE */
  int32_t reg;
} tn_pw_value;

typedef struct tn_pw_region {
  const void *handle;
  const tn_match *match;
  tn_pw_space space;
  bool positions;        /* some value depends on where in the space it is */
  int32_t n_numbers;     /* of the match: its operands, then the results of its nodes */
  const tn_type **types; /* of every number */
  int32_t *of;           /* the value of every number; TN_PW_NONE: not loaded yet */
  tn_pw_insn *insns, *spare;
  tn_pw_value *values;
  tn_pw_map *maps;
  int64_t *tables;
  int32_t (*inplace)[2]; /* {operand, result} */
  int32_t n_insns, n_values, n_maps, n_tables, n_inplace;
  int32_t end[TN_PW_RATES]; /* instructions of each rate end here; stores are the last */
} tn_pw_region;

/* Checks a match and makes its instructions. NULL: the space is row-major. The region is to be dropped in
 * either case. The arrays have room for additions of lowering: three instructions for an affine and one for
 * an operand. */
tn_status tn_pw_build(const void *handle, const tn_match *match, const tn_pw_space *space,
                      tn_pw_region *region);
void tn_pw_drop(tn_pw_region *region);
/* Whether each operand is a single value or as large as the results, so that without positions any storage
 * order will do. */
bool tn_pw_is_elementwise(const tn_match *match);

/* For lowering: an instruction without operands, a new value, and an instruction appended with its value, of
 * the highest rate among its operands. */
tn_pw_insn tn_pw_insn_of(int32_t op, int32_t lane, int32_t dtype);
int32_t tn_pw_new_value(tn_pw_region *r, int32_t lane, int32_t rate);
int32_t tn_pw_append(tn_pw_region *r, tn_pw_insn insn, int32_t lane, int32_t rate);
int32_t tn_pw_constant(tn_pw_region *r, int32_t lane, uint64_t bits);
/* A number as an element of this dtype, in the bits of its lane. */
uint64_t tn_pw_bits_of(double value, int32_t dtype);
/* The value is in the memory of an operand. */
void tn_pw_bind(tn_pw_region *r, int32_t value, int32_t operand, int32_t map);

/* Sorts by rate, and finds how long values live. (schedule.c) */
void tn_pw_schedule(tn_pw_region *region);
void tn_pw_find_uses(tn_pw_region *region);
/* After tn_pw_schedule: places results, with the in-place pairs that are safe. `direct`: an instruction may
 * write a result's memory where it makes the value (tn_pw_value.result), unless only a store at the end
 * allows a pair. Else, as in printed code, every result has a store at the end. (in_place.c) */
void tn_pw_place(tn_pw_region *region, bool direct);
