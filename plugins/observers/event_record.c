/* plugins/observers/event_record.c: the messages are Protocol Buffers with these fields:
 *
 *     Event      { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5;
 *                  SessionLog session_log = 7; }
 *     Summary    { repeated Value value = 1; }
 *     Value      { string tag = 1; float simple_value = 2; HistogramProto histo = 5; }
 *     HistogramProto { double min = 1, max = 2, num = 3, sum = 4, sum_squares = 5;
 *                      repeated double bucket_limit = 6 [packed], bucket = 7 [packed]; }
 *     SessionLog { SessionStatus status = 1; }      START = 1 */
#include "plugins/observers/event_record.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5, HEAD = 12 };

/* ---- checksums ---- */

uint32_t event_record_checksum(const void *bytes, size_t n) {
  const unsigned char *p = bytes;
  uint32_t crc = ~0u;
  for (size_t i = 0; i < n; i++) {
    crc ^= p[i];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0x82F63B78u & (0u - (crc & 1u)));
  }
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

/* ---- fields ---- */

static void record_add(event_record *r, const void *bytes, size_t n) {
  memcpy(r->v + r->n, bytes, n);
  r->n += n;
}

static void record_add_little_endian(event_record *r, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) r->v[r->n++] = (unsigned char)(value >> (8 * i));
}

static void record_add_varint(event_record *r, uint64_t value) {
  for (; value >= 0x80; value >>= 7) r->v[r->n++] = (unsigned char)(value | 0x80);
  r->v[r->n++] = (unsigned char)value;
}

static void record_add_number(event_record *r, unsigned field, uint64_t value) {
  record_add_varint(r, field << 3 | WIRE_VARINT);
  record_add_varint(r, value);
}

static void record_add_bytes(event_record *r, unsigned field, const void *bytes, size_t n) {
  record_add_varint(r, field << 3 | WIRE_BYTES);
  record_add_varint(r, n);
  record_add(r, bytes, n);
}

static void record_add_double(event_record *r, unsigned field, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  record_add_varint(r, field << 3 | WIRE_64);
  record_add_little_endian(r, bits, 8);
}

static void record_add_float(event_record *r, unsigned field, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  record_add_varint(r, field << 3 | WIRE_32);
  record_add_little_endian(r, bits, 4);
}

/* ---- records ---- */

/* Leaves room for the length and its checksum. */
static void record_begin(event_record *r, double wall_s) {
  r->n = HEAD;
  record_add_double(r, 1, wall_s);
}

static void record_end(event_record *r) {
  size_t end = r->n, length = end - HEAD;
  r->n = 0;
  record_add_little_endian(r, length, 8);
  record_add_little_endian(r, event_record_checksum(r->v, 8), 4);
  r->n = end;
  record_add_little_endian(r, event_record_checksum(r->v + HEAD, length), 4);
}

void event_record_version(event_record *r, double wall_s) {
  static const char version[] = "brain.Event:2";
  record_begin(r, wall_s);
  record_add_bytes(r, 3, version, sizeof version - 1);
  record_end(r);
}

void event_record_restart(event_record *r, double wall_s, int64_t step) {
  static const unsigned char start[] = {1 << 3 | WIRE_VARINT, 1};
  record_begin(r, wall_s);
  record_add_number(r, 2, (uint64_t)step);
  record_add_bytes(r, 7, start, sizeof start);
  record_end(r);
}

/* An Event whose Summary is one Value. */
static void record_summary(event_record *r, double wall_s, int64_t step, const event_record *value) {
  event_record summary;
  summary.n = 0;
  record_add_bytes(&summary, 1, value->v, value->n);
  record_begin(r, wall_s);
  record_add_number(r, 2, (uint64_t)step);
  record_add_bytes(r, 5, summary.v, summary.n);
  record_end(r);
}

void event_record_scalar(event_record *r, double wall_s, int64_t step, const char *tag, double value) {
  event_record one;
  one.n = 0;
  record_add_bytes(&one, 1, tag, strnlen(tag, EVENT_TAG));
  record_add_float(&one, 2, (float)value);
  record_summary(r, wall_s, step, &one);
}

/* n doubles as a packed field. */
static void record_add_doubles(event_record *r, unsigned field, const double *values, int32_t n) {
  record_add_varint(r, field << 3 | WIRE_BYTES);
  record_add_varint(r, 8 * (uint64_t)n);
  for (int32_t i = 0; i < n; i++) {
    uint64_t bits;
    memcpy(&bits, &values[i], sizeof bits);
    record_add_little_endian(r, bits, 8);
  }
}

/* Empty buckets at both ends are left out, but for one in front, whose limit is where the first one begins.
 */
void event_record_histogram(event_record *r, double wall_s, int64_t step, const tn_histogram *h) {
  event_record histo, one;
  int32_t first = 0, end = h->n_buckets;
  const double numbers[] = {h->min, h->max, (double)h->n, h->sum, h->squares};
  while (end > 1 && h->counts[end - 1] == 0) end--;
  while (first + 1 < end && h->counts[first] == 0 && h->counts[first + 1] == 0) first++;
  if (end - first > EVENT_BUCKETS) end = first + EVENT_BUCKETS;
  histo.n = one.n = 0;
  for (unsigned i = 0; i < 5; i++) record_add_double(&histo, i + 1, numbers[i]);
  record_add_doubles(&histo, 6, h->limits + first, end - first);
  record_add_doubles(&histo, 7, h->counts + first, end - first);
  record_add_bytes(&one, 1, h->name, strnlen(h->name, EVENT_TAG));
  record_add_bytes(&one, 5, histo.v, histo.n);
  record_summary(r, wall_s, step, &one);
}
