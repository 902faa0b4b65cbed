/* backends/cpu/kernels/reorder.c: copies a tensor to another layout. Between layouts without blocks this is a
 * strided copy; with blocks the result is written row by row through tables (reorder_tables.h). */
#include "backends/shared/define_kernel.h"
#include "backends/shared/reorder_tables.h"
#include "tenon/plugin/storage.h"
#include "backends/cpu/kernels/common/strided_copy.h"

#include <stdbool.h>

enum { CHUNK_ELEMENTS = 1 << 14 };

typedef struct reorder_kernel {
  bool same, strided;
  tn_strided copy;
  tn_storage to;
  tn_type type;
  tn_reorder_tables tables;
  int64_t rows_per_chunk;
  int64_t entries[]; /* of the tables */
} reorder_kernel;

/* ---- launch ---- */

typedef struct reorder_job {
  const reorder_kernel *p;
  uint8_t *to;
  const uint8_t *from;
} reorder_job;

static void reorder_chunk(void *arg, int64_t chunk) {
  const reorder_job *j = arg;
  const reorder_kernel *p = j->p;
  int64_t rows = tn_reorder_tables_rows(&p->tables), row = chunk * p->rows_per_chunk;
  int64_t end = row + p->rows_per_chunk < rows ? row + p->rows_per_chunk : rows;
  for (; row < end; row++) tn_reorder_tables_write_row(&p->tables, j->to, j->from, row);
}

static tn_status reorder_launch(tn_launch *l) {
  const reorder_kernel *p = l->prepared;
  reorder_job j = {p, l->out[0].data, l->in[0].data};
  if (p->to.count == 0) return TN_OK;
  if (p->same) {
    tn_cpu_copy_bytes(l, j.to, j.from, (size_t)p->to.count * tn_dtype_size(p->type.dtype));
  } else if (p->strided) {
    tn_strided_copy(l, &p->copy, j.to, j.from);
  } else {
    int64_t rows = tn_reorder_tables_rows(&p->tables);
    tn_parallel(l, (rows + p->rows_per_chunk - 1) / p->rows_per_chunk, reorder_chunk, &j);
  }
  return TN_OK;
}

/* ---- query and prepare ---- */

static size_t reorder_bytes(const tn_type *type) {
  return sizeof(reorder_kernel) + tn_reorder_tables_entries(type) * sizeof(int64_t);
}

/* Any layouts: the host inserts this op where the layouts of a value and of its reader differ. */
static tn_status reorder_query(tn_query *q) {
  static const tn_operand_layout any = {.rule = TN_LAYOUT_ANY};
  const tn_type *x = q->match->in[0];
  return tn_offer(
      q,
      (tn_variant){.name = "tables", .in = &any, .out = &any, .prepared_bytes = (int64_t)reorder_bytes(x)});
}

/* Without blocks, axis i of the result is a dimension, which has one stride in the operand. */
static tn_strided reorder_strided_copy(const reorder_kernel *p, const tn_storage *from) {
  int64_t dims[TN_MAX_RANK], to_strides[TN_MAX_RANK], from_strides[TN_MAX_RANK];
  for (int32_t i = 0; i < p->to.n; i++) {
    dims[i] = p->to.axis[i].extent;
    to_strides[i] = p->to.axis[i].stride;
    from_strides[i] = tn_storage_offset(from, p->to.axis[i].dim, dims[i] > 1 ? 1 : 0);
  }
  tn_movement walk = tn_movement_make(p->to.n, dims, to_strides, from_strides);
  return tn_strided_make(tn_dtype_size(p->type.dtype), &walk);
}

static tn_status reorder_prepare(tn_prepare *p, void **made) {
  static const tn_layout unset = {0};
  const tn_type *x = p->match->in[0];
  const tn_layout *in = p->in_layout != NULL ? &p->in_layout[0] : &unset;
  const tn_layout *out = p->out_layout != NULL ? &p->out_layout[0] : &unset;
  reorder_kernel *keep = tn_new(p, reorder_bytes(x));
  if (keep == NULL) return TN_ENOMEM;
  tn_storage from = tn_storage_of(x, in);
  keep->type = *x;
  keep->to = tn_storage_of(x, out);
  keep->same = keep->to.count == 0 || tn_storage_same(&from, &keep->to);
  keep->strided = !keep->same && in->n_blocks == 0 && out->n_blocks == 0;
  if (keep->strided) keep->copy = reorder_strided_copy(keep, &from);
  if (!keep->same && !keep->strided)
    tn_reorder_tables_init(&keep->tables, x, &from, &keep->to, keep->entries);
  int64_t inner = keep->to.n > 0 ? keep->to.axis[keep->to.n - 1].extent : 1;
  keep->rows_per_chunk = inner > 0 && inner < CHUNK_ELEMENTS ? CHUNK_ELEMENTS / inner : 1;
  *made = keep;
  return TN_OK;
}

TN_DEFINE_KERNEL(cpu, reorder, "reorder", "y = reorder(x)", "copies a tensor to another layout",
                 TN_KERNEL_CALLBACKS_WITH(reorder, tn_delete_prepared));
