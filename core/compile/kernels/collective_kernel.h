/* core/compile/kernels/collective_kernel.h: the kernel of collectives, which is part of the host and not of a
 * backend. A communicator executes them on the communication stream. Every catalog contains it, as a kernel
 * of the device's family. */
#ifndef TN_CORE_COMPILE_KERNELS_COLLECTIVE_KERNEL_H
#define TN_CORE_COMPILE_KERNELS_COLLECTIVE_KERNEL_H

#include "core/plugin/registry.h"
#include "tenon/plugin/kernel.h"

#include <stdbool.h>

/* "y = all_reduce(x)"; the result may overwrite the operand. The executor replaces the launch by the
 * program's communicator; without a communicator the launch fails. */
extern const tn_kernel tn_kernel_all_reduce;
extern const tn_entry tn_entry_all_reduce;

static inline bool tn_kernel_is_collective(const tn_kernel *kernel) {
  return kernel == &tn_kernel_all_reduce;
}

#endif
