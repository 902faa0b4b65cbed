/* backends/cpu/kernels/embedding.c: embedding copies rows of a table; embedding_grad adds rows of dy to the
 * rows of the table that they came from. embedding_grad sorts the positions of dy by row. One task computes
 * a row of the result: the sum, in f64, of its rows of dy in their order. An id outside the table is an
 * error. */
#include "backends/shared/define_kernel.h"
#include "backends/shared/integer_math.h"
#include "backends/cpu/kernels/common/clones.h"
#include "backends/cpu/kernels/common/lane.h"

#include <string.h>

enum { CHUNK_BYTES = 1 << 17 };

static int64_t embedding_id(const tn_view *ids, int64_t at) {
  int64_t tile;
  return *tn_cpu_i64(ids->type.dtype, ids->data, at, 1, &tile);
}

/* The position of the first id outside 0 .. rows - 1; -1 if all ids are valid. */
static int64_t embedding_find_invalid(const tn_view *ids, int64_t rows) {
  int64_t n = tn_type_count(&ids->type);
  for (int64_t i = 0; i < n; i++) {
    int64_t id = embedding_id(ids, i);
    if (id < 0 || id >= rows) return i;
  }
  return -1;
}

static tn_status embedding_check_ids(tn_launch *l, const char *op, int64_t rows) {
  int64_t invalid = embedding_find_invalid(&l->in[0], rows);
  if (invalid < 0) return TN_OK;
  return tn_fail(
      l, TN_EINVAL, NULL,
      "%s: id %lld at position %lld, expected 0 .. %lld: the table has %lld rows; check the vocabulary of "
      "the data against the embedding's size",
      op, (long long)embedding_id(&l->in[0], invalid), (long long)invalid, (long long)(rows - 1),
      (long long)rows);
}

static int64_t embedding_rows_per_chunk(size_t row_bytes) {
  return row_bytes < CHUNK_BYTES ? (int64_t)(CHUNK_BYTES / (row_bytes + 1)) + 1 : 1;
}

/* ---- embedding ---- */

typedef struct embedding_lookup {
  const tn_view *ids, *table, *y;
  int64_t n, step;
  size_t row_bytes;
} embedding_lookup;

static void embedding_lookup_chunk(void *arg, int64_t chunk) {
  const embedding_lookup *j = arg;
  int64_t end = least(j->n, (chunk + 1) * j->step);
  for (int64_t i = chunk * j->step; i < end; i++)
    memcpy((uint8_t *)j->y->data + (size_t)i * j->row_bytes,
           (const uint8_t *)j->table->data + (size_t)embedding_id(j->ids, i) * j->row_bytes, j->row_bytes);
}

static tn_status embedding_launch(tn_launch *l) {
  const tn_type *table = &l->in[1].type;
  embedding_lookup j = {&l->in[0], &l->in[1], &l->out[0], tn_type_count(&l->in[0].type), 0, 0};
  tn_status status = embedding_check_ids(l, "embedding", table->dims[0]);
  if (status != TN_OK || tn_type_count(&l->out[0].type) == 0) return status;
  j.row_bytes = tn_type_bytes(&l->out[0].type) / (size_t)j.n;
  j.step = embedding_rows_per_chunk(j.row_bytes);
  tn_parallel(l, (j.n + j.step - 1) / j.step, embedding_lookup_chunk, &j);
  return TN_OK;
}

/* ---- embedding_grad ---- */

typedef struct embedding_scatter {
  const tn_view *dy, *dtable;
  const int64_t *starts; /* by row: its first entry of `order`; rows + 1 entries */
  const int64_t *order;  /* positions of dy, sorted by row */
  int64_t rows, width, step;
} embedding_scatter;

static TN_CPU_CLONES void embedding_add_f32(const float *x, double *sum, int64_t n) {
  for (int64_t k = 0; k < n; k++) sum[k] += (double)x[k];
}

static TN_CPU_CLONES void embedding_add_f64(const double *x, double *sum, int64_t n) {
  for (int64_t k = 0; k < n; k++) sum[k] += x[k];
}

static void embedding_store(const tn_view *to, int64_t at, const double *sum, int64_t n) {
  float narrow[TN_TILE];
  if (to->type.dtype == TN_F64) {
    memcpy((double *)to->data + at, sum, (size_t)n * sizeof *sum);
    return;
  }
  float *f32 = to->type.dtype == TN_F32 ? (float *)to->data + at : narrow;
  for (int64_t k = 0; k < n; k++) f32[k] = (float)sum[k];
  if (f32 == narrow) tn_cpu_narrow(to->type.dtype, narrow, tn_cpu_at(to->data, to->type.dtype, at), n);
}

/* Sums columns column .. column + n - 1 of a row with at least one position. */
static void embedding_sum_columns(const embedding_scatter *j, int64_t row, int64_t column, int64_t n) {
  double sum[TN_TILE] = {0};
  float tile[TN_TILE];
  for (int64_t i = j->starts[row]; i < j->starts[row + 1]; i++) {
    int64_t at = j->order[i] * j->width + column;
    if (j->dy->type.dtype == TN_F64)
      embedding_add_f64((const double *)j->dy->data + at, sum, n);
    else
      embedding_add_f32(tn_cpu_f32(j->dy->type.dtype, j->dy->data, at, n, tile), sum, n);
  }
  embedding_store(j->dtable, row * j->width + column, sum, n);
}

static void embedding_scatter_chunk(void *arg, int64_t chunk) {
  const embedding_scatter *j = arg;
  size_t size = tn_dtype_size(j->dtable->type.dtype);
  int64_t end = least(j->rows, (chunk + 1) * j->step);
  for (int64_t row = chunk * j->step; row < end; row++) {
    if (j->starts[row] == j->starts[row + 1]) {
      memset((uint8_t *)j->dtable->data + (size_t)(row * j->width) * size, 0, (size_t)j->width * size);
      continue;
    }
    for (int64_t column = 0; column < j->width; column += TN_TILE)
      embedding_sum_columns(j, row, column, least(TN_TILE, j->width - column));
  }
}

/* Counting sort. starts[r + 1] counts the positions of row r, then becomes the start of row r, and advances
 * to the start of row r + 1 while the positions are written. */
static void embedding_sort(const tn_view *ids, int64_t rows, int64_t *starts, int64_t *order) {
  int64_t n = tn_type_count(&ids->type), sum = 0;
  memset(starts, 0, ((size_t)rows + 1) * sizeof *starts);
  for (int64_t i = 0; i < n; i++) starts[embedding_id(ids, i) + 1]++;
  for (int64_t r = 1; r <= rows; r++) {
    int64_t count = starts[r];
    starts[r] = sum;
    sum += count;
  }
  for (int64_t i = 0; i < n; i++) order[starts[embedding_id(ids, i) + 1]++] = i;
}

static tn_status embedding_grad_launch(tn_launch *l) {
  const tn_type *table = &l->out[0].type;
  embedding_scatter j = {
      .dy = &l->in[1], .dtable = &l->out[0], .rows = table->dims[0], .width = table->dims[1]};
  int64_t *starts = l->workspace, *order = starts + j.rows + 1;
  tn_status status = embedding_check_ids(l, "embedding_grad", j.rows);
  if (status != TN_OK || tn_type_count(table) == 0) return status;
  embedding_sort(&l->in[0], j.rows, starts, order);
  j.starts = starts;
  j.order = order;
  j.step = embedding_rows_per_chunk((size_t)j.width * tn_dtype_size(table->dtype));
  tn_parallel(l, (j.rows + j.step - 1) / j.step, embedding_scatter_chunk, &j);
  return TN_OK;
}

/* ---- query ---- */

static tn_status embedding_offer(tn_query *q, const char *name, int64_t workspace) {
  const tn_match *m = q->match;
  if (tn_dtype_is_float(m->in[0]->dtype))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "the ids are %s, expected an integer type",
                   tn_dtype_name(m->in[0]->dtype));
  return tn_offer(q, (tn_variant){.name = name, .workspace_bytes = workspace});
}

static tn_status embedding_query(tn_query *q) { return embedding_offer(q, "copy rows", 0); }

static tn_status embedding_grad_query(tn_query *q) {
  const tn_match *m = q->match;
  int64_t words = m->out[0]->dims[0] + 1 + tn_type_count(m->in[0]);
  if (!tn_dtype_is_float(m->in[1]->dtype))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "dy is %s, expected a float type",
                   tn_dtype_name(m->in[1]->dtype));
  return embedding_offer(q, "sorted", words * (int64_t)sizeof(int64_t));
}

TN_DEFINE_KERNEL(cpu, embedding, "embedding", "y = embedding(ids, table)", "copies rows of a table",
                 .query = embedding_query, .launch = embedding_launch);

TN_DEFINE_KERNEL(cpu, embedding_grad, "embedding_grad", "dtable = embedding_grad(ids, dy)",
                 "sorts the positions by row, then sums each row", .query = embedding_grad_query,
                 .launch = embedding_grad_launch);
