/* core/data/loader.h: batches from a source, through transforms, by worker threads, into memory that
 * somebody else gave (an executor's slots). Order and content depend on seed and epoch only, never
 * on the number of workers.
 *
 * Shards. Several loaders may share an epoch's order, one for each rank: it is cut into blocks of `batch`
 * samples, and batch n of a shard is block n * shards + shard. So what the shards' batches of one number
 * hold together, in the order of the shards, is what one loader with a batch of all their sizes reads. */
#ifndef TN_CORE_DATA_LOADER_H
#define TN_CORE_DATA_LOADER_H

#include "core/plugin/registry.h"
#include "tenon/plugin/source.h"
#include "tenon/plugin/transform.h"

/* A transform with its options, in list order. */
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
  const tn_transform_use *transforms;
  int32_t n_transforms;
  int64_t batch;         /* of this shard */
  int32_t shard, shards; /* 0 shards: the only one */
  /* An update takes so many batches of every shard (0: one): an epoch has a whole number of updates. */
  int32_t accumulate;
  int32_t workers;        /* 0: the caller's thread reads */
  int32_t prefetch;       /* batches ahead; at least 1 with workers */
  bool shuffle, training; /* shuffle: finite sources only, the others are fresh anyway; training:
                             training_only transforms take part, and keys depend on the epoch */
  bool pad_last;         /* the short last update is padded with its first sample at weight 0, else dropped */
  int64_t epoch_samples; /* an epoch of an endless source, or to cut a finite one short; 0: what the
                            source says */
  uint64_t seed;
  int64_t cache_bytes; /* memory for samples of a source that lets them be kept; 0: none is */
  const char *where;   /* "file.ini:14" of the source, for messages */
} tn_loader_options;

typedef struct tn_loader tn_loader;

/* Opens the source, infers field types through the transforms. Every varying dimension must be fixed
 * by a transform: otherwise TN_EINVAL names field and remedy. What the options point to, and env, to
 * which all messages go, must outlive the loader. */
tn_status tn_loader_create(tn_env *env, const tn_loader_options *options, tn_loader **loader);
void tn_loader_destroy(tn_loader *loader);

/* Fields as they arrive in a batch (type without batch). */
int32_t tn_loader_field_count(const tn_loader *loader);
const tn_field *tn_loader_field(const tn_loader *loader, int32_t i);
int64_t tn_loader_samples(const tn_loader *loader); /* per epoch */
int64_t tn_loader_batches(const tn_loader *loader); /* per epoch, of this shard; the same for every shard */

/* Where a batch goes: one address per field ([batch, ...] row-major), and the extras (may be NULL). */
typedef struct tn_batch {
  void *const *fields;
  float *weights; /* [batch]: 1, or 0 for padding */
  int64_t *ids;   /* [batch]: sample indices */
} tn_batch;

/* Starts (or restarts) an epoch at batch `first` in O(1). Any batches asked for before are void. */
tn_status tn_loader_start(tn_loader *loader, int64_t epoch, int64_t first);
/* Hands the loader memory for the next batch in order; workers begin filling it at once. At most
 * `prefetch` batches may be pending. */
tn_status tn_loader_submit(tn_loader *loader, const tn_batch *batch);
/* Waits for the oldest submitted batch. *samples is how many are real; a shard's share of the last batch
 * may have none. TN_EOF: none left in this epoch (the submission is returned unused). An unreadable sample:
 * its error, with its index. */
tn_status tn_loader_wait(tn_loader *loader, int64_t *samples);
/* Samples of the source, how many of them are kept in memory by now, and how much that takes. */
typedef struct tn_loader_memory {
  int64_t count, kept, bytes;
  bool keeps, full; /* whether samples are kept at all; whether there is no room for more */
} tn_loader_memory;
tn_loader_memory tn_loader_kept(const tn_loader *loader);
/* Seconds that tn_loader_wait has blocked since start: the data stall. */
double tn_loader_stall_s(const tn_loader *loader);

/* A pseudo-random permutation of 0 .. n-1 evaluated point by point, so that shuffling needs no memory
 * and resuming no replay: a balanced Feistel network with cycle walking (Black and Rogaway, CT-RSA
 * 2002) over Philox. */
int64_t tn_permute(uint64_t key, int64_t n, int64_t i);

#endif
