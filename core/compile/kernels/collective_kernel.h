/* core/compile/kernels/collective_kernel.h: the kernels of collectives, which are part of the host and not of
 * a backend. A communicator executes them on the communication stream. Every catalog contains them, as
 * kernels of the device's family. */
#pragma once

#include "core/plugin/registry.h"
#include "tenon/plugin/kernel.h"

#include <stdbool.h>

/* all_reduce, whose result may overwrite the operand, reduce_scatter and all_gather. The executor replaces
 * the launch by the program's communicator; without a communicator the launch fails. */
enum { TN_COLLECTIVE_KERNELS = 3 };
extern const tn_kernel tn_collective_kernels[TN_COLLECTIVE_KERNELS];
extern const tn_entry tn_collective_entries[TN_COLLECTIVE_KERNELS];

/* TN_ALL_REDUCE, TN_REDUCE_SCATTER or TN_ALL_GATHER (plugin/communicator.h); -1: no collective. */
int32_t tn_kernel_collective(const tn_kernel *kernel);

static inline bool tn_kernel_is_collective(const tn_kernel *kernel) {
  return tn_kernel_collective(kernel) >= 0;
}
