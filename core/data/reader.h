/* core/data/reader.h: one sample at a time, from the source through the stages per sample to its place
 * in a batch. Every thread that reads has a reader of its own, with its own handle and scratch
 * memory, so that reading shares nothing. */
#ifndef TN_CORE_DATA_READER_H
#define TN_CORE_DATA_READER_H

#include "core/data/sample_cache.h"
#include "core/plugin/handles.h"

typedef struct tn_reader_field {
  int32_t last_stage; /* the stage whose result goes to the target; -1: the source's */
  void *target;       /* in the batch */
  const void *data;   /* where the value lies now; NULL: the source has not asked yet */
  tn_type type;       /* of that value, every dimension known */
  void *scratch[2];   /* intermediate values, used in turn */
  size_t capacity[2];
} tn_reader_field;

typedef struct tn_reader {
  tn_sample_host host; /* the handle that sources get; comes first, for the way back from it */
  tn_error_record record;
  const tn_chain *chain;
  tn_reader_field *fields;
  tn_type *in_type, *out_type; /* of one call, most_fields each */
  const void **in;
  void **out;
  tn_scratch source_scratch;
  tn_scratch *stage_scratch; /* [n_sample_stages]: what the transforms keep */
  tn_kept *kept;             /* [n_fields], of one sample */
  tn_cache *cache;           /* shared by all readers; NULL: samples are not kept */
  tn_cache_hand hand;
} tn_reader;

/* The reader must not move afterwards: handles point into it. On failure the text is in env, and the
 * reader may be freed. `cache` may be NULL. */
tn_status tn_reader_init(tn_env *env, const tn_chain *chain, tn_cache *cache, tn_reader *reader);
void tn_reader_finish(tn_reader *reader);

static inline tn_env *tn_reader_env(tn_reader *reader) { return &reader->host.pub.env; }

/* The next sample. Field i goes to targets[i], `place` values into the batch. */
void tn_reader_aim(tn_reader *reader, int64_t index, uint64_t key, void *const *targets, int64_t place);
/* The two halves of reading it; the explanation of a failure is in the reader's env. A streaming
 * source's `next` is called instead of `read` if `source` has it, and nothing is for a sample in the cache.
 */
tn_status tn_reader_read(tn_reader *reader, const tn_source *source, void *self);
tn_status tn_reader_transform(tn_reader *reader);

#endif
