/* plugins/sources/shards/shard_stream.c: see shard_stream.h. Threads take turns at reading; they decode at
 * once. */
#include "plugins/sources/shards/shard_stream.h"

#include <stdio.h>
#include <string.h>

enum { STREAM_STOP_EVERY = 64 };

/* ---- opening and closing ---- */

static void stream_drop(const void *handle, shard_record *record) {
  if (record == NULL) return;
  record->evicted = 1;
  if (record->users == 0) shard_record_free(handle, record);
}

static void stream_clear(const void *handle, shard_stream *s) {
  for (int64_t i = 0; i < s->n; i++) shard_record_free(handle, s->buffer[i]);
  for (int32_t i = 0; i < STREAM_KEPT; i++) {
    stream_drop(handle, s->kept[i]);
    s->kept[i] = NULL;
  }
  s->n = s->produced = 0;
}

void shard_stream_close(const void *handle, shard_stream *s) {
  if (s == NULL) return;
  stream_clear(handle, s);
  shard_records_end(handle, &s->records);
  tn_delete(handle, s->buffer);
  pthread_mutex_destroy(&s->lock);
  tn_delete(handle, s);
}

/* Fills the buffer; at the end of standard input it empties. */
static tn_status stream_fill(const void *handle, shard_stream *s) {
  while (s->n < s->room) {
    tn_status status = shard_records_next(handle, &s->records, &s->buffer[s->n]);
    if (status == TN_EOF) return TN_OK;
    TN_TRY(status);
    s->n++;
  }
  return TN_OK;
}

tn_status shard_stream_open(const void *handle, const shard_fields *fields, source_paths *paths,
                            int64_t buffer, uint64_t seed, shard_stream **stream) {
  shard_stream *s = *stream = tn_new(handle, sizeof *s);
  if (s == NULL) return TN_ENOMEM;
  pthread_mutex_init(&s->lock, NULL);
  s->records = (shard_records){
      .fields = fields, .paths = *paths, .is_input = paths->n == 0, .shuffles = buffer > 1, .seed = seed};
  *paths = (source_paths){0};
  s->room = buffer;
  s->buffer = tn_new(handle, (size_t)buffer * sizeof(shard_record *));
  if (s->buffer == NULL) return TN_ENOMEM;
  TN_TRY(shard_records_begin(handle, &s->records));
  return stream_fill(handle, s);
}

/* ---- reading ---- */

/* Draws the next sample from the buffer. */
static tn_status stream_produce(const void *handle, shard_stream *s) {
  TN_TRY(stream_fill(handle, s));
  if (s->n == 0)
    return tn_fail(handle, TN_EIO, "files",
                   "standard input has ended after %lld samples; set epoch and epochs to fewer",
                   (long long)s->produced);
  tn_rng rng = tn_rng_at(tn_hash_mix(s->records.seed, (uint64_t)s->produced), 1);
  int64_t at = s->room > 1 ? (int64_t)tn_rng_below(&rng, (uint32_t)s->n) : 0;
  shard_record *drawn = s->buffer[at];
  s->buffer[at] = s->buffer[--s->n];
  drawn->index = s->produced++;
  stream_drop(handle, s->kept[drawn->index % STREAM_KEPT]);
  s->kept[drawn->index % STREAM_KEPT] = drawn;
  return TN_OK;
}

/* A sample that is not kept any more is reached from the start. */
static tn_status stream_rewind(const void *handle, shard_stream *s, int64_t index) {
  if (s->records.is_input)
    return tn_fail(
        handle, TN_EIO, "files",
        "sample %lld of standard input has passed, of which the last %d are kept; name files for data that "
        "are read several times",
        (long long)index, STREAM_KEPT);
  stream_clear(handle, s);
  return shard_records_begin(handle, &s->records);
}

/* The sample, held for this thread. */
static tn_status stream_take(tn_sample *sample, shard_stream *s, shard_record **record) {
  shard_record *kept = s->kept[sample->index % STREAM_KEPT];
  if (sample->index < s->produced && (kept == NULL || kept->index != sample->index))
    TN_TRY(stream_rewind(sample, s, sample->index));
  while (s->produced <= sample->index) {
    if (s->produced % STREAM_STOP_EVERY == 0 && tn_sample_stopping(sample))
      return tn_fail(sample, TN_ESTOPPED, NULL, "stopped before sample %lld was reached",
                     (long long)sample->index);
    TN_TRY(stream_produce(sample, s));
  }
  *record = s->kept[sample->index % STREAM_KEPT];
  (*record)->users++;
  return TN_OK;
}

static tn_status stream_member(const void *handle, const shard_fields *fields, const shard_record *record,
                               int32_t i, shard_bytes *member) {
  const shard_field *f = &fields->v[i];
  if (record->fault != NULL) return tn_fail(handle, TN_EINVAL, NULL, "%s: %s", record->name, record->fault);
  *member = record->member[i];
  if (member->bytes != NULL && !record->several[i]) return TN_OK;
  return tn_fail(handle, TN_EINVAL, NULL, "%s: has %s that %s with .%s, expected one for field '%s'",
                 record->name, member->bytes == NULL ? "no member" : "several members",
                 member->bytes == NULL ? "ends" : "end", f->endings, f->name);
}

tn_status shard_stream_read(tn_sample *sample, shard_stream *s) {
  const shard_fields *fields = s->records.fields;
  shard_record *record = NULL;
  pthread_mutex_lock(&s->lock);
  tn_status status = stream_take(sample, s, &record);
  pthread_mutex_unlock(&s->lock);
  TN_TRY(status);
  for (int32_t i = 0; status == TN_OK && i < fields->n; i++) {
    shard_bytes member;
    status = stream_member(sample, fields, record, i, &member);
    if (status == TN_OK) status = shard_field_read(sample, fields, i, &member);
  }
  pthread_mutex_lock(&s->lock);
  if (--record->users == 0 && record->evicted) shard_record_free(sample, record);
  pthread_mutex_unlock(&s->lock);
  return status;
}

tn_status shard_stream_measure(const void *handle, shard_stream *s, int32_t field, tn_type *type) {
  tn_status status = TN_EINVAL;
  for (int64_t k = 0; status == TN_EINVAL && k < s->n; k++) {
    shard_bytes member;
    status = stream_member(handle, s->records.fields, s->buffer[k], field, &member);
    if (status == TN_OK) status = shard_field_measure(handle, s->records.fields, field, &member, type);
  }
  if (s->n > 0) return status;
  return tn_fail(handle, TN_EINVAL, "files",
                 "standard input holds no samples, expected a tar archive that is not packed");
}

void shard_stream_name(shard_stream *s, int64_t index, char *text, size_t size) {
  pthread_mutex_lock(&s->lock);
  const shard_record *kept = s->kept[index % STREAM_KEPT];
  if (kept != NULL && kept->index == index)
    snprintf(text, size, "%s", kept->name);
  else
    snprintf(text, size, "sample %lld", (long long)index);
  pthread_mutex_unlock(&s->lock);
}
