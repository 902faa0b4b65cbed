/* plugins/observers/event_record.c: the messages are Protocol Buffers with these fields:
 *
 *     Event      { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5;
 *                  SessionLog session_log = 7; }
 *     Summary    { repeated Value value = 1; }
 *     Value      { string tag = 1; float simple_value = 2; Image image = 4; HistogramProto histo = 5;
 *                  TensorProto tensor = 8; SummaryMetadata metadata = 9; }
 *     Image      { int32 height = 1, width = 2, colorspace = 3; bytes encoded_image_string = 4; }
 *     TensorProto { DataType dtype = 1; TensorShapeProto tensor_shape = 2; repeated bytes string_val = 8; }
 *     SummaryMetadata { PluginData plugin_data = 1; DataClass data_class = 4; }
 *     PluginData { string plugin_name = 1; }
 *     HistogramProto { double min = 1, max = 2, num = 3, sum = 4, sum_squares = 5;
 *                      repeated double bucket_limit = 6 [packed], bucket = 7 [packed]; }
 *     SessionLog { SessionStatus status = 1; }      START = 1 */
#include "plugins/observers/event_record.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5, HEAD = 12 };

/* ---- checksums ---- */

/* Takes more bytes into a sum that begins as ~0. */
static uint32_t checksum_add(uint32_t crc, const void *bytes, size_t n) {
  const unsigned char *p = bytes;
  for (size_t i = 0; i < n; i++) {
    crc ^= p[i];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0x82F63B78u & (0u - (crc & 1u)));
  }
  return crc;
}

static uint32_t checksum_mask(uint32_t crc) {
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

uint32_t event_record_checksum(const void *bytes, size_t n) {
  return checksum_mask(checksum_add(~0u, bytes, n));
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

/* Of a message of so many bytes. */
static void record_add_head(event_record *r, size_t length) {
  size_t end = r->n;
  r->n = 0;
  record_add_little_endian(r, length, 8);
  record_add_little_endian(r, event_record_checksum(r->v, 8), 4);
  r->n = end;
}

static void record_end(event_record *r) {
  size_t length = r->n - HEAD;
  record_add_head(r, length);
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

/* ---- media ---- */

enum { SUMMARY_IMAGE = 4, SUMMARY_TENSOR = 8, TENSOR_STRING = 7, CLASS_TENSOR = 2, PNG_CHANNELS = 3 };

/* A field of a message, of which `inner` has all but the `more` bytes at its end. */
static void record_open(event_record *outer, unsigned field, const event_record *inner, size_t more) {
  record_add_varint(outer, field << 3 | WIRE_BYTES);
  record_add_varint(outer, inner->n + more);
  record_add(outer, inner->v, inner->n);
}

/* An Image, up to its bytes. */
static void record_add_image(event_record *value, const tn_media *m) {
  event_record image, file;
  image.n = file.n = 0;
  record_add_number(&image, 1, (uint64_t)m->height);
  record_add_number(&image, 2, (uint64_t)m->width);
  record_add_number(&image, 3, PNG_CHANNELS);
  record_open(&image, 4, &file, m->bytes);
  record_open(value, SUMMARY_IMAGE, &image, m->bytes);
}

/* A scalar of text for the plugin "text", up to its bytes. */
static void record_add_text(event_record *value, const tn_media *m) {
  static const char plugin[] = "text";
  event_record name, metadata, tensor, text;
  name.n = metadata.n = tensor.n = text.n = 0;
  record_add_bytes(&name, 1, plugin, sizeof plugin - 1);
  record_add_bytes(&metadata, 1, name.v, name.n);
  record_add_number(&metadata, 4, CLASS_TENSOR);
  record_add_bytes(value, 9, metadata.v, metadata.n);
  record_add_number(&tensor, 1, TENSOR_STRING);
  record_add_bytes(&tensor, 2, text.v, 0); /* no dimensions */
  record_open(&tensor, 8, &text, m->bytes);
  record_open(value, SUMMARY_TENSOR, &tensor, m->bytes);
}

/* The data are the last bytes of every message. */
void event_record_media(event_record *r, unsigned char end[4], double wall_s, int64_t step,
                        const tn_media *m) {
  event_record value, summary;
  value.n = summary.n = 0;
  record_add_bytes(&value, 1, m->name, strnlen(m->name, EVENT_TAG));
  if (m->kind == TN_MEDIA_PNG)
    record_add_image(&value, m);
  else
    record_add_text(&value, m);
  record_open(&summary, 1, &value, m->bytes);
  record_begin(r, wall_s);
  record_add_number(r, 2, (uint64_t)step);
  record_open(r, 5, &summary, m->bytes);
  record_add_head(r, r->n - HEAD + m->bytes);
  uint32_t crc = checksum_mask(checksum_add(checksum_add(~0u, r->v + HEAD, r->n - HEAD), m->data, m->bytes));
  for (int i = 0; i < 4; i++) end[i] = (unsigned char)(crc >> (8 * i));
}
