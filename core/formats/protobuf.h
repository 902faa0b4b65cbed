/* core/formats/protobuf.h: reads the wire format of Protocol Buffers
 * (https://protobuf.dev/programming-guides/encoding/). A field is a view into the file, so nothing is copied
 * and nothing is allocated: a model's weights stay where they are, and a damaged length cannot size an
 * allocation (docs/decisions/0082-import-of-onnx.md). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The rest of a message. */
typedef struct tn_proto {
  const uint8_t *at, *end;
  bool bad; /* a field was cut off, or has a form that does not exist */
} tn_proto;

enum { TN_PROTO_VARINT = 0, TN_PROTO_64 = 1, TN_PROTO_BYTES = 2, TN_PROTO_32 = 5 };

typedef struct tn_proto_field {
  uint32_t number; /* of the field, from the schema */
  uint32_t form;   /* TN_PROTO_... */
  uint64_t value;  /* of a number */
  tn_proto bytes;  /* BYTES: text, bytes, a message or packed numbers */
} tn_proto_field;

static inline tn_proto tn_proto_of(const void *bytes, size_t count) {
  const uint8_t *at = bytes;
  return (tn_proto){at, at + count, false};
}
static inline size_t tn_proto_left(const tn_proto *message) { return (size_t)(message->end - message->at); }

/* The next field; false at the end of the message, and where it is damaged (message->bad). */
bool tn_proto_next(tn_proto *message, tn_proto_field *field);
/* The next of packed numbers without fields around them: varints, or numbers of 4 or 8 bytes. */
bool tn_proto_number(tn_proto *message, uint32_t form, uint64_t *value);
/* One number of a repeated field, of which writers pack several into one field or not: calls `take` for each.
 */
void tn_proto_numbers(tn_proto_field *field, uint32_t form, void (*take)(void *context, uint64_t value),
                      void *context);

float tn_proto_float(uint64_t value);
double tn_proto_double(uint64_t value);
