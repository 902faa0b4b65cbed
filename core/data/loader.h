/* core/data/loader.h: loads batches from a source, through transforms, on worker threads, into memory of
 * the caller (the executor's input slots). Order and content depend only on seed and epoch, not on the
 * number of workers.
 *
 * Shards. Several loaders, one per rank, can share the order of an epoch. The epoch is split into blocks
 * of `batch` samples, and batch n of a shard is block n * shards + shard. The n-th batches of all shards
 * together, in the order of the shards, equal the n-th batch of a single loader with the sum of their
 * sizes. */
#pragma once

#include "core/base/timeline.h"
#include "core/data/loader_options.h"
#include "core/plugin/registry.h"

typedef struct tn_loader tn_loader;

/* Opens the source and infers the types of the fields through the transforms. A dimension that varies and
 * is not fixed by a transform is TN_EINVAL with field and remedy. The objects that `options` points to
 * must outlive the loader, as must env, which receives all messages. */
tn_status tn_loader_create(tn_env *env, const tn_loader_options *options, tn_loader **loader);
void tn_loader_destroy(tn_loader *loader);

/* The fields of a batch; types are without the batch dimension. The source's fields come first, then one
 * field of random choices for each transform on the device that makes some (transform_chain.h). */
int32_t tn_loader_field_count(const tn_loader *loader);
const tn_field *tn_loader_field(const tn_loader *loader, int32_t i);
/* The transforms, of which the device applies the last ones. */
const struct tn_transform_chain *tn_loader_chain(const tn_loader *loader);
/* Whether samples are drawn by the weights that the source gives. */
bool tn_loader_is_weighted(const tn_loader *loader);
/* The lists of classes that a balanced loader draws from; NULL: it is not balanced. */
const struct tn_balance *tn_loader_balance(const tn_loader *loader);
int64_t tn_loader_samples(const tn_loader *loader); /* per epoch */
int64_t tn_loader_batches(const tn_loader *loader); /* per epoch and shard */

/* A name of sample `index` for people, such as its file: the source's, or "sample 7" where it gives none. Cut
 * at `size` bytes. */
tn_status tn_loader_sample_name(tn_loader *loader, int64_t index, char *text, size_t size);

/* The class of sample `index` (tn_source.class_of); TN_EUNSUPPORTED, without a text: the source tells none.
 */
tn_status tn_loader_class_of(tn_loader *loader, int64_t index, int64_t *number);

/* The learnt state of the source (tn_source.learnt), valid until the loader is destroyed; NULL in
 * *text: nothing. */
tn_status tn_loader_learnt(tn_loader *loader, const char **text);

/* Starts or restarts an epoch at batch `first` in O(1). Batches submitted before are cancelled. */
tn_status tn_loader_start(tn_loader *loader, int64_t epoch, int64_t first);
/* An epoch whose updates differ in their batches: the first batch that is read, the batches of the epoch with
 * those of padding alone, and the first batch of its last update, whose first sample padding repeats. */
typedef struct tn_epoch_updates {
  int64_t first, batches, last; /* last: -1: every update has options.accumulate batches */
} tn_epoch_updates;
tn_status tn_loader_start_updates(tn_loader *loader, int64_t epoch, const tn_epoch_updates *updates);
/* Memory for a batch of `samples` of every field, and for their weights, from the arena. Messages go to its
 * env. */
tn_status tn_loader_new_batch(const tn_loader *loader, tn_arena *arena, int64_t samples, tn_batch *batch);
/* Submits memory for the next batch in order; workers begin to fill it at once. At most `prefetch` batches
 * may be pending. */
tn_status tn_loader_submit(tn_loader *loader, const tn_batch *batch);
/* Waits for the oldest submitted batch. *samples is its number of real samples, possibly 0 for a shard at
 * the end of an epoch. TN_EOF: the epoch is over and the memory unused. TN_ESTOPPED: options.stop was set
 * before the batch was complete; it may remain submitted, with workers that still write to its memory until
 * tn_loader_start or tn_loader_destroy. For a sample that cannot be read, its error with its index. */
tn_status tn_loader_wait(tn_loader *loader, int64_t *samples);
/* The number of the length, of those of the options, that the batch of the last tn_loader_wait has; 0 without
 * lengths. */
int32_t tn_loader_length(const tn_loader *loader);
/* The state of the cache: samples of the source, cached samples, bytes in use. */
typedef struct tn_loader_cache_info {
  int64_t count, kept, bytes;
  bool keeps, full; /* whether samples are cached; whether the cache is full */
} tn_loader_cache_info;
tn_loader_cache_info tn_loader_cache(const tn_loader *loader);
/* Seconds for which tn_loader_wait has blocked since tn_loader_start: the data stall. */
double tn_loader_stall_s(const tn_loader *loader);

/* Profiling: from now on each part of a batch that a thread reads and transforms is a span of the timeline;
 * NULL: no more. Threads may add spans until the tn_loader_start or tn_loader_destroy that follows. */
void tn_loader_profile(tn_loader *loader, tn_timeline *timeline);
