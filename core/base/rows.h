/* core/base/rows.h: the type of a row, and of a batch of rows. */
#pragma once

#include <string.h>

#include "tenon/base.h"

/* `n` rows of a type. */
static inline tn_type tn_type_batched(const tn_type *row, int64_t n) {
  tn_type type = {row->dtype, row->rank + 1, {n}};
  memcpy(type.dims + 1, row->dims, (size_t)row->rank * sizeof *row->dims);
  return type;
}

/* A row of a type whose rank is 1 or more. */
static inline tn_type tn_type_row(const tn_type *batched) {
  tn_type type = {batched->dtype, batched->rank - 1, {0}};
  if (type.rank > 0) memcpy(type.dims, batched->dims + 1, (size_t)type.rank * sizeof *type.dims);
  return type;
}
