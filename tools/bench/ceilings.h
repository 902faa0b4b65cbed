/* tools/bench/ceilings.h: the highest rates of a device, measured beside a benchmark. */
#pragma once

#include "tools/cli/cli.h"
#include "tenon/tensor.h"

typedef struct ceilings {
  double
      gemm[TN_DTYPES]; /* FLOP/s of the backend's own matmul per dtype; 0: not measured, or not available */
  double multiply_add; /* FLOP/s of the processor in f32 (peak.h); 0: kernels do not run on the host */
  double copy;         /* bytes read and written a second */
  double cached_copy;  /* the same for data that stays in the second-level caches; 0: not measured */
  double cache_bytes;  /* size of these caches */
} ceilings;

/* `options`: of the backend, as tn_device_open takes them. `threads`: of the benchmark. `wanted` selects the
 * dtypes for which the product of large square matrices is measured. */
int measure_ceilings(tn_context *context, const char *backend, const char *options, int threads,
                     const bool wanted[TN_DTYPES], ceilings *found);

/* The least seconds of a launch at the ceilings: the longer of computing its FLOPs and moving its bytes. Data
 * that fit into the caches are assumed to be there. */
double least_seconds(const ceilings *c, int32_t dtype, double flops, double bytes);
