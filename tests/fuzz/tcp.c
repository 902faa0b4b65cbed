/* Records that the communicator `tcp` receives, by the first byte of the input, and its option `address`. A
 * record that is accepted has members in their ranges and texts that can be printed. */
#include "backends/tcp/tcp.h"
#include "tests/fuzz/fuzz.h"

static void expect_printable(const char *text, size_t size) {
  fuzz_expect(memchr(text, '\0', size) != NULL, "a text without an end");
  for (; *text != '\0'; text++) fuzz_expect(*text >= ' ' && *text <= '~', "a byte that cannot be printed");
}

static void expect_address(const tn_tcp_address *a) {
  char text[TN_TCP_ADDRESS_TEXT];
  struct sockaddr_storage to;
  tn_tcp_address back;
  expect_printable(tn_tcp_address_text(a, text), sizeof text);
  tn_tcp_address_to_socket(a, &to);
  fuzz_expect(tn_tcp_address_of_socket(&to, &back) && back.port == a->port && back.family == a->family,
              "an address that is no socket's");
}

static void try_hello(const tn_tcp_hello *h) {
  if (!tn_tcp_hello_valid(h)) return;
  fuzz_expect(h->rank >= 1 && h->rank < h->ranks && h->ranks <= TN_TCP_RANKS, "a rank out of its range");
  fuzz_expect(h->lane >= 0 && h->lane < TN_TCP_LANES, "a connection out of its range");
  expect_address(&h->address);
}

static void try_reply(tn_tcp_reply *r) {
  if (!tn_tcp_reply_valid(r)) return;
  expect_printable(r->text, sizeof r->text);
}

static void try_call(tn_tcp_call *c) {
  char text[TN_TCP_CALL_TEXT];
  if (!tn_tcp_call_valid(c)) return;
  expect_printable(c->name, sizeof c->name);
  expect_printable(tn_tcp_call_text(c, text), sizeof text);
  fuzz_expect(tn_tcp_same_call(c, c), "a call that differs from itself");
}

static void try_address(const uint8_t *bytes, size_t size) {
  fuzz f;
  tn_tcp_address a;
  char *text = fuzz_text(bytes, size);
  fuzz_open(&f);
  tn_status status = tn_tcp_address_choose(&f.env, text, "", &a);
  fuzz_judge(&f, status);
  if (status == TN_OK) expect_address(&a);
  fuzz_close(&f);
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  union {
    tn_tcp_identity identity;
    tn_tcp_hello hello;
    tn_tcp_reply reply;
    tn_tcp_row row;
    tn_tcp_call call;
    tn_tcp_note note;
  } record;
  if (size == 0) return 0;
  memset(&record, 0, sizeof record);
  memcpy(&record, bytes + 1, size - 1 < sizeof record ? size - 1 : sizeof record);
  switch (bytes[0] % 7) {
  case 0: try_hello(&record.hello); break;
  case 1: try_reply(&record.reply); break;
  case 2: try_call(&record.call); break;
  case 3:
    if (tn_tcp_note_valid(&record.note)) expect_printable(record.note.text, sizeof record.note.text);
    break;
  case 4:
    if (tn_tcp_row_valid(&record.row)) expect_address(&record.row.address);
    break;
  case 5:
    if (tn_tcp_identity_valid(&record.identity)) expect_address(&record.identity.address);
    break;
  default: try_address(bytes + 1, size - 1);
  }
  return 0;
}
