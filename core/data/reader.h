/* core/data/reader.h: moves one sample at a time from the source through the stages per sample into a
 * batch. Every reading thread has its own reader, with its own handle and scratch memory, so that readers
 * share nothing but the cache. */
#pragma once

#include <stdatomic.h>

#include "core/data/sample_cache.h"
#include "core/plugin/handles.h"

typedef struct tn_reader_field {
  bool padded;        /* the value is copied to `target` behind all stages (lengths.h) */
  int32_t last_stage; /* the stage that writes to `target`; -1: the source does */
  void *target;       /* in the batch */
  const void *data;   /* the current value; NULL: not written by the source yet */
  tn_type type;       /* type of that value, without varying dimensions */
  void *scratch[2];   /* two buffers for intermediate values, used alternately */
  size_t capacity[2];
} tn_reader_field;

typedef struct tn_reader {
  tn_sample_host host; /* the handle that sources get; first member, so that give_field can convert it back */
  tn_error_record record;
  const tn_transform_chain *chain;
  tn_reader_field *fields;
  tn_type *in_type, *out_type; /* of one call, [most_fields] each */
  const void **in;
  void **out;
  tn_scratch source_scratch;
  tn_scratch *stage_scratch; /* [n_sample_stages + n_device_stages]: memory of the transforms */
  int32_t **draws;           /* [n_outputs - n_fields]: in the batch */
  int32_t *length;           /* in the batch; NULL: the source gives it, or no dimension varies */
  tn_cached_field *cached;   /* [n_fields], fields of one cached sample */
  tn_sample_cache *cache;    /* shared by all readers; NULL: samples are not cached */
  tn_sample_cache_writer writer;
  const atomic_bool *cancelled; /* the batch is no longer needed; NULL: always needed */
  const atomic_int *stop;       /* not 0: the run is to stop; NULL: no such request */
  double patience_s, began_s;   /* tn_loader_options; when the sample was begun */
} tn_reader;

/* Initializes a reader, which must not move afterwards, because handles point into it. On failure the
 * message is in env, and the reader may be finished. `cache` may be NULL. */
tn_status tn_reader_init(tn_env *env, const tn_transform_chain *chain, tn_sample_cache *cache,
                         tn_reader *reader);
void tn_reader_finish(tn_reader *reader);

static inline tn_env *tn_reader_env(tn_reader *reader) { return &reader->host.pub.env; }

/* Selects the next sample. Field i goes to row `row` of targets[i]. */
void tn_reader_aim(tn_reader *reader, int64_t index, uint64_t key, void *const *targets, int64_t row);
/* Read the selected sample and transform it; on failure the message is in the reader's env. tn_reader_read
 * calls `next` of a streaming source and `read` of others; a cached sample calls neither. */
tn_status tn_reader_read(tn_reader *reader, const tn_source *source, void *self);
tn_status tn_reader_transform(tn_reader *reader);
