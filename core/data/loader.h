/* core/data/loader.h: loads batches from a source, through transforms, on worker threads, into memory of
 * the caller (the executor's input slots). Order and content depend only on seed and epoch, not on the
 * number of workers.
 *
 * Shards. Several loaders, one per rank, can share the order of an epoch. The epoch is split into blocks
 * of `batch` samples, and batch n of a shard is block n * shards + shard. The n-th batches of all shards
 * together, in the order of the shards, equal the n-th batch of a single loader with the sum of their
 * sizes. */
#ifndef TN_CORE_DATA_LOADER_H
#define TN_CORE_DATA_LOADER_H

#include <stdatomic.h>

#include "core/base/timeline.h"
#include "core/plugin/registry.h"
#include "tenon/plugin/source.h"
#include "tenon/plugin/transform.h"

enum { TN_DEVICE_TRANSFORMS_AUTO = -1 };

/* A shorter epoch: so many batches of all shards, rounded down to whole updates, or this part of the updates,
 * rounded down; at least one update, and no more than there are. {0, 0}: all. */
typedef struct tn_epoch_limit {
  int64_t batches;
  double part;
} tn_epoch_limit;

/* A transform with its options. */
typedef struct tn_transform_use {
  const tn_transform *transform;
  const void *options;
  const char *const *fields; /* names after `<-`; NULL: the first input field */
  int32_t n_fields;
  const char *where;
} tn_transform_use;

typedef struct tn_loader_options {
  const tn_source *source;
  const void *source_options;
  int32_t split; /* TN_SPLIT_... */
  /* Files and folders that the source reads in place of its data (tn_source.open_files); 0: none. */
  const char *const *files;
  int32_t n_files;
  const tn_transform_use *transforms;
  int32_t n_transforms;
  bool inputs_alone; /* the source may lack targets: transforms leave out fields that it has not */
  /* How many of the last transforms the device applies, at most: the batch then holds their operands. Or
   * TN_DEVICE_TRANSFORMS_AUTO: as many as give the smallest batch. */
  int32_t device_transforms;
  int64_t batch;         /* of this shard */
  int32_t shard, shards; /* 0 shards: one shard */
  /* Batches of every shard per update (0: one); an epoch has an integer number of updates. */
  int32_t accumulate;
  int32_t workers;        /* 0: the calling thread reads */
  int32_t prefetch;       /* batches ahead; at least 1 with workers */
  bool shuffle, training; /* shuffle: finite sources only. training: training_only transforms are applied, and
                             random keys depend on the epoch */
  bool pad_last; /* the incomplete last update is padded with its first sample at weight 0; otherwise it is
                    dropped */
  /* The samples of an epoch; 0: the source's own number. A finite source has at least so many. Of fewer, a
   * shuffled epoch takes the first of its order; without shuffling, every epoch takes the same samples,
   * spread over the source (tn_sample_spread). A stream gives its first ones. */
  int64_t epoch_samples;
  const char *epoch_key; /* the key that sets them, for messages; NULL: epoch */
  tn_epoch_limit limit;  /* of the epoch that epoch_samples describes */
  /* Every class equally often in a shuffled epoch (balance.h). A sample that comes several times in an epoch
   * has another random key each time. */
  bool balance;
  uint64_t seed;
  int64_t cache_bytes; /* memory for cached samples, if the source allows it; 0: no cache */
  const char *where;   /* "file.ini:14" of the source, for messages */
  /* Not 0: the run is to stop, so samples that are not read yet are not read any more, and tn_loader_wait
   * waits no longer. NULL: no such request. With a patience a batch is completed and waited for as ever, but
   * a wait or a sample that has taken so many seconds by then ends as without. */
  const atomic_int *stop;
  double patience_s;
} tn_loader_options;

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
/* The lists of classes that a balanced loader draws from; NULL: it is not balanced. */
const struct tn_balance *tn_loader_balance(const tn_loader *loader);
int64_t tn_loader_samples(const tn_loader *loader); /* per epoch */
int64_t tn_loader_batches(const tn_loader *loader); /* per epoch and shard */

/* A name of sample `index` for people, such as its file: the source's, or "sample 7" where it gives none. Cut
 * at `size` bytes. */
tn_status tn_loader_sample_name(tn_loader *loader, int64_t index, char *text, size_t size);

/* The destination of a batch: one address per field ([batch, ...] row-major); weights and ids may be NULL. */
typedef struct tn_batch {
  void *const *fields;
  float *weights; /* [batch]: 1, or 0 for padding */
  int64_t *ids;   /* [batch]: sample indices */
} tn_batch;

/* Starts or restarts an epoch at batch `first` in O(1). Batches submitted before are cancelled. */
tn_status tn_loader_start(tn_loader *loader, int64_t epoch, int64_t first);
/* Submits memory for the next batch in order; workers begin to fill it at once. At most `prefetch` batches
 * may be pending. */
tn_status tn_loader_submit(tn_loader *loader, const tn_batch *batch);
/* Waits for the oldest submitted batch. *samples is its number of real samples, possibly 0 for a shard at
 * the end of an epoch. TN_EOF: the epoch is over and the memory unused. TN_ESTOPPED: options.stop was set
 * before the batch was complete; it may remain submitted, with workers that still write to its memory until
 * tn_loader_start or tn_loader_destroy. For a sample that cannot be read, its error with its index. */
tn_status tn_loader_wait(tn_loader *loader, int64_t *samples);
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

/* A pseudo-random permutation of 0 .. n-1, evaluated one index at a time, so that shuffling needs no
 * memory and resuming no replay: a balanced Feistel network with cycle walking (Black and Rogaway, CT-RSA
 * 2002) over Philox. */
int64_t tn_permute(uint64_t key, int64_t n, int64_t i);

/* Number i of m different indices of 0 .. n-1 in rising order, m <= n: one drawn from each of m equal parts.
 * Where a source lists its samples by class, each class has its share. */
int64_t tn_sample_spread(uint64_t key, int64_t n, int64_t m, int64_t i);

#endif
