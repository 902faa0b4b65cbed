/* plugins/sources/shards/shard_index.h: where the samples of shards lie. A sample is a run of members whose
 * names are equal up to the first dot behind the folder, as WebDataset has it. */
#pragma once

#include "plugins/sources/shards/shard_field.h"
#include "plugins/sources/paths.h"
#include "plugins/sources/shards/tar.h"

enum { SHARD_LACKS = -1, SHARD_TWICE = -2 };

/* The bytes of a field. */
typedef struct shard_member {
  int64_t at;    /* in its file; SHARD_LACKS, or SHARD_TWICE if there are several */
  uint64_t size; /* bytes */
} shard_member;

typedef struct shard_sample {
  size_t name;   /* in `names`: "photos/0001" */
  int32_t file;  /* in `paths` */
  int32_t class; /* of the first field of classes; -1: none, or it is damaged */
  int32_t fault; /* in `faults`, behind one: a part of the file that holds no readable samples; 0: a sample */
} shard_sample;

typedef struct shard_index {
  const tn_env *env;
  const shard_fields *fields;
  source_paths paths;
  shard_sample *samples;
  shard_member *members; /* those of a sample are in the order of the fields */
  int64_t count, room;
  char *names;
  size_t used, size;
  char (*faults)[TAR_FAULT];
  int32_t n_faults, faults_room;
  int64_t others; /* members that are no files, such as links */
  char other[TAR_FAULT];
  int64_t most_class[SHARD_FIELDS]; /* by field: the greatest class; -1: none */
} shard_index;

/* Scans the files of n patterns. *index must be zero. `env` and `fields` must outlive it; the caller frees
 * it, also after a failure. */
tn_status shard_index_scan(const tn_env *env, const char *option, const char *const *patterns, int32_t n,
                           const shard_fields *fields, shard_index *index);
void shard_index_free(shard_index *index);

/* Keeps a part of the samples, spread evenly over their order: `share` of them with `chosen`, and the others
 * without. */
void shard_index_keep_part(shard_index *index, double share, int32_t chosen);

/* "data/train-003.tar: photos/0001", cut at `size` bytes. */
void shard_index_name(const shard_index *index, int64_t sample, char *text, size_t size);

/* Reads the member of field i of a sample into memory that is taken from `scratch`. */
tn_status shard_index_read(const void *handle, const shard_index *index, int64_t sample, int32_t i, int fd,
                           tn_scratch *scratch, char *where, size_t where_size, shard_bytes *member);
/* Opens the file of a sample; TN_EINVAL for a part that cannot be read. The caller closes *fd. */
tn_status shard_index_open(const void *handle, const shard_index *index, int64_t sample, int *fd);
