/* core/formats/protobuf_writer.c: see protobuf_writer.h. */
#include "core/formats/protobuf_writer.h"

#include <string.h>

static void proto_put_varint(tn_text *message, uint64_t value) {
  do {
    char byte = (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    tn_text_addn(message, &byte, 1);
    value >>= 7;
  } while (value != 0);
}

static void proto_put_tag(tn_text *message, uint32_t field, uint32_t form) {
  proto_put_varint(message, (uint64_t)field << 3 | form);
}

void tn_proto_put_number(tn_text *message, uint32_t field, int64_t value) {
  proto_put_tag(message, field, TN_PROTO_VARINT);
  proto_put_varint(message, (uint64_t)value);
}

void tn_proto_put_float(tn_text *message, uint32_t field, float value) {
  uint32_t bits;
  char bytes[4];
  memcpy(&bits, &value, sizeof bits);
  for (int i = 0; i < 4; i++) bytes[i] = (char)(bits >> (8 * i) & 0xff);
  proto_put_tag(message, field, TN_PROTO_32);
  tn_text_addn(message, bytes, sizeof bytes);
}

void tn_proto_put_head(tn_text *message, uint32_t field, uint64_t count) {
  proto_put_tag(message, field, TN_PROTO_BYTES);
  proto_put_varint(message, count);
}

void tn_proto_put_bytes(tn_text *message, uint32_t field, const void *bytes, size_t count) {
  tn_proto_put_head(message, field, count);
  if (count > 0) tn_text_addn(message, bytes, count);
}

void tn_proto_put_text(tn_text *message, uint32_t field, const char *text) {
  tn_proto_put_bytes(message, field, text, strlen(text));
}

void tn_proto_put_message(tn_text *message, uint32_t field, tn_text *part) {
  message->failed = message->failed || part->failed;
  tn_proto_put_bytes(message, field, part->v, part->n);
  tn_text_free(part);
}
