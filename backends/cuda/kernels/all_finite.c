/* backends/cuda/kernels/all_finite.c: whether all elements of an operand in any layout are finite
 * (device/all_finite.cu). Positions without an element are zero. */
#include <stdio.h>

#include "backends/cuda/device/all_finite.cuh"
#include "backends/cuda/kernels/threads.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/plugin/storage.h"

enum {
  ALL_FINITE_BLOCK_BYTES = 1 << 14, /* of a block, at least */
  ALL_FINITE_BLOCKS = 2048
};

typedef struct all_finite_kernel {
  tn_cuda_function blocks, join;
  tn_cuda_grid blocks_grid, join_grid;
  struct all_finite_args args;
} all_finite_kernel;

static const uint64_t all_finite_exponents[TN_DTYPES] = {
    [TN_F16] = 0x7c00, [TN_BF16] = 0x7f80, [TN_F32] = 0x7f800000, [TN_F64] = 0x7ff0000000000000};

static int64_t all_finite_blocks(int64_t count, int32_t dtype) {
  int64_t blocks = count * (int64_t)tn_dtype_size(dtype) / ALL_FINITE_BLOCK_BYTES;
  return at_least_1(least(blocks, ALL_FINITE_BLOCKS));
}

/* The workspace is for the most blocks: the layout, and with it the padding, is not known yet. */
static tn_status cuda_all_finite_query(tn_query *q) {
  static const tn_operand_layout any = {.rule = TN_LAYOUT_ANY};
  return tn_offer(
      q, (tn_variant){.name = "exponents",
                      .in = &any,
                      .workspace_bytes = ALL_FINITE_BLOCKS,
                      .prepared_bytes = sizeof(all_finite_kernel),
                      .cost_s = tn_cuda_bytes_s(q->device, TN_CUDA_STREAM, tn_match_bytes(q->match)) +
                                q->device->launch_s});
}

static tn_status cuda_all_finite_prepare(tn_prepare *p, void **made) {
  static const tn_layout unset = {0};
  const tn_type *x = p->match->in[0];
  all_finite_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  tn_storage s = tn_storage_of(x, p->in_layout ? &p->in_layout[0] : &unset);
  int64_t blocks = all_finite_blocks(s.count, x->dtype);
  keep->args.count = s.count;
  keep->args.exponent = all_finite_exponents[x->dtype];
  keep->blocks_grid = tn_cuda_task_grid(blocks, 1, ALL_FINITE_THREADS);
  keep->join_grid = tn_cuda_task_grid(blocks > 1, 1, ALL_FINITE_THREADS);
  tn_status status =
      tn_cuda_request(p, &keep->blocks, "all_finite.cu", "all_finite_%d", (int)tn_dtype_size(x->dtype));
  if (status != TN_OK || blocks == 1) return status;
  return tn_cuda_request(p, &keep->join, "all_finite.cu", "all_finite_join");
}

static void cuda_all_finite_release(tn_env *env, void *made) {
  all_finite_kernel *k = made;
  tn_cuda_withdraw(&k->blocks);
  tn_cuda_withdraw(&k->join);
  tn_delete(env, k);
}

static tn_status cuda_all_finite_launch(tn_launch *l) {
  const all_finite_kernel *k = l->prepared;
  struct all_finite_args a = k->args;
  uint32_t blocks = k->blocks_grid.blocks[0];
  a.x = l->in[0].data;
  a.flags = blocks > 1 ? l->workspace : l->out[0].data;
  tn_status status = tn_cuda_launch(l, &k->blocks, &k->blocks_grid, &a, sizeof a);
  if (status != TN_OK || blocks == 1) return status;
  struct all_finite_args flags = {.x = l->workspace, .flags = l->out[0].data, .count = blocks};
  return tn_cuda_launch(l, &k->join, &k->join_grid, &flags, sizeof flags);
}

TN_DEFINE_KERNEL(cuda, all_finite, "cuda_all_finite", "y = all_finite(x)",
                 "tests every exponent for all ones", TN_KERNEL_CALLBACKS(cuda_all_finite));
