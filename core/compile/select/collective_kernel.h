/* core/compile/select/collective_kernel.h: the one kernel that is the host's own: collectives, which a
 * communicator carries out on the communication stream. Every catalog has it, as a kernel of the device's
 * family. */
#ifndef TN_CORE_COMPILE_SELECT_COLLECTIVE_KERNEL_H
#define TN_CORE_COMPILE_SELECT_COLLECTIVE_KERNEL_H

#include "core/compile/cover.h"

/* "y = all_reduce(x)", in place if that is convenient. The launch asks the program's communicator, which
 * the executor binds; without one it fails. */
extern const tn_kernel tn_kernel_all_reduce;
extern const tn_entry tn_entry_all_reduce;

static inline bool tn_kernel_is_collective(const tn_kernel *kernel) {
  return kernel == &tn_kernel_all_reduce;
}

#endif
