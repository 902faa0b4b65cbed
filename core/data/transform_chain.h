/* core/data/transform_chain.h: the stages between source and batch: the transforms with their fields and
 * types, determined before any sample is read. */
#pragma once

#include "core/base/arena.h"
#include "core/data/loader_options.h"

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
  tn_type *before;      /* [n_fields] of the chain: the types in front of this stage */
  int32_t draws;        /* on the device: the field with its random choices; -1: it makes none */
} tn_stage;

typedef struct tn_transform_chain {
  tn_arena arena;
  int32_t n_fields;
  tn_field *source; /* fields as the source describes them */
  tn_field *fields; /* [n_outputs] as they appear in the batch: the source's, then those of draws */
  tn_type *sampled; /* [n_outputs]: type after the host's stages per sample, without the batch */
  int32_t n_outputs;
  tn_stage *stages; /* the host's, per sample first, then per batch; then those of the device */
  int32_t n_stages, n_sample_stages;
  int32_t n_device_stages;
  const char *not_on_device; /* why the host's last stage is not on the device; "" if none is asked for */
  int32_t most_fields;       /* most fields of one stage */
  const int64_t *lengths;    /* of the options */
  const char *where;         /* of the source, for messages about lengths */
  int32_t n_lengths;         /* 0: no dimension varies between batches, and the next two are unset */
  int32_t *axis;             /* [n_fields]: the dimension that is padded; -1: none */
  int32_t length;            /* the field with the sizes of samples; from n_fields on: the host writes it */
} tn_transform_chain;

/* Creates the chain, with all stages on the host. Messages go to env. The objects that the description and
 * the options point to must outlive the chain. */
tn_status tn_transform_chain_create(tn_env *env, const tn_loader_options *options,
                                    const tn_description *description, tn_transform_chain *chain);
void tn_transform_chain_free(tn_transform_chain *chain);

/* Whether an actual type matches a described type with varying dimensions. */
bool tn_transform_chain_fits(const tn_type *described, const tn_type *actual);

/* The last stage in [from, to) that writes a field, or -1. */
int32_t tn_transform_chain_last_stage(const tn_transform_chain *chain, int32_t from, int32_t to,
                                      int32_t field);

/* The stages on the device, n_device_stages of them. */
static inline const tn_stage *tn_transform_chain_device_stages(const tn_transform_chain *chain) {
  return chain->stages + chain->n_stages;
}

/* device_stages.c: moves the last stages to the device, as `options` asks. Called once, before tables are
 * made (byte_table.h). */
tn_status tn_transform_chain_place(tn_env *env, const tn_loader_options *options, tn_transform_chain *chain);

/* Whether the device applies the transform at this position of the configured list. */
bool tn_transform_chain_on_device(const tn_transform_chain *chain, int32_t position);
/* Whether no dimension of the types varies. */
bool tn_transform_chain_is_fixed(const tn_type *types, int32_t n);

/* Bytes of a value, SIZE_MAX on overflow. */
size_t tn_transform_chain_bytes(const tn_type *type);
