/* core/formats/protobuf.c: see protobuf.h. */
#include "core/formats/protobuf.h"

#include <string.h>

enum { PROTO_MOST_SHIFT = 63 };

static bool proto_damaged(tn_proto *message) {
  message->bad = true;
  message->at = message->end;
  return false;
}

static bool proto_varint(tn_proto *message, uint64_t *value) {
  *value = 0;
  for (unsigned shift = 0; message->at < message->end && shift <= PROTO_MOST_SHIFT; shift += 7) {
    uint8_t byte = *message->at++;
    *value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return proto_damaged(message);
}

/* Little-endian. */
static bool proto_fixed(tn_proto *message, unsigned bytes, uint64_t *value) {
  if (tn_proto_left(message) < bytes) return proto_damaged(message);
  *value = 0;
  for (unsigned i = 0; i < bytes; i++) *value |= (uint64_t)*message->at++ << (8 * i);
  return true;
}

bool tn_proto_number(tn_proto *message, uint32_t form, uint64_t *value) {
  if (message->at == message->end) return false;
  switch (form) {
  case TN_PROTO_VARINT: return proto_varint(message, value);
  case TN_PROTO_64: return proto_fixed(message, 8, value);
  case TN_PROTO_32: return proto_fixed(message, 4, value);
  default: return proto_damaged(message);
  }
}

bool tn_proto_next(tn_proto *message, tn_proto_field *field) {
  uint64_t tag, length;
  if (message->at == message->end || !proto_varint(message, &tag)) return false;
  *field = (tn_proto_field){.number = (uint32_t)(tag >> 3), .form = (uint32_t)tag & 7};
  if (field->number == 0 || tag >> 32 != 0) return proto_damaged(message);
  if (field->form != TN_PROTO_BYTES) {
    uint64_t value;
    if (!tn_proto_number(message, field->form, &value)) return proto_damaged(message);
    field->value = value;
    return true;
  }
  if (!proto_varint(message, &length) || length > tn_proto_left(message)) return proto_damaged(message);
  field->bytes = tn_proto_of(message->at, (size_t)length);
  message->at += length;
  return true;
}

void tn_proto_numbers(tn_proto_field *field, uint32_t form, void (*take)(void *context, uint64_t value),
                      void *context) {
  uint64_t value;
  if (field->form != TN_PROTO_BYTES) {
    take(context, field->value);
    return;
  }
  while (tn_proto_number(&field->bytes, form, &value)) take(context, value);
}

float tn_proto_float(uint64_t value) {
  uint32_t bits = (uint32_t)value;
  float number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

double tn_proto_double(uint64_t value) {
  double number;
  memcpy(&number, &value, sizeof number);
  return number;
}
