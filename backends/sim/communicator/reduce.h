/* backends/sim/communicator/reduce.h: the arithmetic of collectives. */
#ifndef TN_BACKENDS_SIM_COMMUNICATOR_REDUCE_H
#define TN_BACKENDS_SIM_COMMUNICATOR_REDUCE_H

#include "tenon/plugin/communicator.h"

/* to[i] = from[0][i] op from[1][i] op ..., in this order. Halves are added in f32 and rounded after every
 * addition, and a mean once more; integers wrap. `to` may be one of `from`. The pair of dtype and reduction is
 * one of tn_sim_can_reduce. */
void tn_sim_reduce(int32_t dtype, int32_t reduction, int32_t n, const void *const *from, void *to,
                   int64_t count);
int tn_sim_can_reduce(int32_t dtype, int32_t reduction);

#endif
