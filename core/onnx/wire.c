/* core/onnx/wire.c: see wire.h. */
#include "core/onnx/wire.h"

#include <string.h>

enum { WIRE_MOST_SHIFT = 63 };

static bool wire_damaged(tn_wire *wire) {
  wire->bad = true;
  wire->at = wire->end;
  return false;
}

static bool wire_varint(tn_wire *wire, uint64_t *value) {
  *value = 0;
  for (unsigned shift = 0; wire->at < wire->end && shift <= WIRE_MOST_SHIFT; shift += 7) {
    uint8_t byte = *wire->at++;
    *value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return wire_damaged(wire);
}

/* Little-endian. */
static bool wire_fixed(tn_wire *wire, unsigned bytes, uint64_t *value) {
  if (tn_wire_left(wire) < bytes) return wire_damaged(wire);
  *value = 0;
  for (unsigned i = 0; i < bytes; i++) *value |= (uint64_t)*wire->at++ << (8 * i);
  return true;
}

bool tn_wire_number(tn_wire *wire, uint32_t form, uint64_t *value) {
  if (wire->at == wire->end) return false;
  switch (form) {
  case TN_WIRE_VARINT: return wire_varint(wire, value);
  case TN_WIRE_64: return wire_fixed(wire, 8, value);
  case TN_WIRE_32: return wire_fixed(wire, 4, value);
  default: return wire_damaged(wire);
  }
}

bool tn_wire_next(tn_wire *wire, tn_wire_field *field) {
  uint64_t tag, length;
  if (wire->at == wire->end || !wire_varint(wire, &tag)) return false;
  *field = (tn_wire_field){.number = (uint32_t)(tag >> 3), .form = (uint32_t)tag & 7};
  if (field->number == 0 || tag >> 32 != 0) return wire_damaged(wire);
  if (field->form != TN_WIRE_BYTES) {
    uint64_t value;
    if (!tn_wire_number(wire, field->form, &value)) return wire_damaged(wire);
    field->value = value;
    return true;
  }
  if (!wire_varint(wire, &length) || length > tn_wire_left(wire)) return wire_damaged(wire);
  field->bytes = tn_wire_of(wire->at, (size_t)length);
  wire->at += length;
  return true;
}

void tn_wire_numbers(tn_wire_field *field, uint32_t form, void (*take)(void *context, uint64_t value),
                     void *context) {
  uint64_t value;
  if (field->form != TN_WIRE_BYTES) {
    take(context, field->value);
    return;
  }
  while (tn_wire_number(&field->bytes, form, &value)) take(context, value);
}

float tn_wire_float(uint64_t value) {
  uint32_t bits = (uint32_t)value;
  float number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

double tn_wire_double(uint64_t value) {
  double number;
  memcpy(&number, &value, sizeof number);
  return number;
}
