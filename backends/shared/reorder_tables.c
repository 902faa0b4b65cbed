/* backends/shared/reorder_tables.c: fills the tables, and gathers rows of the result through them. */
#include "backends/shared/reorder_tables.h"

#include <string.h>

typedef uint16_t __attribute__((may_alias)) reorder_word16;
typedef uint32_t __attribute__((may_alias)) reorder_word32;
typedef uint64_t __attribute__((may_alias)) reorder_word64;

/* Gathers n elements whose coordinates in one dimension rise by `step`; `offset` belongs to that dimension.
 */
#define REORDER_GATHER(name, WORD)                                                                           \
  static void name(WORD *to, const WORD *from, const int64_t *offset, int64_t step, int64_t n) {             \
    for (int64_t k = 0; k < n; k++) to[k] = from[offset[k * step]];                                          \
  }
REORDER_GATHER(reorder_gather_1, uint8_t)
REORDER_GATHER(reorder_gather_2, reorder_word16)
REORDER_GATHER(reorder_gather_4, reorder_word32)
REORDER_GATHER(reorder_gather_8, reorder_word64)

static void reorder_gather(size_t size, void *to, const void *from, const int64_t *offset, int64_t step,
                           int64_t n) {
  switch (size) {
  case 1: reorder_gather_1(to, from, offset, step, n); break;
  case 2: reorder_gather_2(to, from, offset, step, n); break;
  case 4: reorder_gather_4(to, from, offset, step, n); break;
  default: reorder_gather_8(to, from, offset, step, n); break;
  }
}

size_t tn_reorder_tables_entries(const tn_type *type) {
  size_t n = 0;
  for (int32_t i = 0; i < type->rank; i++) n += (size_t)type->dims[i];
  return n;
}

void tn_reorder_tables_init(tn_reorder_tables *tables, const tn_type *type, const tn_storage *from,
                            const tn_storage *to, int64_t *entries) {
  tables->type = *type;
  tables->to = *to;
  for (int32_t d = 0; d < type->rank; d++) {
    tables->offset[d] = entries;
    for (int64_t c = 0; c < type->dims[d]; c++) *entries++ = tn_storage_offset(from, d, c);
  }
}

int64_t tn_reorder_tables_rows(const tn_reorder_tables *tables) {
  return tables->to.count / tables->to.axis[tables->to.n - 1].extent;
}

void tn_reorder_tables_write_row(const tn_reorder_tables *tables, void *to, const void *from, int64_t row) {
  const tn_storage_axis *inner = &tables->to.axis[tables->to.n - 1];
  int64_t c[TN_MAX_RANK], base = 0, n = inner->extent;
  int64_t held = tn_storage_row(&tables->to, &tables->type, row, c);
  size_t size = tn_dtype_size(tables->type.dtype);
  uint8_t *end = (uint8_t *)to + (size_t)(row * n) * size;
  for (int32_t i = 0; i < tables->type.rank && held > 0; i++)
    if (i != inner->dim) base += tables->offset[i][c[i]];
  if (held > 0)
    reorder_gather(size, end, (const uint8_t *)from + (size_t)base * size,
                   tables->offset[inner->dim] + c[inner->dim], inner->scale, held);
  memset(end + (size_t)held * size, 0, (size_t)(n - held) * size);
}
