/* backends/cuda/launch.c: launches of functions. */
#include <stdio.h>

#include "backends/cuda/modules/modules.h"

tn_status tn_cuda_launched(tn_launch *l) {
  const tn_cuda_stream *s = l->stream;
  const tn_cuda_device *d = s->device;
  char call[256];
  if (!d->backend->options->check) return TN_OK;
  snprintf(call, sizeof call, "%s: the launch failed: cuStreamSynchronize", l->name);
  return tn_cuda_check(&l->env, &d->backend->libraries,
                       d->backend->libraries.driver.cuStreamSynchronize(s->stream), call);
}

tn_status tn_cuda_launch(tn_launch *l, const tn_cuda_function *function, const tn_cuda_grid *grid,
                         const void *args, size_t bytes) {
  const tn_cuda_stream *s = l->stream;
  const tn_cuda_device *d = s->device;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)args, CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &bytes, CU_LAUNCH_PARAM_END};
  if (grid->blocks[0] == 0 || grid->blocks[1] == 0 || grid->blocks[2] == 0) return TN_OK;
  TN_TRY(tn_cuda_enter(&l->env, d));
  TN_TRY(TN_CU(&l->env, &d->backend->libraries, cuLaunchKernel, function->function, grid->blocks[0],
               grid->blocks[1], grid->blocks[2], grid->threads[0], grid->threads[1], grid->threads[2],
               grid->shared_bytes, s->stream, NULL, extra));
  return tn_cuda_launched(l);
}

tn_cuda_grid tn_cuda_grid_of(int64_t items, uint32_t threads, int64_t most_blocks) {
  int64_t blocks = (items + threads - 1) / threads;
  if (blocks > most_blocks) blocks = most_blocks;
  return (tn_cuda_grid){.blocks = {(uint32_t)blocks, 1, 1}, .threads = {threads, 1, 1}};
}
