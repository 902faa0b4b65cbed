/* backends/cuda/kernels/reduce_plan.h: how a reduction over any axes is divided among threads, blocks and
 * launches (device/reduce_args.cuh). */
#pragma once

#include <stdbool.h>

#include "backends/cuda/device/reduce_args.cuh"
#include "backends/cuda/modules/modules.h"

/* A part of a prepared kernel, which must not move. */
typedef struct tn_cuda_reduction {
  struct reduce_args args;
  tn_cuda_function elements, parts; /* of the first launch and the second */
  tn_cuda_grid elements_grid, parts_grid;
} tn_cuda_reduction;

/* The innermost dimension of an operand in memory. */
typedef struct tn_cuda_run {
  int64_t length; /* its elements and the padding behind them; 0: no padding */
  bool vectors;   /* of 16 bytes, which divide the length, may reach into the padding (TAILS, reduce.cuh) */
} tn_cuda_run;

/* Divides the reduction of x over the dimensions marked in `reduced`. Dimension order[i] of x is the i-th in
 * memory, outermost first. False where the kept dimensions come in another order in memory than in the
 * result. */
bool tn_cuda_reduction_make(tn_cuda_reduction *r, const tn_type *x, const uint8_t *order, tn_cuda_run run,
                            const bool *reduced);
/* Bytes for the accumulators of the parts, each of `words` numbers of the type of arithmetic. */
int64_t tn_cuda_reduction_workspace(const tn_cuda_reduction *r, int32_t dtype, int32_t words);
/* Seconds of the launch that joins the parts; 0: there is one part. */
double tn_cuda_reduction_join_s(const tn_cuda_reduction *r, const tn_device_properties *device);
/* Requests the functions of `op` for elements of a dtype: "reduce_sum" and f16 are in reduce_sum.cu. */
tn_status tn_cuda_reduction_request(tn_prepare *p, tn_cuda_reduction *r, const char *op, int32_t dtype);
/* Requests the functions of a text made with REDUCE_WITH_... (device/reduce_kernels.cuh). */
tn_status tn_cuda_reduction_request_text(tn_prepare *p, tn_cuda_reduction *r, const char *title,
                                         const char *text);
/* tn_kernel.release of a prepared kernel that begins with its reduction. */
void tn_cuda_reduction_release(tn_env *env, void *prepared);
/* Launches with the addresses in `args`, a copy of r->args. It is the first of the `bytes` bytes of the
 * functions' argument. `aligned`: what a prologue reads lies so that vectors can be loaded. */
tn_status tn_cuda_reduction_launch(tn_launch *l, const tn_cuda_reduction *r, struct reduce_args *args,
                                   size_t bytes, bool aligned);
