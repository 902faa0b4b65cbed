/* plugins/observers/event_record.h: the records of TensorBoard's event files. A file is a sequence of
 * TFRecords (tensorflow/core/lib/io/record_writer.h): the length of a message, a checksum of the length, the
 * message and a checksum of the message. A message is an Event (tensorflow/core/util/event.proto). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tenon/plugin/observer.h"

/* The most bytes of a tag, and the most buckets between the first and the last that have numbers; others are
 * cut.
 */
enum { EVENT_TAG = 512, EVENT_BUCKETS = 512 };

typedef struct event_record {
  unsigned char v[EVENT_TAG + 256 + 2 * 8 * EVENT_BUCKETS];
  size_t n;
} event_record;

/* Each sets the record. `wall_s` is in seconds since 1970. */

/* The first record of a file. */
void event_record_version(event_record *r, double wall_s);
/* Readers drop what earlier files of the folder have for this step and later ones. */
void event_record_restart(event_record *r, double wall_s, int64_t step);
void event_record_scalar(event_record *r, double wall_s, int64_t step, const char *tag, double value);

void event_record_histogram(event_record *r, double wall_s, int64_t step, const tn_histogram *histogram);

/* A picture or text. The record is `r`, the data of the medium, and `end`. */
void event_record_media(event_record *r, unsigned char end[4], double wall_s, int64_t step,
                        const tn_media *medium);

/* CRC-32C (RFC 3720), in the masked form that a TFRecord has. */
uint32_t event_record_checksum(const void *bytes, size_t n);
