/* backends/shared/reorder_tables.h: a copy of a tensor to a layout with blocks. The offset of an element in
 * the operand is a sum of one term for each dimension; a table for each dimension has the term of every
 * coordinate. */
#pragma once

#include "tenon/plugin/storage.h"

typedef struct tn_reorder_tables {
  tn_type type;
  tn_storage to;
  const int64_t *offset[TN_MAX_RANK]; /* in elements of the operand, by coordinate */
} tn_reorder_tables;

/* The number of entries of all tables. */
size_t tn_reorder_tables_entries(const tn_type *type);
/* Fills `entries`, which the tables point into. */
void tn_reorder_tables_init(tn_reorder_tables *tables, const tn_type *type, const tn_storage *from,
                            const tn_storage *to, int64_t *entries);
/* The rows of the result: the positions along its innermost axis. */
int64_t tn_reorder_tables_rows(const tn_reorder_tables *tables);
/* Writes one row of the result, its padding with zeros. Rows may be written by several threads at once. */
void tn_reorder_tables_write_row(const tn_reorder_tables *tables, void *to, const void *from, int64_t row);
