/* core/data/loader_options.h: the data, transforms and order that a loader gets, and the memory of a batch.
 */
#pragma once

#include <stdatomic.h>

#include "core/data/fold.h"
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

/* A field whose samples differ in the size of one dimension. */
typedef struct tn_padded_field {
  const char *name;
  int32_t axis;
} tn_padded_field;

typedef struct tn_loader_options {
  const tn_source *source;
  const void *source_options;
  int32_t split;     /* TN_SPLIT_... */
  tn_data_fold fold; /* of the source's samples; 0 parts: all */
  /* Files and folders that the source reads in place of its data (tn_source.open_files); 0: none. */
  const char *const *files;
  int32_t n_files;
  /* A loader whose open source is read where it is that of these options and no stream; either may be
   * destroyed first, on the thread that creates both. NULL: the source is opened. */
  const struct tn_loader *like;
  const char *learnt; /* learnt state of the training part (tn_env_learnt), or NULL before it */
  const tn_transform_use *transforms;
  int32_t n_transforms;
  bool inputs_alone; /* the source may lack targets: transforms leave out fields that it has not */
  /* How many of the last transforms the device applies, at most: the batch then holds their operands. Or
   * TN_DEVICE_TRANSFORMS_AUTO: as many as give the smallest batch. */
  int32_t device_transforms;
  /* Sizes of the dimension that varies, in ascending order: each batch has the smallest one that holds its
   * samples, and memory for the longest (lengths.h). 0 lengths: all samples have one size. */
  const int64_t *lengths;
  int32_t n_lengths;
  const tn_padded_field *padded;
  int32_t n_padded;
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
  /* A sample that cannot be read (TN_EINVAL) is named in a warning, and the next one takes its place; of a
   * stream the one behind it, so that all later samples move up. */
  bool skip_corrupt;
  uint64_t seed;
  int64_t cache_bytes; /* memory for cached samples, if the source allows it; 0: no cache */
  const char *where;   /* "file.ini:14" of the source, for messages */
  /* Not 0: the run is to stop, so samples that are not read yet are not read any more, and tn_loader_wait
   * waits no longer. NULL: no such request. With a patience a batch is completed and waited for as ever, but
   * a wait or a sample that has taken so many seconds by then ends as without. */
  const atomic_int *stop;
  double patience_s;
} tn_loader_options;

/* The destination of a batch: one address per field ([batch, ...] row-major); weights and ids may be NULL. */
typedef struct tn_batch {
  void *const *fields;
  float *weights; /* [batch]: 1, or 0 for padding */
  int64_t *ids;   /* [batch]: sample indices */
} tn_batch;
