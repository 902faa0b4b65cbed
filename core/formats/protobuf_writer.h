/* core/formats/protobuf_writer.h: writes the wire format of Protocol Buffers, which protobuf.h reads. A
 * message is a growing text of bytes; a message within it is written as bytes after it is complete. Of
 * contents that are streamed to a file, only the head is written: tag and length. Failures stick in the text.
 */
#pragma once

#include "core/base/text/text.h"
#include "core/formats/protobuf.h"

/* A whole number; a negative one has ten bytes, as int64 has. */
void tn_proto_put_number(tn_text *message, uint32_t field, int64_t value);
void tn_proto_put_float(tn_text *message, uint32_t field, float value);
void tn_proto_put_bytes(tn_text *message, uint32_t field, const void *bytes, size_t count);
void tn_proto_put_text(tn_text *message, uint32_t field, const char *text);
/* Tag and length of `count` bytes that the caller writes behind it. */
void tn_proto_put_head(tn_text *message, uint32_t field, uint64_t count);
/* Writes `part` as a message of the field, and frees it. A failure of `part` becomes one of `message`. */
void tn_proto_put_message(tn_text *message, uint32_t field, tn_text *part);
