/* tools/bench/bench_ops.h: `tenon bench --ops`: launches compared with the ceilings of the machine. */
#pragma once

#include <jansson.h>

#include "tools/cli/cli.h"

/* Measures the ceilings of a device that is opened with the options of the run's, and adds to a result of
 * tn_run_bench with launches:
 *   ceilings: {gemm_gflops: {DTYPE: ...}, multiply_add_gflops, copy_gb_s, cached_copy_gb_s, cache_mib}
 *   for each launch share_of_step, gflops, gb_s, of_limit; launches are sorted by time
 *   kernels: [{kernel, launches, ms, of_limit}]
 *   least_ms: the time of all launches at the ceilings */
int add_ceilings(tn_context *context, tn_run *run, json_t *result);
void print_launches(const json_t *result);
