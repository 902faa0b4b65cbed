/* backends/shared/reduce.c: the loops of reduce_loops.c for this processor. */
#include "backends/shared/reduce.h"

#include "backends/shared/reduce_loops.h"

int32_t tn_can_reduce(int32_t dtype, int32_t reduction) {
  if (reduction < TN_REDUCTION_SUM || reduction > TN_REDUCTION_MEAN) return 0;
  if (reduction == TN_REDUCTION_MEAN && !tn_dtype_is_float(dtype)) return 0;
  return dtype > 0 && dtype < TN_DTYPES && tn_reduce_loops_plain[dtype] != NULL;
}

void tn_reduce(int32_t dtype, int32_t reduction, int32_t n, const void *const *from, void *to,
               int64_t count) {
  tn_reduce_loop *const *loops = tn_reduce_loops_plain;
#ifdef TN_REDUCE_X86
  if (__builtin_cpu_supports("avx2")) loops = tn_reduce_loops_avx2;
#endif
  loops[dtype](reduction, n, from, to, count);
}
