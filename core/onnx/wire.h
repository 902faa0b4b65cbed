/* core/onnx/wire.h: reads the wire format of Protocol Buffers
 * (https://protobuf.dev/programming-guides/encoding/). A field is a view into the file, so nothing is copied
 * and nothing is allocated: a model's weights stay where they are, and a damaged length cannot size an
 * allocation. docs/decisions/0082-import-of-onnx.md says why. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The rest of a message. */
typedef struct tn_wire {
  const uint8_t *at, *end;
  bool bad; /* a field was cut off, or has a form that does not exist */
} tn_wire;

enum { TN_WIRE_VARINT = 0, TN_WIRE_64 = 1, TN_WIRE_BYTES = 2, TN_WIRE_32 = 5 };

typedef struct tn_wire_field {
  uint32_t number; /* of the field, from the schema */
  uint32_t form;   /* TN_WIRE_... */
  uint64_t value;  /* of a number */
  tn_wire bytes;   /* BYTES: text, bytes, a message or packed numbers */
} tn_wire_field;

static inline tn_wire tn_wire_of(const void *bytes, size_t count) {
  const uint8_t *at = bytes;
  return (tn_wire){at, at + count, false};
}
static inline size_t tn_wire_left(const tn_wire *wire) { return (size_t)(wire->end - wire->at); }

/* The next field; false at the end of the message, and where it is damaged (wire->bad). */
bool tn_wire_next(tn_wire *wire, tn_wire_field *field);
/* The next of packed numbers without fields around them: varints, or numbers of 4 or 8 bytes. */
bool tn_wire_number(tn_wire *wire, uint32_t form, uint64_t *value);
/* One number of a repeated field, of which writers pack several into one field or not: calls `take` for each.
 */
void tn_wire_numbers(tn_wire_field *field, uint32_t form, void (*take)(void *context, uint64_t value),
                     void *context);

float tn_wire_float(uint64_t value);
double tn_wire_double(uint64_t value);
