/* tools/bench/ceilings.h: what a device gives at best, measured beside the figures that are held against it.
 */
#ifndef TN_TOOLS_BENCH_CEILINGS_H
#define TN_TOOLS_BENCH_CEILINGS_H

#include "tools/cli.h"
#include "tenon/tensor.h"

typedef struct ceilings {
  double gemm[TN_DTYPES]; /* FLOP/s of the backend's own matmul per dtype; 0: not measured, or it has none */
  double multiply_add;    /* FLOP/s of the processor in f32 (peak.h); 0: kernels do not run on the host */
  double copy;            /* bytes read and written a second */
  double cached_copy;     /* the same of what stays in the caches next to the processors; 0: not measured */
  double cache_bytes;     /* which are so large */
} ceilings;

/* `wanted` says for which dtypes the product of large square matrices is measured. */
int measure_ceilings(tn_context *context, const char *backend, int threads, const bool wanted[TN_DTYPES],
                     ceilings *found);

/* Seconds that a launch takes at least if the ceilings hold: for its operations or its bytes, whichever is
 * longer. What fits into the caches is taken to be there. */
double least_seconds(const ceilings *c, int32_t dtype, double flops, double bytes);

#endif
