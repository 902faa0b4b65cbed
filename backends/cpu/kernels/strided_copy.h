/* backends/cpu/kernels/strided_copy.h: copies between arrays whose dimensions lie at any strides: what
 * transpose, slice, pad and concat have in common. Bits are moved, so only the size of elements counts. */
#ifndef TN_BACKENDS_CPU_KERNELS_STRIDED_COPY_H
#define TN_BACKENDS_CPU_KERNELS_STRIDED_COPY_H

#include "tenon/plugin/kernel.h"

typedef struct tn_strided {
  size_t size;               /* of an element: 1, 2, 4 or 8 */
  int32_t rank;              /* at least 1; the last dimension is the innermost of the result */
  int64_t dims[TN_MAX_RANK]; /* merged where neighbours lie one after the other on both sides */
  int64_t to[TN_MAX_RANK], from[TN_MAX_RANK]; /* strides in elements */
  int32_t across; /* the dimension along which `from` has stride 1, if a transposed
                   * copy is called for; else -1 */
  int64_t outer, pieces, pieces_across, tasks_per_chunk, chunks;
} tn_strided;

/* Plans a copy of `rank` dimensions, outermost of the result first. */
tn_strided tn_strided_plan(size_t size, int32_t rank, const int64_t *dims, const int64_t *to,
                           const int64_t *from);
/* Runs it on the launch's team. */
void tn_strided_copy(tn_launch *l, const tn_strided *plan, void *to, const void *from);

/* memcpy and memset on the launch's team. */
void tn_cpu_copy_bytes(tn_launch *l, void *to, const void *from, size_t bytes);
void tn_cpu_zero_bytes(tn_launch *l, void *to, size_t bytes);

/* Row-major strides in elements. */
void tn_cpu_strides(int32_t rank, const int64_t *dims, int64_t *strides);

#endif
