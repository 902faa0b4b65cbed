/* core/data/byte_table.h: pointwise transforms of bytes as one table. A byte has 256 values; so what any
 * number of such transforms in a row make of it, channel by channel, is found once, by themselves, and then
 * looked up: the same bits in one pass over the sample. */
#ifndef TN_CORE_DATA_BYTE_TABLE_H
#define TN_CORE_DATA_BYTE_TABLE_H

#include "core/data/transform_chain.h"

struct tn_table {
  int32_t n_stages; /* that it stands for */
  int32_t dtype;    /* of its entries */
  int64_t channels; /* rows of 256; 1: the same for all */
  const void *entries;
};

/* Makes tables for the chain's stages wherever they are possible, in its arena. Where they are not, nothing
 * changes. */
tn_status tn_table_find(tn_env *env, tn_chain *chain);

/* The value of a field, of a type that the table's first stage takes. */
void tn_table_apply(const tn_table *table, const tn_type *type, const void *in, void *out);

#endif
