/* backends/cuda/cudnn/plan.h: plans: engines of cuDNN made ready for a device, and their launches.
 *
 * A prepared kernel contains a plan. tn_cudnn_request begins it: an engine without run-time compilation is
 * ready at once, another compiles on the threads of modules/compile_pool.c. tn_cudnn_finish_prepare, called
 * by the backend's finish_prepare, waits and loads. A plan that cuDNN does not build declines its match, in
 * either place. */
#pragma once

#include "backends/cuda/cudnn/engines.h"
#include "backends/cuda/objects.h"
#include "tenon/plugin/kernel.h"

/* Part of a prepared kernel; {0} before the request. */
typedef struct tn_cudnn_plan {
  struct tn_cudnn_work *work; /* NULL: not requested */
} tn_cudnn_plan;

/* Requests engine number `rank` of a graph, from 0, as tn_cudnn_offer_engines numbers them. TN_EUNSUPPORTED:
 * the graph has no such engine, cuDNN does not build the plan, or it cannot use the device. Withdraw it in
 * either case. */
tn_status tn_cudnn_request(tn_prepare *p, const tn_cudnn_graph *g, bool exact, int32_t rank,
                           tn_cudnn_plan *plan);
/* Bytes of the workspace that are the plan's: the kernel's own begin behind them, at a multiple of 256. */
int64_t tn_cudnn_plan_workspace(const tn_cudnn_plan *plan);
/* For release; accepts {0}. */
void tn_cudnn_withdraw(tn_env *env, tn_cudnn_plan *plan);

/* Enqueues a launch. `addresses`: by the numbers of the graph's tensors; NULL for virtual tensors and
 * numbers; they are aligned to 16 bytes. The engine's workspace is that of the launch, which a variant of
 * tn_cudnn_offer_engines has asked for. Allocates where an address differs from that of the last launch. */
tn_status tn_cudnn_run(tn_launch *l, const tn_cudnn_plan *plan, void *const *addresses);
/* The workspace of a launch from its first multiple of 256 on: the host aligns it to 64 alone, and what cuDNN
 * needs is not documented; memory of its other users is from cudaMalloc. */
char *tn_cudnn_workspace(const tn_launch *l);
