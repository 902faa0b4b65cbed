/* backends/cuda/kernels/alignment.c: alignment and its gradient, a block for each sequence
 * (device/alignment.cu). */
#include "backends/cuda/device/alignment.cuh"
#include "backends/cuda/kernels/threads.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"

typedef struct alignment_kernel {
  tn_cuda_function function;
  tn_cuda_grid grid;
  struct alignment_args args;
} alignment_kernel;

static tn_status cuda_alignment_query(tn_query *q) {
  const tn_type *score = q->match->in[0];
  int64_t room = score->dims[0] * (score->dims[1] + 2) * score->dims[2] * (int64_t)sizeof(double);
  return tn_offer(q, (tn_variant){.name = "forward-backward",
                                  .workspace_bytes = room,
                                  .prepared_bytes = sizeof(alignment_kernel),
                                  .cost_s = tn_cuda_bytes_s(q->device, TN_CUDA_ROWS, (double)room)});
}

static tn_status cuda_alignment_prepare(tn_prepare *p, void **made) {
  const tn_type *score = p->match->in[0];
  alignment_kernel *k = *made = tn_new(p, sizeof *k);
  if (k == NULL) return TN_ENOMEM;
  k->args =
      (struct alignment_args){.rows = score->dims[0], .steps = score->dims[1], .states = score->dims[2]};
  if (score->dims[0] == 0) return TN_OK;
  k->grid = tn_cuda_task_grid(score->dims[0], 1, ALIGNMENT_THREADS);
  return tn_cuda_request(p, &k->function, "alignment.cu", "alignment_%s", tn_dtype_name(score->dtype));
}

static tn_status cuda_alignment_run(tn_launch *l, struct alignment_args a) {
  const alignment_kernel *k = l->prepared;
  if (a.rows == 0) return TN_OK;
  a.score = l->in[0].data;
  a.skip = l->in[1].data;
  a.of_steps = l->in[2].data;
  a.of_states = l->in[3].data;
  a.room = l->workspace;
  return tn_cuda_launch(l, &k->function, &k->grid, &a, sizeof a);
}

static tn_status cuda_alignment_launch(tn_launch *l) {
  struct alignment_args a = ((const alignment_kernel *)l->prepared)->args;
  a.total = l->out[0].data;
  return cuda_alignment_run(l, a);
}

static tn_status cuda_alignment_grad_launch(tn_launch *l) {
  struct alignment_args a = ((const alignment_kernel *)l->prepared)->args;
  if (a.steps == 0 || a.states == 0) return TN_OK;
  a.dtotal = l->in[4].data;
  a.dscore = l->out[0].data;
  return cuda_alignment_run(l, a);
}

TN_DEFINE_KERNEL(cuda, alignment, "cuda_alignment", "total = alignment(score, skip, steps, states)",
                 "a block for each sequence", .query = cuda_alignment_query,
                 .prepare = cuda_alignment_prepare, .release = tn_cuda_release_function,
                 .launch = cuda_alignment_launch);
TN_DEFINE_KERNEL(cuda, alignment_grad, "cuda_alignment_grad",
                 "dscore = alignment_grad(score, skip, steps, states, dtotal)", "a block for each sequence",
                 .query = cuda_alignment_query, .prepare = cuda_alignment_prepare,
                 .release = tn_cuda_release_function, .launch = cuda_alignment_grad_launch);
