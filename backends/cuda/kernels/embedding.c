/* backends/cuda/kernels/embedding.c: rows of a table by their numbers, and the gradient of the table. The
 * gradient sorts positions by row with a stable radix sort, then adds up rows of dy in the order of their
 * positions: no atomics on floats, and the same bits in every run (device/embedding.cu, embedding_grad.cu).
 * An id outside the table makes its row NaN, which training finds as it finds a loss that is not finite, and
 * adds nothing to the gradient; the reference fails. */
#include <stdio.h>

#include "backends/cuda/device/embedding.cuh"
#include "backends/cuda/kernels/threads.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"

/* ---- embedding ---- */

/* `elements` is for operands that are not aligned. */
typedef struct embedding_kernel {
  tn_cuda_function units, elements;
  tn_cuda_grid grid;
  struct embedding_args args;
  int32_t elements_of_unit;
} embedding_kernel;

static tn_status embedding_check_types(tn_query *q) {
  const tn_match *m = q->match;
  if ((m->in[0]->dtype != TN_I32 && m->in[0]->dtype != TN_I64) || !tn_dtype_is_float(m->in[1]->dtype))
    return tn_fail(q, TN_EUNSUPPORTED, NULL,
                   "the ids are %s and the elements %s, expected i32 or i64 and a float type",
                   tn_dtype_name(m->in[0]->dtype), tn_dtype_name(m->in[1]->dtype));
  return TN_OK;
}

static tn_status cuda_embedding_query(tn_query *q) {
  const tn_match *m = q->match;
  TN_TRY(embedding_check_types(q));
  return tn_offer(q, (tn_variant){.name = "copy rows",
                                  .prepared_bytes = sizeof(embedding_kernel),
                                  .cost_s = tn_cuda_bytes_s(q->device, TN_CUDA_ROWS,
                                                            2 * (double)tn_type_bytes(m->out[0]))});
}

/* 8 bytes of elements that are NaN. */
static uint64_t embedding_nan(int32_t dtype) {
  static const uint64_t bits[TN_DTYPES] = {[TN_F16] = 0x7e007e007e007e00,
                                           [TN_BF16] = 0x7fc07fc07fc07fc0,
                                           [TN_F32] = 0x7fc000007fc00000,
                                           [TN_F64] = 0x7ff8000000000000};
  return bits[dtype];
}

static tn_status cuda_embedding_prepare(tn_prepare *p, void **made) {
  const tn_type *ids = p->match->in[0], *table = p->match->in[1];
  embedding_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  struct embedding_args *a = &keep->args;
  int64_t row_bytes = table->dims[1] * (int64_t)tn_dtype_size(table->dtype), unit = 16;
  int64_t size = (int64_t)tn_dtype_size(table->dtype);
  while (row_bytes % unit != 0) unit /= 2;
  a->count = row_bytes > 0 ? tn_type_count(ids) : 0;
  a->rows = table->dims[0];
  a->units = row_bytes / unit;
  keep->elements_of_unit = (int32_t)(unit / size);
  a->nan = embedding_nan(table->dtype);
  a->id_bytes = (int)tn_dtype_size(ids->dtype);
  a->width = tn_cuda_power(a->units, EMBEDDING_THREADS);
  keep->grid = tn_cuda_task_grid(a->count, EMBEDDING_THREADS / a->width, EMBEDDING_THREADS);
  TN_TRY(tn_cuda_request(p, &keep->units, "embedding.cu", "embedding_%d", (int)unit));
  return tn_cuda_request(p, &keep->elements, "embedding.cu", "embedding_%d", (int)size);
}

static void cuda_embedding_release(tn_env *env, void *made) {
  embedding_kernel *k = made;
  tn_cuda_withdraw(&k->units);
  tn_cuda_withdraw(&k->elements);
  tn_delete(env, k);
}

static tn_status cuda_embedding_launch(tn_launch *l) {
  const embedding_kernel *k = l->prepared;
  struct embedding_args a = k->args;
  a.ids = l->in[0].data;
  a.table = l->in[1].data;
  a.y = l->out[0].data;
  bool aligned = tn_cuda_is_aligned(a.table) && tn_cuda_is_aligned(a.y);
  if (!aligned) a.units *= k->elements_of_unit;
  return tn_cuda_launch(l, aligned ? &k->units : &k->elements, &k->grid, &a, sizeof a);
}

TN_DEFINE_KERNEL(cuda, embedding, "cuda_embedding", "y = embedding(ids, table)", "copies rows of a table",
                 TN_KERNEL_CALLBACKS(cuda_embedding));

/* ---- embedding_grad ---- */

typedef struct embedding_grad_kernel {
  tn_cuda_function count, add_up, move, stretches, join;
  tn_cuda_grid stretches_grid, join_grid;
  struct sort_args sort;
  struct embedding_grad_args add, joined; /* of the two launches after the sort */
  int32_t passes;
  /* The workspace: two pairs of keys and positions, counts and places, ranges, sums. */
  int64_t keys_bytes, counts_bytes, ranges_bytes, sums_bytes;
} embedding_grad_kernel;

static int64_t embedding_aligned(int64_t bytes) { return round_up(bytes, 64); }

/* A thread has `pack` columns where they divide evenly; 1: single ones. */
static void embedding_divide_columns(struct embedding_grad_args *a, int64_t pack) {
  a->vector = pack > 1 && a->columns % pack == 0;
  int64_t units = a->vector ? a->columns / pack : a->columns;
  a->width = tn_cuda_power(units, EMBEDDING_THREADS / 2);
  a->tiles = at_least_1(divide_up(units, a->width));
}

static void embedding_grad_make(const tn_match *m, embedding_grad_kernel *k) {
  const tn_type *ids = m->in[0], *table = m->out[0];
  int64_t size = (int64_t)tn_dtype_size(table->dtype), wide = size == 8 ? 8 : 4;
  *k = (embedding_grad_kernel){.passes = 1};
  struct sort_args *s = &k->sort;
  s->count = tn_type_count(ids);
  s->rows = table->dims[0];
  s->blocks = divide_up(s->count, SORT_TILE);
  s->id_bytes = (int)tn_dtype_size(ids->dtype);
  while (k->passes * SORT_BITS < 32 && (s->rows >> (k->passes * SORT_BITS)) != 0) k->passes++;
  struct embedding_grad_args *a = &k->add;
  a->count = s->count;
  a->rows = s->rows;
  a->columns = table->dims[1];
  a->stretches = divide_up(a->count, EMBEDDING_STRETCH);
  k->joined = *a;
  embedding_divide_columns(a, 16 / size);
  embedding_divide_columns(&k->joined, 16 / wide);
  k->stretches_grid =
      tn_cuda_task_grid(a->stretches * a->tiles, EMBEDDING_THREADS / a->width, EMBEDDING_THREADS);
  k->join_grid = tn_cuda_task_grid(divide_up(a->rows, EMBEDDING_THREADS / k->joined.width) * k->joined.tiles,
                                   1, EMBEDDING_THREADS);
  k->keys_bytes = embedding_aligned(s->count * 4);
  k->counts_bytes = embedding_aligned(2 * (int64_t)SORT_DIGITS * s->blocks * 4);
  k->ranges_bytes = embedding_aligned(2 * a->rows * 4);
  k->sums_bytes = embedding_aligned(a->stretches * 2 * a->columns * wide);
}

static tn_status cuda_embedding_grad_query(tn_query *q) {
  const tn_match *m = q->match;
  embedding_grad_kernel k;
  TN_TRY(embedding_check_types(q));
  if (tn_type_count(m->in[0]) >= UINT32_MAX || m->out[0]->dims[0] >= UINT32_MAX)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "%lld ids and %lld rows, expected less than 2^32 - 1 of each",
                   (long long)tn_type_count(m->in[0]), (long long)m->out[0]->dims[0]);
  embedding_grad_make(m, &k);
  double sorted = (double)k.passes * 6 * (double)k.keys_bytes, launches = 3 * k.passes + 2;
  return tn_offer(
      q, (tn_variant){.name = "sorted",
                      .workspace_bytes = 4 * k.keys_bytes + k.counts_bytes + k.ranges_bytes + k.sums_bytes,
                      .prepared_bytes = sizeof k,
                      .cost_s = tn_cuda_bytes_s(q->device, TN_CUDA_ROWS,
                                                tn_match_bytes(m) + sorted + 2 * (double)k.sums_bytes) +
                                launches * q->device->launch_s});
}

static tn_status cuda_embedding_grad_prepare(tn_prepare *p, void **made) {
  const char *dtype = tn_dtype_name(p->match->out[0]->dtype);
  embedding_grad_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  embedding_grad_make(p->match, keep);
  TN_TRY(tn_cuda_request(p, &keep->count, "embedding.cu", "sort_count"));
  TN_TRY(tn_cuda_request(p, &keep->add_up, "embedding.cu", "sort_add_up"));
  TN_TRY(tn_cuda_request(p, &keep->move, "embedding.cu", "sort_move"));
  TN_TRY(tn_cuda_request(p, &keep->stretches, "embedding_grad.cu", "embedding_stretches_%s", dtype));
  return tn_cuda_request(p, &keep->join, "embedding_grad.cu", "embedding_join_%s", dtype);
}

static void cuda_embedding_grad_release(tn_env *env, void *made) {
  embedding_grad_kernel *k = made;
  tn_cuda_function *all[] = {&k->count, &k->add_up, &k->move, &k->stretches, &k->join};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) tn_cuda_withdraw(all[i]);
  tn_delete(env, k);
}

/* One pass of the sort, of `bytes` of the keys. */
static tn_status embedding_sort_pass(tn_launch *l, const embedding_grad_kernel *k,
                                     const struct sort_args *s) {
  tn_cuda_grid blocks = tn_cuda_task_grid(s->blocks, 1, EMBEDDING_THREADS),
               digits = tn_cuda_task_grid(SORT_DIGITS, 1, EMBEDDING_THREADS);
  TN_TRY(tn_cuda_launch(l, &k->count, &blocks, s, sizeof *s));
  TN_TRY(tn_cuda_launch(l, &k->add_up, &digits, s, sizeof *s));
  return tn_cuda_launch(l, &k->move, &blocks, s, sizeof *s);
}

/* Passes write to one pair of keys and positions and read from the other. Sets *keys and *positions to the
 * last ones written. */
static tn_status embedding_sort_ids(tn_launch *l, const embedding_grad_kernel *k, const unsigned **keys,
                                    const unsigned **positions) {
  uint8_t *at = l->workspace;
  struct sort_args s = k->sort;
  tn_status status = TN_OK;
  s.ids = l->in[0].data;
  s.counts = (unsigned *)(void *)(at + 4 * k->keys_bytes);
  for (int32_t pass = 0; pass < k->passes && status == TN_OK; pass++) {
    uint8_t *to = at + pass % 2 * 2 * k->keys_bytes;
    s.shift = pass * SORT_BITS;
    s.to_keys = (unsigned *)(void *)to;
    s.to_positions = (unsigned *)(void *)(to + k->keys_bytes);
    status = embedding_sort_pass(l, k, &s);
    s.ids = NULL;
    s.from_keys = *keys = s.to_keys;
    s.from_positions = *positions = s.to_positions;
  }
  return status;
}

static void embedding_set_addresses(const tn_launch *l, const embedding_grad_kernel *k,
                                    struct embedding_grad_args *a) {
  uint8_t *ranges = (uint8_t *)l->workspace + 4 * k->keys_bytes + k->counts_bytes;
  a->dy = l->in[1].data;
  a->dtable = l->out[0].data;
  a->ranges = (unsigned *)(void *)ranges;
  a->sums = ranges + k->ranges_bytes;
}

static tn_status cuda_embedding_grad_launch(tn_launch *l) {
  const embedding_grad_kernel *k = l->prepared;
  struct embedding_grad_args a = k->add, joined = k->joined;
  if (a.rows == 0 || a.columns == 0) return TN_OK;
  embedding_set_addresses(l, k, &a);
  embedding_set_addresses(l, k, &joined);
  if (!tn_cuda_is_aligned(a.dy) || !tn_cuda_is_aligned(a.dtable)) {
    embedding_divide_columns(&a, 1);
    embedding_divide_columns(&joined, 1);
  }
  TN_TRY(tn_cuda_fill_zero(&l->env, l->stream, a.ranges, (uint64_t)k->ranges_bytes));
  if (a.count > 0) TN_TRY(embedding_sort_ids(l, k, &a.keys, &a.positions));
  TN_TRY(tn_cuda_launch(l, &k->stretches, &k->stretches_grid, &a, sizeof a));
  return tn_cuda_launch(l, &k->join, &k->join_grid, &joined, sizeof joined);
}

TN_DEFINE_KERNEL(cuda, embedding_grad, "cuda_embedding_grad", "dtable = embedding_grad(ids, dy)",
                 "sorts the positions by row, then sums each row", TN_KERNEL_CALLBACKS(cuda_embedding_grad));
