/* backends/cuda/kernels/sort.c: sort and topk along an axis (device/sort.cu). */
#include "backends/cuda/device/gather.cuh"
#include "backends/cuda/kernels/threads.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/attributes.h"

typedef struct sort_kernel {
  tn_cuda_function rows, fill, blocks, step, take; /* rows alone, or the others */
  tn_cuda_grid rows_grid, elements_grid, blocks_grid, pairs_grid;
  struct bitonic_args args;
} sort_kernel;

static bool sort_is_short(const struct bitonic_args *a) { return a->size <= SORT_BLOCK; }

static struct bitonic_args sort_args_of(const tn_node *n) {
  const tn_sort_attributes *s = n->attributes;
  bool all = strcmp(n->op, "sort") == 0;
  struct bitonic_args a = {.size = 1};
  tn_cuda_rows_along(n->in[0], s->axis, &a.rows, &a.n, &a.inner);
  a.k = all ? a.n : s->k;
  a.descending = all ? s->descending : s->largest;
  if (tn_type_count(&n->out[0]) == 0) a.rows = 0;
  while (a.size < a.n) a.size *= 2;
  return a;
}

static int64_t sort_keys_bytes(const struct bitonic_args *a) {
  return sort_is_short(a) ? 0 : a->rows * a->size * (int64_t)sizeof *a->keys;
}

/* The launches of a long row: runs of twice the length of a block, four times and so on, and for each the
 * steps of more than a block. */
static int32_t sort_launches(const struct bitonic_args *a) {
  int32_t launches = 1, doublings = 0;
  for (int64_t run = 2 * SORT_BLOCK; run <= a->size; run *= 2) launches += ++doublings + 1;
  return sort_is_short(a) ? 1 : launches + 2;
}

static tn_status cuda_sort_query(tn_query *q) {
  struct bitonic_args a = sort_args_of(q->match->nodes[0].node);
  double launches = sort_launches(&a), steps = launches * 3 * (double)sort_keys_bytes(&a);
  return tn_offer(
      q, (tn_variant){.name = sort_is_short(&a) ? "rows" : "runs",
                      .prepared_bytes = sizeof(sort_kernel),
                      .workspace_bytes = sort_keys_bytes(&a) / 2 * 3,
                      .cost_s = tn_cuda_bytes_s(q->device, TN_CUDA_ROWS, tn_match_bytes(q->match) + steps) +
                                (launches - 1) * q->device->launch_s});
}

static tn_status cuda_sort_prepare(tn_prepare *p, void **made) {
  const tn_node *n = p->match->nodes[0].node;
  const char *dtype = tn_dtype_name(n->in[0]->dtype);
  sort_kernel *k = *made = tn_new(p, sizeof *k);
  if (k == NULL) return TN_ENOMEM;
  k->args = sort_args_of(n);
  if (k->args.rows == 0) return TN_OK;
  int64_t elements = k->args.rows * k->args.size;
  k->rows_grid = tn_cuda_task_grid(k->args.rows, 1, SORT_THREADS);
  k->elements_grid = tn_cuda_task_grid(elements, SORT_THREADS, SORT_THREADS);
  k->blocks_grid = tn_cuda_task_grid(elements, SORT_BLOCK, SORT_THREADS);
  k->pairs_grid = tn_cuda_task_grid(elements / 2, SORT_THREADS, SORT_THREADS);
  if (sort_is_short(&k->args)) return tn_cuda_request(p, &k->rows, "sort.cu", "sort_rows_%s", dtype);
  TN_TRY(tn_cuda_request(p, &k->fill, "sort.cu", "sort_fill_%s", dtype));
  TN_TRY(tn_cuda_request(p, &k->blocks, "sort.cu", "sort_blocks"));
  TN_TRY(tn_cuda_request(p, &k->step, "sort.cu", "sort_step"));
  return tn_cuda_request(p, &k->take, "sort.cu", "sort_take_%s", dtype);
}

static void cuda_sort_release(tn_env *env, void *made) {
  sort_kernel *k = made;
  tn_cuda_function *all[] = {&k->rows, &k->fill, &k->blocks, &k->step, &k->take};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) tn_cuda_withdraw(all[i]);
  tn_delete(env, k);
}

/* The steps of runs that are longer than a block. */
static tn_status sort_long_run(tn_launch *l, const sort_kernel *k, struct bitonic_args *a) {
  tn_status status = TN_OK;
  for (a->distance = a->run / 2; a->distance >= SORT_BLOCK && status == TN_OK; a->distance /= 2)
    status = tn_cuda_launch(l, &k->step, &k->pairs_grid, a, sizeof *a);
  return status != TN_OK ? status : tn_cuda_launch(l, &k->blocks, &k->blocks_grid, a, sizeof *a);
}

static tn_status cuda_sort_launch(tn_launch *l) {
  const sort_kernel *k = l->prepared;
  struct bitonic_args a = k->args;
  if (a.rows == 0) return TN_OK;
  a.x = l->in[0].data;
  a.y = l->out[0].data;
  a.index = l->out[1].data;
  a.keys = l->workspace;
  a.indices = (unsigned *)(void *)((uint8_t *)l->workspace + sort_keys_bytes(&a));
  if (sort_is_short(&a)) return tn_cuda_launch(l, &k->rows, &k->rows_grid, &a, sizeof a);
  a.run = SORT_BLOCK;
  tn_status status = tn_cuda_launch(l, &k->fill, &k->elements_grid, &a, sizeof a);
  if (status == TN_OK) status = tn_cuda_launch(l, &k->blocks, &k->blocks_grid, &a, sizeof a);
  for (a.run = 2 * SORT_BLOCK; a.run <= a.size && status == TN_OK; a.run *= 2)
    status = sort_long_run(l, k, &a);
  return status != TN_OK ? status : tn_cuda_launch(l, &k->take, &k->elements_grid, &a, sizeof a);
}

TN_DEFINE_KERNEL(cuda, sort, "cuda_sort", "y, index = sort(x)", "sorts along an axis",
                 TN_KERNEL_CALLBACKS(cuda_sort));
TN_DEFINE_KERNEL(cuda, topk, "cuda_topk", "y, index = topk(x)",
                 "the largest or smallest elements along an axis", TN_KERNEL_CALLBACKS(cuda_sort));
