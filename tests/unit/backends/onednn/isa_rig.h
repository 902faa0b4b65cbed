/* Every way in which a kernel of the fast CPU does a match, against the cpu's kernel for it: each variant,
 * each instruction set, several numbers of threads. */
#ifndef TN_TEST_WAYS_H
#define TN_TEST_WAYS_H

#include "tests/unit/backends/cpu/rig.h"

/* What tn_onednn_isa says in tests: the best level up to TN_ISA_...; the library's own is not linked. */
void ways_use_isa(int32_t at_most);

/* Runs the reference once, row-major, and then the kernel in all ways. Operands are row-major. Results may be
 * off by `tolerance` of the largest element and a rounding; 0: they must be equal. `variants`: how many the
 * kernel must offer at every level; 0: any number. */
void ways_check(const tn_kernel *kernel, const tn_kernel *reference, const rig_match *m, void *const *in,
                double tolerance, int32_t variants);

#endif
