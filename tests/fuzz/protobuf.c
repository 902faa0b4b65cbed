/* Messages of Protocol Buffers, as models of ONNX and of SentencePiece are. Every field of bytes is also read
 * as a message, and as packed numbers of each form. */
#include "core/formats/protobuf.h"
#include "tests/fuzz/fuzz.h"

enum { DEEPEST = 12 };

static void take(void *context, uint64_t value) {
  double *sum = context;
  *sum += tn_proto_double(value) + (double)tn_proto_float(value);
}

static void read_numbers(const tn_proto_field *field) {
  static const uint32_t forms[] = {TN_PROTO_VARINT, TN_PROTO_64, TN_PROTO_32};
  double sum = 0;
  for (int i = 0; i < 3; i++) {
    tn_proto_field copy = *field;
    tn_proto_numbers(&copy, forms[i], take, &sum);
  }
}

static void read_message(tn_proto message, int depth) {
  const uint8_t *first = message.at;
  tn_proto_field field;
  while (tn_proto_next(&message, &field)) {
    fuzz_expect(message.at > first && message.at <= message.end, "a field without bytes, or behind the end");
    first = message.at;
    read_numbers(&field);
    if (field.form != TN_PROTO_BYTES) continue;
    fuzz_expect(field.bytes.at <= field.bytes.end && field.bytes.end <= message.end, "bytes behind the end");
    if (depth < DEEPEST) read_message(field.bytes, depth + 1);
  }
  fuzz_expect(message.bad || message.at == message.end, "an end in front of the end");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  read_message(tn_proto_of(bytes, size), 0);
  return 0;
}
