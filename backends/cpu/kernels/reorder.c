/* reorder: a tensor in another layout. Between layouts without blocks that is a strided copy. With
 * blocks, the position of an element is a sum of one term per dimension, so a table per dimension says
 * where in the operand each coordinate lies; the result is written front to back, padding as zeros. */
#include "backends/shared/define_kernel.h"
#include "backends/cpu/kernels/kernels.h"
#include "tenon/plugin/storage.h"
#include "backends/cpu/kernels/strided_copy.h"

#include <stdbool.h>
#include <string.h>

enum { CHUNK_ELEMENTS = 1 << 14 };

typedef struct plan {
  bool same, strided;
  tn_strided copy;
  tn_storage to;
  tn_type type;
  int64_t rows_per_chunk;            /* rows: runs of the result's innermost axis */
  const int64_t *table[TN_MAX_RANK]; /* position in the operand by coordinate */
  int64_t entries[];
} plan;

/* ---- launch ---- */

typedef struct job {
  const plan *p;
  uint8_t *to;
  const uint8_t *from;
} job;

typedef uint16_t __attribute__((may_alias)) word16;
typedef uint32_t __attribute__((may_alias)) word32;
typedef uint64_t __attribute__((may_alias)) word64;

/* n elements whose coordinates in one dimension go up by `step`, from a table for that dimension. */
#define GATHER(name, WORD)                                                                                   \
  static void name(WORD *to, const WORD *from, const int64_t *table, int64_t step, int64_t n) {              \
    for (int64_t k = 0; k < n; k++) to[k] = from[table[k * step]];                                           \
  }
GATHER(gather_1, uint8_t)
GATHER(gather_2, word16)
GATHER(gather_4, word32)
GATHER(gather_8, word64)

static void reorder_gather(size_t size, void *to, const void *from, const int64_t *table, int64_t step,
                           int64_t n) {
  switch (size) {
  case 1: gather_1(to, from, table, step, n); break;
  case 2: gather_2(to, from, table, step, n); break;
  case 4: gather_4(to, from, table, step, n); break;
  default: gather_8(to, from, table, step, n); break;
  }
}

static void reorder_row(const job *j, int64_t row) {
  const plan *p = j->p;
  const tn_storage_axis *inner = &p->to.axis[p->to.n - 1];
  int64_t c[TN_MAX_RANK], base = 0, n = inner->extent, held = tn_storage_row(&p->to, &p->type, row, c);
  size_t size = tn_dtype_size(p->type.dtype);
  uint8_t *to = j->to + (size_t)(row * n) * size;
  for (int32_t i = 0; i < p->type.rank && held > 0; i++)
    if (i != inner->dim) base += p->table[i][c[i]];
  if (held > 0)
    reorder_gather(size, to, j->from + (size_t)base * size, p->table[inner->dim] + c[inner->dim],
                   inner->scale, held);
  memset(to + (size_t)held * size, 0, (size_t)(n - held) * size);
}

static void reorder_chunk(void *arg, int64_t chunk) {
  const job *j = arg;
  const plan *p = j->p;
  int64_t rows = p->to.count / p->to.axis[p->to.n - 1].extent, row = chunk * p->rows_per_chunk;
  int64_t end = row + p->rows_per_chunk < rows ? row + p->rows_per_chunk : rows;
  for (; row < end; row++) reorder_row(j, row);
}

static tn_status reorder_launch(tn_launch *l) {
  const plan *p = l->plan;
  job j = {p, l->out[0].data, l->in[0].data};
  if (p->to.count == 0) return TN_OK;
  if (p->same) {
    tn_cpu_copy_bytes(l, j.to, j.from, (size_t)p->to.count * tn_dtype_size(p->type.dtype));
  } else if (p->strided) {
    tn_strided_copy(l, &p->copy, j.to, j.from);
  } else {
    int64_t rows = p->to.count / p->to.axis[p->to.n - 1].extent;
    tn_parallel(l, (rows + p->rows_per_chunk - 1) / p->rows_per_chunk, reorder_chunk, &j);
  }
  return TN_OK;
}

/* ---- query and prepare ---- */

static int64_t reorder_table_entries(const tn_type *type) {
  int64_t n = 0;
  for (int32_t i = 0; i < type->rank; i++) n += type->dims[i];
  return n;
}

static size_t reorder_plan_bytes(const tn_type *type) {
  return sizeof(plan) + (size_t)reorder_table_entries(type) * sizeof(int64_t);
}

/* Which layouts there are is for the host to say; it makes this op where they differ. */
static tn_status reorder_query(tn_query *q) {
  static const tn_operand_layout any = {.rule = TN_LAYOUT_ANY};
  const tn_type *x = q->match->in[0];
  tn_variant v = {.struct_size = sizeof v,
                  .name = "tables",
                  .in = &any,
                  .out = &any,
                  .prepared_bytes = (int64_t)reorder_plan_bytes(x),
                  .cost_s = 4 * (double)tn_type_bytes(x) / 1e10,
                  .deterministic = 1,
                  .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

/* Without blocks, axis i of the result is a whole dimension, which lies at one stride in the operand. */
static tn_strided strided_copy(const plan *p, const tn_storage *from) {
  int64_t dims[TN_MAX_RANK], to_strides[TN_MAX_RANK], from_strides[TN_MAX_RANK];
  for (int32_t i = 0; i < p->to.n; i++) {
    dims[i] = p->to.axis[i].extent;
    to_strides[i] = p->to.axis[i].stride;
    from_strides[i] = tn_storage_offset(from, p->to.axis[i].dim, dims[i] > 1 ? 1 : 0);
  }
  return tn_strided_plan(tn_dtype_size(p->type.dtype), p->to.n, dims, to_strides, from_strides);
}

static void fill_tables(plan *p, const tn_storage *from) {
  int64_t *entry = p->entries;
  for (int32_t d = 0; d < p->type.rank; d++) {
    p->table[d] = entry;
    for (int64_t c = 0; c < p->type.dims[d]; c++) *entry++ = tn_storage_offset(from, d, c);
  }
}

static tn_status reorder_prepare(tn_prepare *p, void **made) {
  static const tn_layout unset = {0};
  const tn_type *x = p->match->in[0];
  const tn_layout *in = p->in_layout != NULL ? &p->in_layout[0] : &unset;
  const tn_layout *out = p->out_layout != NULL ? &p->out_layout[0] : &unset;
  plan *keep = tn_new(p, reorder_plan_bytes(x));
  if (keep == NULL) return TN_ENOMEM;
  tn_storage from = tn_storage_of(x, in);
  keep->type = *x;
  keep->to = tn_storage_of(x, out);
  keep->same = keep->to.count == 0 || tn_storage_same(&from, &keep->to);
  keep->strided = !keep->same && in->n_blocks == 0 && out->n_blocks == 0;
  if (keep->strided) keep->copy = strided_copy(keep, &from);
  if (!keep->same && !keep->strided) fill_tables(keep, &from);
  int64_t inner = keep->to.n > 0 ? keep->to.axis[keep->to.n - 1].extent : 1;
  keep->rows_per_chunk = inner > 0 && inner < CHUNK_ELEMENTS ? CHUNK_ELEMENTS / inner : 1;
  *made = keep;
  return TN_OK;
}

static void reorder_release(tn_env *env, void *made) { tn_delete(env, made); }

TN_DEFINE_KERNEL(cpu, reorder, "reorder", "y = reorder(x)", "a tensor in another layout",
                 TN_KERNEL_CALLBACKS(reorder));
