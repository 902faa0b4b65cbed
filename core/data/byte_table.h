/* core/data/byte_table.h: lookup tables for pointwise transforms of bytes. A byte has 256 values, so
 * consecutive pointwise transforms are evaluated once for every value and channel, and then applied as one
 * lookup with the same bits. */
#pragma once

#include "core/data/transform_chain.h"

struct tn_byte_table {
  int32_t n_stages; /* stages that the table replaces */
  int32_t dtype;    /* type of the entries */
  int64_t channels; /* rows of 256 entries; 1: one row for all channels */
  const void *entries;
};

/* Makes tables for the runs of stages that allow it, in the chain's arena. Other stages are unchanged. */
tn_status tn_byte_tables_make(tn_env *env, tn_transform_chain *chain);

/* Applies the table to the value of a field; `type` is the type of `in`. */
void tn_byte_table_apply(const tn_byte_table *table, const tn_type *type, const void *in, void *out);
