/* Every variant of a kernel of the fast CPU on every instruction set and several numbers of threads, against
 * the kernel of the reference backend. */
#pragma once

#include "tests/unit/backends/cpu/rig.h"

/* The result of tn_onednn_isa in tests: the best level up to TN_ISA_...; the backend's own is not linked. */
void ways_use_isa(int32_t at_most);
/* The result of tn_onednn_cached_bytes in tests: at first so large that nothing is written past the caches.
 */
void ways_use_cached_bytes(int64_t bytes);
/* The backend object with which kernels are prepared, from AVX2 on; NULL: none, so that the options are their
 * defaults. */
void ways_use_backend(void *backend);

/* Runs the reference once, row-major, then the kernel in every combination. Operands are row-major. Results
 * may differ by `tolerance` of the largest element and a rounding; 0: they must be equal. `variants`: the
 * number that the kernel must offer at every level; 0: any number. */
void ways_check(const tn_kernel *kernel, const tn_kernel *reference, const rig_match *m, void *const *in,
                double tolerance, int32_t variants);
