/* plugins/sources/shards/shard_record.h: samples of archives that are read in order, one file after the
 * other: packed ones, and standard input. */
#pragma once

#include "plugins/sources/paths.h"
#include "plugins/sources/shards/shard_field.h"
#include "plugins/sources/shards/tar.h"
#include "plugins/sources/table/input.h"

/* A sample as it is stored. */
typedef struct shard_record {
  char *name;  /* "data/train-003.tar.gz: photos/0001" */
  char *fault; /* why a part of an archive cannot be read, in place of a sample; NULL: a sample */
  shard_bytes member[SHARD_FIELDS]; /* by field; NULL bytes: it lacks it */
  int32_t several[SHARD_FIELDS];    /* whether it has several */
  int32_t users, evicted;           /* of shard_stream.c */
  int64_t index;
} shard_record;

typedef struct shard_records {
  const shard_fields *fields;
  source_paths paths;
  int32_t is_input; /* standard input */
  int32_t shuffles; /* the order of the files in each pass */
  uint64_t seed;
  int64_t pass, file, found; /* the next file of this pass, and the samples of this pass so far */
  int64_t *order;
  table_input in;
  tar_input input;
  tar *tar;
  int32_t is_open, has_member; /* has_member: the header of the next sample's first member was read */
  int32_t is_damaged;          /* the file cannot be unpacked from its first block on */
} shard_records;

/* Whether a file begins as gzip or zstd does. */
tn_status shard_file_is_packed(const void *handle, const char *path, int32_t *is_packed);

/* Begins with the first file of the first pass. *r must be zero but for fields, paths, is_input, shuffles and
 * seed; the caller ends it, also after a failure. */
tn_status shard_records_begin(const void *handle, shard_records *r);
void shard_records_end(const void *handle, shard_records *r);
/* The next sample; behind the last file a new pass begins. TN_EOF: the end of standard input. */
tn_status shard_records_next(const void *handle, shard_records *r, shard_record **record);
void shard_record_free(const void *handle, shard_record *record);
