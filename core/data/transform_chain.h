/* core/data/transform_chain.h: the way of a sample from the source to the batch, fixed before anything is
 * read: which transforms take part, on which fields, and with which types. */
#ifndef TN_CORE_DATA_TRANSFORM_CHAIN_H
#define TN_CORE_DATA_TRANSFORM_CHAIN_H

#include "core/base/arena.h"
#include "core/data/loader.h"

typedef struct tn_table tn_table;

/* One transform at work. */
typedef struct tn_stage {
  const tn_transform *transform;
  const void *options;
  const char *where;
  int32_t position;  /* in the list as written: what its random key is made from */
  int32_t n;         /* fields that it takes and replaces */
  int32_t *field;    /* their numbers */
  tn_type *in, *out; /* -1 varies; stages per batch have the batch in front */
  bool varies;       /* some result's size is known only with the sample */
  tn_table *table;   /* what this stage and those behind it do, as a table; NULL: each on its own */
} tn_stage;

typedef struct tn_chain {
  tn_arena arena;
  int32_t n_fields;
  tn_field *source; /* fields as the source describes them */
  tn_field *fields; /* as they arrive in the batch */
  tn_type *sampled; /* per field: its type after the stages per sample, without the batch */
  tn_stage *stages; /* those per sample first, then those per batch */
  int32_t n_stages, n_sample_stages;
  int32_t most_fields; /* that a stage takes */
} tn_chain;

/* Messages go to env. What the description and the options point to must outlive the chain. */
tn_status tn_chain_create(tn_env *env, const tn_loader_options *options, const tn_description *description,
                          tn_chain *chain);
void tn_chain_free(tn_chain *chain);

/* Whether an actual type is one of those that a type with open dimensions stands for. */
bool tn_chain_fits(const tn_type *described, const tn_type *actual);

/* The last stage in [from, to) that writes a field, or -1. */
int32_t tn_chain_last_stage(const tn_chain *chain, int32_t from, int32_t to, int32_t field);

/* Bytes of a value, SIZE_MAX on overflow. */
size_t tn_chain_bytes(const tn_type *type);

#endif
