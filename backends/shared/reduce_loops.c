/* backends/shared/reduce_loops.c: sums, means and extremes of several vectors, element by element. A block of
 * elements is combined with one operand after the other, so that the loops over elements vectorize. The file
 * is compiled once for each instruction set; products do not fuse with sums, so all of them give the same
 * bits. */
#include "backends/shared/reduce_loops.h"

#include "backends/shared/half.h"

enum { REDUCE_BLOCK = 512 }; /* elements: a block stays in the first cache */

#define SUM(a, b) ((a) + (b))
#define MIN(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))
#define MAX(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
#define SAME(x)   (x)

#define COMBINE(T, WIDE, LOAD, STORE, OP)                                                                    \
  for (int64_t i = 0; i < m; i++) {                                                                          \
    WIDE sofar = (WIDE)LOAD(block[i]), next = (WIDE)LOAD(with[i]);                                           \
    block[i] = (T)STORE((WIDE)OP(sofar, next));                                                              \
  }

/* Of floats only. */
#define DIVIDE(T, WIDE, LOAD, STORE)                                                                         \
  for (int64_t i = 0; i < m; i++) block[i] = (T)STORE((WIDE)((WIDE)LOAD(block[i]) / (WIDE)n));

/* `to` is written when all operands of the block have been read, since it may be one of them. ADD is the type
 * in which sums are made, COMPARE that of extremes. */
#define REDUCE(name, T, ADD, COMPARE, LOAD, STORE)                                                           \
  static void reduce_combine_##name(int32_t reduction, T *restrict block, const T *restrict with,            \
                                    int64_t m) {                                                             \
    if (reduction == TN_REDUCTION_SUM || reduction == TN_REDUCTION_MEAN) {                                   \
      COMBINE(T, ADD, LOAD, STORE, SUM)                                                                      \
    } else if (reduction == TN_REDUCTION_MIN) {                                                              \
      COMBINE(T, COMPARE, LOAD, STORE, MIN)                                                                  \
    } else {                                                                                                 \
      COMBINE(T, COMPARE, LOAD, STORE, MAX)                                                                  \
    }                                                                                                        \
  }                                                                                                          \
  static void reduce_##name(int32_t reduction, int32_t n, const void *const *from, void *to,                 \
                            int64_t count) {                                                                 \
    T block[REDUCE_BLOCK];                                                                                   \
    for (int64_t at = 0; at < count; at += REDUCE_BLOCK) {                                                   \
      int64_t m = count - at < REDUCE_BLOCK ? count - at : REDUCE_BLOCK;                                     \
      memcpy(block, (const T *)from[0] + at, (size_t)m * sizeof(T));                                         \
      for (int32_t r = 1; r < n; r++) reduce_combine_##name(reduction, block, (const T *)from[r] + at, m);   \
      if (reduction == TN_REDUCTION_MEAN) DIVIDE(T, ADD, LOAD, STORE)                                        \
      memcpy((T *)to + at, block, (size_t)m * sizeof(T));                                                    \
    }                                                                                                        \
  }

/* Sums of integers wrap; C defines that for unsigned integers only. */
REDUCE(u8, uint8_t, uint8_t, uint8_t, SAME, SAME)
REDUCE(i8, int8_t, uint8_t, int8_t, SAME, SAME)
REDUCE(i32, int32_t, uint32_t, int32_t, SAME, SAME)
REDUCE(i64, int64_t, uint64_t, int64_t, SAME, SAME)
REDUCE(f16, uint16_t, float, float, tn_f32_of_f16, tn_f16_of_f32)
REDUCE(bf16, uint16_t, float, float, tn_f32_of_bf16, tn_bf16_of_f32)
REDUCE(f32, float, float, float, SAME, SAME)
REDUCE(f64, double, double, double, SAME, SAME)

#define REDUCE_TABLE(isa)  REDUCE_TABLE_(isa)
#define REDUCE_TABLE_(isa) tn_reduce_loops_##isa

tn_reduce_loop *const REDUCE_TABLE(TN_REDUCE_ISA)[TN_DTYPES] = {
    [TN_U8] = reduce_u8,   [TN_I8] = reduce_i8,     [TN_I32] = reduce_i32, [TN_I64] = reduce_i64,
    [TN_F16] = reduce_f16, [TN_BF16] = reduce_bf16, [TN_F32] = reduce_f32, [TN_F64] = reduce_f64};
