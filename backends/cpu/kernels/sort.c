/* backends/cpu/kernels/sort.c: sort and topk. The elements of a row become entries of an unsigned key, whose
 * order is that of the elements, and an index. Long rows are sorted by digits, short ones by insertion, and a
 * short prefix is selected with a heap (sort_typed.h). Equal elements keep their order, in descending order,
 * too, where the bits of the keys are inverted. */
#include "backends/shared/define_kernel.h"
#include "backends/cpu/kernels/common/rows.h"

#include <stdbool.h>
#include <string.h>

#include "tenon/attributes.h"

enum {
  SORT_SHORT = 32,     /* rows that are sorted by insertion */
  SORT_SELECT = 8,     /* a prefix of at most 1 / 8 of the row is selected */
  SORT_ON_STACK = 512, /* elements of a row that is sorted on the stack; longer ones need the workspace */
  SORT_CHUNKS = 16     /* of long rows, at most: each has its part of the workspace */
};

__extension__ typedef unsigned __int128 sort_wide;

#define ENTRY       uint64_t
#define KEY_BITS    32
#define TYPED(name) sort_32_##name
#include "backends/cpu/kernels/sort_typed.h"
#undef ENTRY
#undef KEY_BITS
#undef TYPED
#define ENTRY       sort_wide
#define KEY_BITS    64
#define TYPED(name) sort_64_##name
#include "backends/cpu/kernels/sort_typed.h"

typedef struct sort_functions {
  size_t entry;
  void (*make)(void *entries, const uint64_t *keys, int64_t at, int64_t n);
  void (*sort)(void *entries, void *other, int64_t n, int64_t k);
  void (*indices)(const void *entries, int64_t k, int32_t *index, int64_t stride);
} sort_functions;

static const sort_functions sort_widths[2] = {
    {sizeof(uint64_t), sort_32_make, sort_32_sort, sort_32_indices},
    {sizeof(sort_wide), sort_64_make, sort_64_sort, sort_64_indices}};

typedef struct sort_kernel {
  tn_rows rows;
  int64_t k, per_chunk, chunks;
  bool descending;
  const sort_functions *f;
} sort_kernel;

typedef struct sort_job {
  const sort_kernel *k;
  const tn_launch *l;
} sort_job;

/* ---- keys ---- */

/* Negative floats have their sign bit set: their order is inverted. NaN is above all, and -0 is 0. */
static uint64_t sort_key_f32(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  if (x == 0) bits = 0;
  return x != x ? UINT32_MAX : bits >> 31 ? ~bits : bits | 1u << 31;
}

static uint64_t sort_key_f64(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  if (x == 0) bits = 0;
  return x != x ? UINT64_MAX : bits >> 63 ? ~bits : bits | 1ull << 63;
}

/* Up to TN_TILE contiguous elements. */
static void sort_keys(int32_t dtype, const void *x, int64_t n, bool descending, uint64_t *keys) {
  const uint32_t *u32 = x;
  const uint64_t *u64 = x;
  uint32_t wide[TN_TILE];
  if (!tn_lane_is_stored(dtype)) {
    float tile[TN_TILE];
    memcpy(wide, tn_cpu_f32(dtype, x, 0, n, tile), (size_t)n * sizeof(float));
    u32 = wide;
  }
  for (int64_t i = 0; i < n; i++) {
    switch (dtype) {
    case TN_F64: keys[i] = sort_key_f64(u64[i]); break;
    case TN_I64: keys[i] = u64[i] ^ 1ull << 63; break;
    case TN_I32: keys[i] = u32[i] ^ 1u << 31; break;
    default: keys[i] = sort_key_f32(u32[i]); break;
    }
  }
  uint64_t all = tn_dtype_size(dtype) == 8 ? UINT64_MAX : UINT32_MAX;
  for (int64_t i = 0; i < n && descending; i++) keys[i] ^= all;
}

/* ---- rows ---- */

#define SORT_COPY(T)                                                                                         \
  for (int64_t i = 0; i < n; i++)                                                                            \
  ((T *)to)[i * pace] = ((const T *)from)[(index ? index[i * pace] : i) * stride]

/* Copies elements at a distance, in order or by their indices. */
static void sort_copy(size_t size, const void *from, int64_t stride, const int32_t *index, void *to,
                      int64_t pace, int64_t n) {
  if (size == 2)
    SORT_COPY(uint16_t);
  else if (size == 4)
    SORT_COPY(uint32_t);
  else
    SORT_COPY(uint64_t);
}

static void sort_make_entries(const sort_job *j, int64_t base, void *entries) {
  const tn_view *x = &j->l->in[0];
  int64_t inner = j->k->rows.inner, n = j->k->rows.n;
  uint64_t keys[TN_TILE], near[TN_TILE];
  for (int64_t at = 0, count; at < n; at += count) {
    count = least(n - at, TN_TILE);
    const void *from = tn_cpu_at(x->data, x->type.dtype, base + at * inner);
    if (inner > 1) sort_copy(tn_dtype_size(x->type.dtype), from, inner, NULL, near, 1, count);
    sort_keys(x->type.dtype, inner > 1 ? near : from, count, j->k->descending, keys);
    j->k->f->make(entries, keys, at, count);
  }
}

static void sort_row(const sort_job *j, int64_t row, void *entries, void *other) {
  const sort_kernel *s = j->k;
  const tn_view *x = &j->l->in[0], *y = &j->l->out[0];
  int64_t inner = s->rows.inner, outer = row / inner, column = row % inner;
  int64_t base = outer * s->rows.n * inner + column, to = outer * s->k * inner + column;
  int32_t *index = (int32_t *)j->l->out[1].data + to;
  sort_make_entries(j, base, entries);
  s->f->sort(entries, other, s->rows.n, s->k);
  s->f->indices(entries, s->k, index, inner);
  sort_copy(tn_dtype_size(x->type.dtype), tn_cpu_at(x->data, x->type.dtype, base), inner, index,
            tn_cpu_at(y->data, y->type.dtype, to), inner, s->k);
}

static void sort_chunk(void *arg, int64_t chunk) {
  const sort_job *j = arg;
  const sort_kernel *s = j->k;
  int64_t rows = s->rows.outer * s->rows.inner, row = chunk * s->per_chunk;
  int64_t end = least(row + s->per_chunk, rows);
  sort_wide stack[2 * SORT_ON_STACK];
  size_t bytes = (size_t)s->rows.n * s->f->entry;
  uint8_t *entries =
      s->rows.n <= SORT_ON_STACK ? (uint8_t *)stack : (uint8_t *)j->l->workspace + (size_t)chunk * 2 * bytes;
  for (; row < end; row++) sort_row(j, row, entries, entries + bytes);
}

/* ---- query, prepare, launch ---- */

static sort_kernel sort_kernel_of(const tn_node *n) {
  const tn_sort_attributes *a = n->attributes;
  bool all = strcmp(n->op, "sort") == 0;
  sort_kernel s = {.rows = tn_rows_of(n->in[0], a->axis), .descending = all ? a->descending : a->largest};
  int64_t rows = s.rows.outer * s.rows.inner;
  s.k = all ? s.rows.n : a->k;
  s.f = &sort_widths[tn_dtype_size(n->in[0]->dtype) == 8];
  s.per_chunk = s.rows.n > 0 ? TN_ROW_CHUNK / 8 / s.rows.n + 1 : 1;
  if (s.rows.n > SORT_ON_STACK) s.per_chunk = most(s.per_chunk, divide_up(rows, SORT_CHUNKS));
  s.chunks = divide_up(rows, s.per_chunk);
  return s;
}

static tn_status sort_launch(tn_launch *l) {
  sort_job j = {l->prepared, l};
  if (tn_type_count(&l->out[0].type) > 0) tn_parallel(l, j.k->chunks, sort_chunk, &j);
  return TN_OK;
}

static tn_status sort_query(tn_query *q) {
  sort_kernel s = sort_kernel_of(q->match->nodes[0].node);
  tn_variant v = {.name = s.k <= s.rows.n / SORT_SELECT ? "heap" : "digits", .prepared_bytes = sizeof s};
  if (s.rows.n > SORT_ON_STACK) v.workspace_bytes = s.chunks * 2 * s.rows.n * (int64_t)s.f->entry;
  return tn_offer(q, v);
}

static tn_status sort_prepare(tn_prepare *p, void **made) {
  sort_kernel *s = *made = tn_new(p, sizeof *s);
  if (s == NULL) return TN_ENOMEM;
  *s = sort_kernel_of(p->match->nodes[0].node);
  return TN_OK;
}

TN_DEFINE_KERNEL(cpu, sort, "sort", "y, index = sort(x)", "sorts along an axis",
                 TN_KERNEL_CALLBACKS_WITH(sort, tn_delete_prepared));
TN_DEFINE_KERNEL(cpu, topk, "topk", "y, index = topk(x)", "the largest or smallest elements along an axis",
                 TN_KERNEL_CALLBACKS_WITH(sort, tn_delete_prepared));
