/* core/formats/events.c: the writer of event files. Each record is the length of its message, a checksum of
 * the length, the message, and a checksum of the message. The message is a Protocol Buffer with these fields:
 *
 *     Event   { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }
 *     Summary { repeated Value value = 1; }   Value { string tag = 1; float simple_value = 2; } */
#include "core/formats/events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/text.h"

struct tn_events {
  const void *handle;
  int fd;
  char *path;
  tn_text record; /* reused */
  bool failed;
};

/* ---- checksums ---------------------------------------------------------------------------------- */

uint32_t tn_crc32c_masked(const void *bytes, size_t count) {
  uint32_t crc = tn_crc32c(0, bytes, count);
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

/* ---- messages ----------------------------------------------------------------------------------- */

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static void events_add_little_endian(tn_text *text, uint64_t value, int bytes) {
  char out[8];
  for (int i = 0; i < bytes; i++) out[i] = (char)(unsigned char)(value >> (8 * i));
  tn_text_addn(text, out, (size_t)bytes);
}

static void events_add_varint(tn_text *text, uint64_t value) {
  char out[10];
  size_t n = 0;
  for (; value >= 0x80; value >>= 7) out[n++] = (char)(unsigned char)(value | 0x80);
  out[n++] = (char)value;
  tn_text_addn(text, out, n);
}

static void events_add_key(tn_text *text, unsigned field, unsigned wire) {
  events_add_varint(text, field << 3 | wire);
}

static void events_add_bytes(tn_text *text, unsigned field, const void *bytes, size_t n) {
  events_add_key(text, field, WIRE_BYTES);
  events_add_varint(text, n);
  tn_text_addn(text, bytes, n);
}

static void events_add_double(tn_text *text, unsigned field, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  events_add_key(text, field, WIRE_64);
  events_add_little_endian(text, bits, 8);
}

static void events_add_float(tn_text *text, unsigned field, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  events_add_key(text, field, WIRE_32);
  events_add_little_endian(text, bits, 4);
}

/* Appends a nested message, preceded by its length. */
static void events_add_message(tn_text *text, unsigned field, tn_text *inner) {
  events_add_bytes(text, field, inner->v, inner->n);
  text->failed |= inner->failed;
  tn_text_free(inner);
}

static void events_print_scalar(tn_text *text, const char *tag, int64_t step, double wall_s, float value) {
  tn_text one = tn_text_new(text->handle), summary = tn_text_new(text->handle);
  events_add_bytes(&one, 1, tag, strlen(tag));
  events_add_float(&one, 2, value);
  events_add_message(&summary, 1, &one);
  events_add_double(text, 1, wall_s);
  events_add_key(text, 2, WIRE_VARINT);
  events_add_varint(text, (uint64_t)step);
  events_add_message(text, 5, &summary);
}

static void events_print_version(tn_text *text, double wall_s) {
  events_add_double(text, 1, wall_s);
  events_add_bytes(text, 3, "brain.Event:2", 13);
}

/* ---- the file ----------------------------------------------------------------------------------- */

static tn_status events_write_all(tn_events *events, const char *bytes, size_t count) {
  while (count > 0) {
    ssize_t n = write(events->fd, bytes, count);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return tn_file_fail(events->handle, events->path, "written");
    bytes += n;
    count -= (size_t)n;
  }
  return TN_OK;
}

/* Writes a record with one write call, so that readers see complete records. After a failure the file may
 * end inside a record; later calls write nothing. */
static tn_status events_write_record(tn_events *events, const tn_text *message) {
  tn_text *record = &events->record;
  record->n = 0;
  events_add_little_endian(record, message->n, 8);
  if (!record->failed) events_add_little_endian(record, tn_crc32c_masked(record->v, 8), 4);
  if (!message->failed) tn_text_addn(record, message->v, message->n);
  events_add_little_endian(record, tn_crc32c_masked(message->v, message->n), 4);
  if (record->failed || message->failed)
    return tn_failf(events->handle, TN_ENOMEM, "%s: out of memory for an event", events->path);
  tn_status status = events_write_all(events, record->v, record->n);
  events->failed = status != TN_OK;
  return status;
}

static tn_status events_start(tn_events *events, const char *path, double wall_s) {
  events->path = tn_strdup(events->handle, path);
  if (events->path == NULL) return TN_ENOMEM;
  events->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (events->fd < 0) return tn_file_fail(events->handle, path, "created");
  tn_text message = tn_text_new(events->handle);
  events_print_version(&message, wall_s);
  tn_status status = events_write_record(events, &message);
  tn_text_free(&message);
  return status;
}

tn_status tn_events_create(const void *handle, const char *path, double wall_s, tn_events **events) {
  *events = NULL;
  tn_events *e = tn_alloc(handle, sizeof(*e));
  if (e == NULL) return TN_ENOMEM;
  e->handle = handle;
  e->fd = -1;
  e->record = tn_text_new(handle);
  tn_status status = events_start(e, path, wall_s);
  if (status == TN_OK)
    *events = e;
  else
    tn_events_close(e);
  return status;
}

tn_status tn_events_scalar(tn_events *events, const char *tag, int64_t step, double wall_s, double value) {
  if (events->failed)
    return tn_failf(events->handle, TN_EIO, "%s: nothing more is written after an earlier failure",
                    events->path);
  tn_text message = tn_text_new(events->handle);
  events_print_scalar(&message, tag, step, wall_s, (float)value);
  tn_status status = events_write_record(events, &message);
  tn_text_free(&message);
  return status;
}

tn_status tn_events_close(tn_events *events) {
  if (events == NULL) return TN_OK;
  tn_status status = TN_OK;
  if (events->fd >= 0 && close(events->fd) != 0)
    status = tn_file_fail(events->handle, events->path, "closed");
  tn_text_free(&events->record);
  tn_release(events->handle, events->path);
  tn_release(events->handle, events);
  return status;
}
