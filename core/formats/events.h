/* core/formats/events.h: TensorBoard event files with scalars over steps. A file is a sequence of
 * TFRecords (tensorflow/core/lib/io/record_writer.h), each holding an Event message
 * (tensorflow/core/util/event.proto). */
#ifndef TN_CORE_FORMATS_EVENTS_H
#define TN_CORE_FORMATS_EVENTS_H

#include "core/base/checksum.h"

typedef struct tn_events tn_events;

/* Creates a file; TensorBoard finds it if its name contains "tfevents". TN_EIO if it exists: a resumed run
 * writes to a file of its own. `wall_s` is in seconds since 1970. */
tn_status tn_events_create(const void *handle, const char *path, double wall_s, tn_events **events);
/* Appends a scalar. It is in the file on return, so TensorBoard can follow a run. */
tn_status tn_events_scalar(tn_events *events, const char *tag, int64_t step, double wall_s, double value);
/* Returns the status of the final close. `events` may be NULL. */
tn_status tn_events_close(tn_events *events);

/* The masked form of CRC-32C that TFRecord stores. */
uint32_t tn_crc32c_masked(const void *bytes, size_t count);

#endif
