/* backends/shared/reduce.h: the arithmetic of collectives, for communicators of host memory. */
#pragma once

#include "tenon/base.h"

/* to[i] = from[0][i] op from[1][i] op ... from[n - 1][i], in this order. Halves are added in f32 and rounded
 * after every addition, as in a ring whose ranks pass on elements of the type, and a mean once more; sums of
 * integers wrap; the minimum or maximum with a NaN is NaN. `to` may be one of `from`, and overlaps none of
 * them in another way. The pair of dtype and reduction is one of tn_can_reduce, n at least 1. */
void tn_reduce(int32_t dtype, int32_t reduction, int32_t n, const void *const *from, void *to, int64_t count);
int32_t tn_can_reduce(int32_t dtype, int32_t reduction);
