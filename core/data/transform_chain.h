/* core/data/transform_chain.h: the stages between source and batch: the transforms with their fields and
 * types, determined before any sample is read. */
#ifndef TN_CORE_DATA_TRANSFORM_CHAIN_H
#define TN_CORE_DATA_TRANSFORM_CHAIN_H

#include "core/base/arena.h"
#include "core/data/loader.h"

typedef struct tn_byte_table tn_byte_table;

/* One transform of the chain. */
typedef struct tn_stage {
  const tn_transform *transform;
  const void *options;
  const char *where;
  int32_t position;     /* index in the configured list; part of the random key */
  int32_t n;            /* number of fields that it reads and replaces */
  int32_t *field;       /* their indices */
  tn_type *in, *out;    /* -1: varies; with the batch dimension for stages per batch */
  bool varies;          /* the size of a result depends on the sample */
  tn_byte_table *table; /* replaces this stage and the following ones; NULL: each stage is applied */
} tn_stage;

typedef struct tn_transform_chain {
  tn_arena arena;
  int32_t n_fields;
  tn_field *source; /* fields as the source describes them */
  tn_field *fields; /* fields as they appear in the batch */
  tn_type *sampled; /* per field: type after the stages per sample, without the batch */
  tn_stage *stages; /* those per sample first, then those per batch */
  int32_t n_stages, n_sample_stages;
  int32_t most_fields; /* most fields of one stage */
} tn_transform_chain;

/* Creates the chain. Messages go to env. The objects that the description and the options point to must
 * outlive the chain. */
tn_status tn_transform_chain_create(tn_env *env, const tn_loader_options *options,
                                    const tn_description *description, tn_transform_chain *chain);
void tn_transform_chain_free(tn_transform_chain *chain);

/* Whether an actual type matches a described type with varying dimensions. */
bool tn_transform_chain_fits(const tn_type *described, const tn_type *actual);

/* The last stage in [from, to) that writes a field, or -1. */
int32_t tn_transform_chain_last_stage(const tn_transform_chain *chain, int32_t from, int32_t to,
                                      int32_t field);

/* Bytes of a value, SIZE_MAX on overflow. */
size_t tn_transform_chain_bytes(const tn_type *type);

#endif
