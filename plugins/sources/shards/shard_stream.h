/* plugins/sources/shards/shard_stream.h: samples of archives that are read in order, by their numbers. Sample
 * i is the i-th that comes out of a buffer, from which one is drawn and into which the next one is read; it
 * depends on the seed and i alone. A number far ahead is reached by reading up to it, one that lies behind by
 * reading from the start again. */
#pragma once

#include <pthread.h>

#include "plugins/sources/shards/shard_record.h"

/* Samples behind the newest one that are kept, for the workers and for samples that are asked for again. */
enum { STREAM_KEPT = 1024 };

typedef struct shard_stream {
  pthread_mutex_t lock; /* of all below */
  shard_records records;
  shard_record **buffer; /* [room]: the samples that are drawn from */
  int64_t room, n;
  int64_t produced;                /* the number of the next sample */
  shard_record *kept[STREAM_KEPT]; /* by number; NULL: none yet */
} shard_stream;

/* `buffer` 1: in the order of the archives. The paths become the stream's. NULL pattern: standard input. */
tn_status shard_stream_open(const void *handle, const shard_fields *fields, source_paths *paths,
                            int64_t buffer, uint64_t seed, shard_stream **stream);
void shard_stream_close(const void *handle, shard_stream *stream);
/* The type of a field of the first sample that is whole. */
tn_status shard_stream_measure(const void *handle, shard_stream *stream, int32_t field, tn_type *type);
/* Any thread. */
tn_status shard_stream_read(tn_sample *s, shard_stream *stream);
/* The name of a sample that is kept, or its number. */
void shard_stream_name(shard_stream *stream, int64_t index, char *text, size_t size);
