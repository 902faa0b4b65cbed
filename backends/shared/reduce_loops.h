/* backends/shared/reduce_loops.h: the loops of reduce.c, for each instruction set that the build has. */
#pragma once

#include "tenon/base.h"

/* tn_reduce for one dtype; NULL where it cannot be reduced. */
typedef void tn_reduce_loop(int32_t reduction, int32_t n, const void *const *from, void *to, int64_t count);
extern tn_reduce_loop *const tn_reduce_loops_plain[TN_DTYPES], *const tn_reduce_loops_avx2[TN_DTYPES];
