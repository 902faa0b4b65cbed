/* backends/cpu/kernels/common/strided_copy.h: copies between arrays with any strides, for transpose, slice,
 * pad, concat, pack and reorder. A copy moves bits, so it depends on the size of an element, not on its type.
 */
#ifndef TN_BACKENDS_CPU_KERNELS_COMMON_STRIDED_COPY_H
#define TN_BACKENDS_CPU_KERNELS_COMMON_STRIDED_COPY_H

#include "tenon/plugin/kernel.h"

typedef struct tn_strided {
  size_t size;               /* of an element: 1, 2, 4 or 8 */
  int32_t rank;              /* at least 1; the last dimension is the innermost of the result */
  int64_t dims[TN_MAX_RANK]; /* adjacent dimensions are merged where both sides allow it */
  int64_t to[TN_MAX_RANK], from[TN_MAX_RANK]; /* strides in elements */
  int32_t across; /* transposed copy: the dimension along which `from` has stride 1; else -1 */
  int64_t outer, pieces, pieces_across, tasks_per_chunk, chunks;
} tn_strided;

/* Describes a copy of `rank` dimensions, the outermost of the result first. */
tn_strided tn_strided_make(size_t size, int32_t rank, const int64_t *dims, const int64_t *to,
                           const int64_t *from);
/* Runs the copy on the launch's team. */
void tn_strided_copy(tn_launch *l, const tn_strided *copy, void *to, const void *from);

/* memcpy and memset on the launch's team. */
void tn_cpu_copy_bytes(tn_launch *l, void *to, const void *from, size_t bytes);
void tn_cpu_zero_bytes(tn_launch *l, void *to, size_t bytes);

/* Row-major strides in elements. */
void tn_cpu_strides(int32_t rank, const int64_t *dims, int64_t *strides);

#endif
