/* backends/onednn/kernels/reorder.c: a tensor in another layout. Images between row-major and channels in
 * blocks or innermost are transposed in squares; those between blocks and channels innermost are copied block
 * by block of a pixel; other results are written row by row through tables (reorder_tables.h). */
#include <stdbool.h>
#include <string.h>

#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "backends/shared/reorder_tables.h"
#include "backends/onednn/kernels/image_layouts.h"
#include "backends/onednn/kernels/transpose.h"
#include "backends/shared/integer_math.h"
#include "tenon/plugin/storage.h"

enum { CHUNK = 1 << 15 /* elements */, STRIP = 1024 /* pixels */ };

typedef struct reorder_kernel {
  bool same;                       /* both layouts are equal: the bytes are copied */
  tn_transpose_function transpose; /* of matrices; NULL: tables */
  int64_t size;                    /* of an element */
  int64_t matrices, rows, columns, strips, per_chunk;
  int64_t run; /* bytes of a pixel's block, which are copied; 0: no such copy */
  tn_storage to;
  tn_reorder_tables tables;
  int64_t entries[]; /* of the tables */
} reorder_kernel;

/* ---- launch --------------------------------------------------------------------------------------- */

typedef struct reorder_job {
  const reorder_kernel *p;
  const uint8_t *from;
  uint8_t *to;
} reorder_job;

static void reorder_copy_chunk(void *arg, int64_t chunk) {
  const reorder_job *j = arg;
  int64_t at = chunk * CHUNK, n = least(CHUNK, j->p->to.count - at);
  memcpy(j->to + at * j->p->size, j->from + at * j->p->size, (size_t)(n * j->p->size));
}

/* A task is a strip of a matrix: the whole short side, and some of the long side. */
static void reorder_transpose_task(const reorder_job *j, int64_t task) {
  const reorder_kernel *p = j->p;
  int64_t matrix = task / p->strips * p->rows * p->columns, at = task % p->strips * STRIP;
  bool wide = p->columns > p->rows;
  int64_t n = least(STRIP, (wide ? p->columns : p->rows) - at);
  const uint8_t *from = j->from + (matrix + (wide ? at : at * p->columns)) * p->size;
  uint8_t *to = j->to + (matrix + (wide ? at * p->rows : at)) * p->size;
  p->transpose(from, p->columns, to, p->rows, wide ? p->rows : n, wide ? n : p->columns);
}

static void reorder_transpose_chunk(void *arg, int64_t chunk) {
  const reorder_job *j = arg;
  int64_t end = least(j->p->matrices * j->p->strips, (chunk + 1) * j->p->per_chunk);
  for (int64_t task = chunk * j->p->per_chunk; task < end; task++) reorder_transpose_task(j, task);
}

static inline __attribute__((always_inline)) void reorder_copy_runs(const reorder_kernel *p,
                                                                    const uint8_t *from, uint8_t *to,
                                                                    size_t run) {
  for (int64_t r = 0; r < p->rows; r++)
    for (int64_t c = 0; c < p->columns; c++)
      memcpy(to + (size_t)(c * p->rows + r) * run, from + (size_t)(r * p->columns + c) * run, run);
}

/* An image as a matrix of runs, which is transposed. */
static void reorder_runs_chunk(void *arg, int64_t image) {
  const reorder_job *j = arg;
  const reorder_kernel *p = j->p;
  int64_t at = image * p->rows * p->columns * p->run;
  switch (p->run) {
  case 32: reorder_copy_runs(p, j->from + at, j->to + at, 32); break;
  case 64: reorder_copy_runs(p, j->from + at, j->to + at, 64); break;
  default: reorder_copy_runs(p, j->from + at, j->to + at, (size_t)p->run); break;
  }
}

static void reorder_look_up_chunk(void *arg, int64_t chunk) {
  const reorder_job *j = arg;
  int64_t end = least(tn_reorder_tables_rows(&j->p->tables), (chunk + 1) * j->p->per_chunk);
  for (int64_t row = chunk * j->p->per_chunk; row < end; row++)
    tn_reorder_tables_write_row(&j->p->tables, j->to, j->from, row);
}

static tn_status onednn_reorder_launch(tn_launch *l) {
  const reorder_kernel *p = l->prepared;
  reorder_job j = {p, l->in[0].data, l->out[0].data};
  if (p->to.count == 0) return TN_OK;
  if (p->same) {
    if (j.to != j.from) tn_parallel(l, divide_up(p->to.count, CHUNK), reorder_copy_chunk, &j);
  } else if (p->run > 0) {
    tn_parallel(l, p->matrices, reorder_runs_chunk, &j);
  } else if (p->transpose != NULL) {
    tn_parallel(l, divide_up(p->matrices * p->strips, p->per_chunk), reorder_transpose_chunk, &j);
  } else {
    tn_parallel(l, divide_up(tn_reorder_tables_rows(&p->tables), p->per_chunk), reorder_look_up_chunk, &j);
  }
  return TN_OK;
}

/* ---- query and prepare ---------------------------------------------------------------------------- */

static size_t reorder_kernel_bytes(const tn_type *type) {
  return sizeof(reorder_kernel) + tn_reorder_tables_entries(type) * sizeof(int64_t);
}

/* The host inserts this op where two layouts differ, so that it chooses the layouts. */
static tn_status onednn_reorder_query(tn_query *q) {
  static const tn_operand_layout any = {.rule = TN_LAYOUT_ANY};
  const tn_type *x = q->match->in[0];
  return tn_offer(q, (tn_variant){.name = "squares",
                                  .in = &any,
                                  .out = &any,
                                  .prepared_bytes = (int64_t)reorder_kernel_bytes(x),
                                  .cost_s = tn_cost_of_bytes(q->device, 2 * (double)tn_type_bytes(x))});
}

static bool reorder_has_order(const tn_layout *layout, const tn_layout *wanted, int32_t rank) {
  for (int32_t i = 0; i < rank; i++)
    if ((layout->set ? layout->order[i] : i) != wanted->order[i]) return false;
  return true;
}

/* The channels of a pixel that follow each other: 1 in row-major layout, those of the only block, which
 * divides them, or all; 0 in other layouts. */
static int64_t reorder_block_size(const tn_type *x, const tn_layout *layout) {
  tn_layout plain = tn_layout_row_major(x->rank), last = tn_channels_last(x->rank);
  if (x->rank < 3) return 0;
  if (layout->n_blocks == 0 && reorder_has_order(layout, &last, x->rank)) return x->dims[1];
  if (!reorder_has_order(layout, &plain, x->rank)) return 0;
  if (layout->n_blocks == 0) return 1;
  if (layout->n_blocks != 1 || layout->block[0].dim != 1) return 0;
  return x->dims[1] % layout->block[0].size == 0 ? layout->block[0].size : 0;
}

/* Between blocks and channels innermost: blocks are rows and pixels columns, or the reverse. */
static void reorder_set_runs(reorder_kernel *p, const tn_type *x, int64_t from, int64_t to) {
  int64_t block = least(from, to), pixels = tn_type_count(x) / (x->dims[0] * x->dims[1]);
  if (block <= 1 || most(from, to) != x->dims[1] || from == to) return;
  p->run = block * p->size;
  p->matrices = x->dims[0];
  p->rows = from == block ? x->dims[1] / block : pixels;
  p->columns = from == block ? pixels : x->dims[1] / block;
}

/* In row-major layout, each channel of a block is a row of pixels; in blocks, and with channels innermost,
 * each pixel is a row of channels. */
static void reorder_set_transpose(reorder_kernel *p, const void *backend, const tn_type *x,
                                  const tn_layout *from, const tn_layout *to) {
  const tn_transpose_loops *loops = TN_LOOPS_PICK_AT(tn_loops_transpose, tn_onednn_isa_of(backend));
  int64_t pixels = 1, have = reorder_block_size(x, from), want = reorder_block_size(x, to);
  int64_t block = most(have, want);
  reorder_set_runs(p, x, have, want);
  if (least(have, want) != 1 || block == 1) return;
  for (int32_t i = 2; i < x->rank; i++) pixels *= x->dims[i];
  p->transpose = p->size == 4 ? loops->of_4 : p->size == 2 ? loops->of_2 : NULL;
  p->matrices = x->dims[0] * x->dims[1] / block;
  p->rows = have > 1 ? pixels : block;
  p->columns = have > 1 ? block : pixels;
  p->strips = at_least_1(divide_up(p->rows > p->columns ? p->rows : p->columns, STRIP));
  p->per_chunk = at_least_1(CHUNK / at_least_1(p->rows * p->columns / p->strips));
}

static void reorder_set_tables(reorder_kernel *p, const tn_type *x, const tn_storage *from) {
  int64_t inner = p->to.n > 0 ? p->to.axis[p->to.n - 1].extent : 1;
  p->per_chunk = at_least_1(CHUNK / at_least_1(inner));
  tn_reorder_tables_init(&p->tables, x, from, &p->to, p->entries);
}

static tn_status onednn_reorder_prepare(tn_prepare *p, void **made) {
  static const tn_layout unset = {0};
  const tn_type *x = p->match->in[0];
  const tn_layout *in = p->in_layout != NULL ? &p->in_layout[0] : &unset;
  const tn_layout *out = p->out_layout != NULL ? &p->out_layout[0] : &unset;
  reorder_kernel *kernel = tn_new(p, reorder_kernel_bytes(x));
  if (kernel == NULL) return TN_ENOMEM;
  tn_storage from = tn_storage_of(x, in);
  kernel->size = (int64_t)tn_dtype_size(x->dtype);
  kernel->to = tn_storage_of(x, out);
  kernel->same = tn_storage_same(&from, &kernel->to);
  if (!kernel->same && kernel->to.count > 0) reorder_set_transpose(kernel, p->backend, x, in, out);
  if (!kernel->same && kernel->transpose == NULL && kernel->run == 0) reorder_set_tables(kernel, x, &from);
  *made = kernel;
  return TN_OK;
}

TN_DEFINE_KERNEL(onednn, reorder, "onednn_reorder", "y = reorder(x)", "a tensor in another layout",
                 TN_KERNEL_CALLBACKS_WITH(onednn_reorder, tn_delete_prepared));
