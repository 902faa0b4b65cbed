/* backends/cpu/kernels/common/strided_copy.h: copies between arrays with any strides, for transpose, slice,
 * pad, concat, pack and reorder. A copy moves bits, so it depends on the size of an element, not on its type.
 */
#pragma once

#include "backends/shared/movement.h"

typedef struct tn_strided {
  tn_movement walk;
  size_t size;    /* of an element: 1, 2, 4 or 8 */
  int32_t across; /* transposed copy: the dimension along which `from` has stride 1; else -1 */
  int64_t outer, pieces, pieces_across, tasks_per_chunk, chunks;
} tn_strided;

/* Describes the copy of elements of `size` bytes. */
tn_strided tn_strided_make(size_t size, const tn_movement *walk);
/* Runs the copy on the launch's team. `to` and `from` are the first elements of the arrays. */
void tn_strided_copy(tn_launch *l, const tn_strided *copy, void *to, const void *from);

/* memcpy and memset on the launch's team. */
void tn_cpu_copy_bytes(tn_launch *l, void *to, const void *from, size_t bytes);
void tn_cpu_zero_bytes(tn_launch *l, void *to, size_t bytes);
