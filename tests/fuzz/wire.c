/* Frames between processes: the first byte selects a greeting, a hello, a member, a failure, a summary, the
 * head of a frame, or a stream of frames that comes through a socket in pieces, from the other process or
 * from a stranger. */
#include <sys/socket.h>
#include <unistd.h>

#include "core/distributed/ranks/late_rank.h"
#include "core/distributed/link/peer.h"
#include "tests/fuzz/fuzz.h"

/* A value that was read is written as bytes that read back to the same value. */
#define ROUND_TRIP(read, write, read_value, bytes_of)                                                        \
  do {                                                                                                       \
    unsigned char again[bytes_of];                                                                           \
    write(&read_value, again);                                                                               \
    memset(&other, 0xA5, sizeof other);                                                                      \
    fuzz_expect(read(again, &other), "the bytes written are not read");                                      \
  } while (0)

static int is_text(const char *text, size_t size) { return memchr(text, '\0', size) != NULL; }

static int same_text(const char *a, const char *b) { return strcmp(a, b) == 0; }

static void read_greeting(const uint8_t *bytes) {
  unsigned char again[TN_GREETING_BYTES];
  tn_greeting greeting;
  if (!tn_greeting_read(bytes, &greeting)) return;
  tn_greeting_write(&greeting, again);
  fuzz_expect(memcmp(bytes, again, sizeof again) == 0, "another greeting");
}

static void read_hello(const uint8_t *bytes) {
  tn_hello hello, other;
  if (!tn_hello_read(bytes, &hello)) return;
  fuzz_expect(is_text(hello.host, sizeof hello.host) && is_text(hello.version, sizeof hello.version),
              "a text without an end");
  fuzz_expect(hello.process >= 0 && hello.process < hello.processes && hello.processes <= TN_MOST_PROCESSES &&
                  hello.ranks >= 1,
              "a number out of its range");
  ROUND_TRIP(tn_hello_read, tn_hello_write, hello, TN_HELLO_BYTES);
  fuzz_expect(same_text(hello.host, other.host) && same_text(hello.version, other.version) &&
                  hello.process == other.process && hello.processes == other.processes &&
                  hello.ranks == other.ranks && hello.pid == other.pid,
              "another hello");
}

static void read_member(const uint8_t *bytes) {
  tn_member member, other;
  if (!tn_member_read(bytes, &member)) return;
  fuzz_expect(is_text(member.host, sizeof member.host) && is_text(member.address, sizeof member.address),
              "a text without an end");
  fuzz_expect(member.first_rank >= 0 && member.ranks >= 1 &&
                  member.first_rank + (int64_t)member.ranks <= INT32_MAX,
              "a number out of its range");
  ROUND_TRIP(tn_member_read, tn_member_write, member, TN_MEMBER_BYTES);
  fuzz_expect(same_text(member.host, other.host) && same_text(member.address, other.address) &&
                  member.first_rank == other.first_rank && member.ranks == other.ranks &&
                  member.pid == other.pid,
              "another member");
}

static void read_failure(const uint8_t *bytes, size_t size) {
  tn_wire_failure failure, other;
  unsigned char again[TN_FAILURE_BYTES];
  if (!tn_failure_read(bytes, (uint32_t)size, &failure)) return;
  fuzz_expect(is_text(failure.text, sizeof failure.text), "a text without an end");
  fuzz_expect(failure.rank >= 0 && failure.status > TN_OK && failure.status <= TN_EINTERNAL,
              "a number out of its range");
  uint32_t n = tn_failure_write(&failure, again);
  fuzz_expect(n <= size && tn_failure_read(again, n, &other), "the bytes written are not read");
  fuzz_expect(same_text(failure.text, other.text) && failure.rank == other.rank &&
                  failure.status == other.status,
              "another failure");
}

static void read_head(const uint8_t *bytes) {
  tn_frame_head head, other;
  if (!tn_frame_head_read(bytes, &head)) return;
  fuzz_expect(head.bytes <= TN_FRAME_MOST && head.kind > 0 && head.kind < TN_FRAME_KINDS,
              "a number out of its range");
  ROUND_TRIP(tn_frame_head_read, tn_frame_head_write, head, TN_FRAME_HEAD);
  fuzz_expect(head.kind == other.kind && head.number == other.number && head.bytes == other.bytes,
              "another head");
}

/* ---- summaries ---- */

static void check_call(const tn_rank_summary *s, const tn_summary_call *call) {
  fuzz_expect(is_text(call->name, sizeof call->name) && is_text(call->program, sizeof call->program),
              "a text without an end");
  fuzz_expect(call->number > 0 && call->number <= s->begun && call->count >= 0, "a number out of its range");
}

static void name_rank(void *context, int32_t rank, tn_text *text) {
  (void)context;
  tn_text_addf(text, "rank %d", (int)rank);
}

/* The summary of one rank, beside ranks that wait for it and ranks without a summary. */
static void find_late_rank(const fuzz *f, const tn_rank_summary *s) {
  tn_rank_summary all[3] = {*s, *s, *s};
  bool known[3] = {true, true, false};
  all[1].begun = all[1].ended = s->ended;
  all[1].n_calls = 0;
  const tn_rank_reports reports = {all, known, s->rank % 2 == 0, 2 + s->rank % 3 / 2, name_rank, NULL};
  tn_text text = tn_text_new(&f->env);
  tn_late_rank_find(&reports, &text);
  fuzz_expect(text.failed || text.n < 4096, "a finding that is too long");
  tn_text_free(&text);
}

static void read_summary(const fuzz *f, const uint8_t *bytes) {
  tn_rank_summary summary, other;
  if (!tn_summary_read(bytes, &summary)) return;
  fuzz_expect(is_text(summary.what, sizeof summary.what), "a text without an end");
  fuzz_expect(summary.rank >= 0 && summary.wait >= 0 && summary.wait < TN_SUMMARY_WAITS &&
                  summary.ended <= summary.begun && summary.n_calls >= 0 &&
                  summary.n_calls <= TN_SUMMARY_CALLS,
              "a number out of its range");
  for (int32_t i = 0; i < summary.n_calls; i++) check_call(&summary, &summary.calls[i]);
  ROUND_TRIP(tn_summary_read, tn_summary_write, summary, TN_SUMMARY_BYTES);
  fuzz_expect(summary.rank == other.rank && summary.wait == other.wait && summary.begun == other.begun &&
                  summary.ended == other.ended && summary.exchanges == other.exchanges &&
                  summary.step == other.step && summary.waited_ms == other.waited_ms &&
                  summary.n_calls == other.n_calls && summary.device == other.device &&
                  summary.inside == other.inside && same_text(summary.inside_name, other.inside_name) &&
                  same_text(summary.what, other.what),
              "another summary");
  find_late_rank(f, &summary);
}

/* ---- streams ---- */

typedef struct stream {
  fuzz *f;
  size_t bytes, kept; /* as written: of whole frames with their heads; of those that wait */
} stream;

static void take(void *context, tn_peer *peer, tn_frame *frame) {
  stream *s = context;
  s->bytes += TN_FRAME_HEAD + frame->head.bytes;
  if (frame->head.kind == TN_FRAME_PART || frame->head.kind == TN_FRAME_RESULT) {
    s->kept += TN_FRAME_HEAD + frame->head.bytes;
    tn_peer_keep(peer, frame);
  } else {
    tn_frame_release(s->f, frame);
  }
}

/* The receiver takes what waits only now and then. */
static void take_some(stream *s, tn_peer *peer, unsigned n) {
  for (tn_frame *frame; n > 0 && (frame = tn_peer_take(peer)) != NULL; n--) {
    s->kept -= TN_FRAME_HEAD + frame->head.bytes;
    tn_frame_release(s->f, frame);
  }
  fuzz_expect(peer->came_bytes == s->kept, "another count of bytes that wait");
}

/* The bytes as frames of the other process: with tags behind each head and body. Other bytes stay as they
 * are. The memory is for each byte and the tags of each frame. */
static size_t seal_stream(tn_seal *out, const uint8_t *bytes, size_t size, unsigned char *to) {
  unsigned char *start = to;
  tn_frame_head head;
  while (size >= TN_FRAME_HEAD && tn_frame_head_read(bytes, &head)) {
    size_t body = size - TN_FRAME_HEAD < head.bytes ? size - TN_FRAME_HEAD : head.bytes;
    memcpy(to, bytes, TN_FRAME_HEAD);
    tn_seal_make(out, to, TN_FRAME_HEAD, to + TN_FRAME_HEAD);
    to += TN_SEALED_HEAD;
    memcpy(to, bytes + TN_FRAME_HEAD, body);
    if (body > 0 && body == head.bytes) tn_seal_make(out, to, body, to + body);
    to += body + (body > 0 && body == head.bytes ? TN_TAG_BYTES : 0);
    bytes += TN_FRAME_HEAD + body;
    size -= TN_FRAME_HEAD + body;
  }
  memcpy(to, bytes, size);
  return (size_t)(to - start) + size;
}

static void send_stream(fuzz *f, tn_peer *peer, stream *s, const uint8_t *bytes, size_t size,
                        uint8_t pieces) {
  int ends[2];
  size_t piece = 1 + (size_t)pieces * 5, sent = 0;
  bool open = true;
  fuzz_expect(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "no sockets");
  peer->socket = ends[0];
  while (open && sent < size) {
    ssize_t n = send(ends[1], bytes + sent, size - sent < piece ? size - sent : piece, MSG_NOSIGNAL);
    fuzz_expect(n > 0, "the socket takes nothing");
    sent += (size_t)n;
    open = tn_peer_receive(f, peer, take, s);
    take_some(s, peer, pieces % 3);
  }
  close(ends[1]);
  while (open && tn_peer_is_full(peer)) take_some(s, peer, 1);
  if (open) fuzz_expect(!tn_peer_receive(f, peer, take, s), "a stream without an end");
}

/* The second byte tells the size of the pieces. The bytes of a stranger are taken for no frame. */
static void read_stream(fuzz *f, const uint8_t *bytes, size_t size, bool stranger) {
  static const unsigned char key[TN_KEY_BYTES] = "fuzz";
  tn_seals here = tn_seals_new(key, true), there = tn_seals_new(key, false);
  stream s = {.f = f};
  tn_peer peer;
  unsigned char *sealed = malloc(size + (size / TN_FRAME_HEAD + 1) * 2 * TN_TAG_BYTES);
  size_t n = stranger ? size - 1 : seal_stream(&there.out, bytes + 1, size - 1, sealed);
  tn_peer_init(&peer, -1, &here);
  send_stream(f, &peer, &s, stranger ? bytes + 1 : sealed, n, bytes[0]);
  fuzz_expect(s.bytes < size && (!stranger || s.bytes == 0), "more bytes than were sent");
  tn_peer_close(f, &peer);
  free(sealed);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz f;
  if (size < 2) return 0;
  fuzz_open(&f);
  uint8_t what = *bytes++ % 8;
  size--;
  if (what == 0 && size >= TN_HELLO_BYTES) read_hello(bytes);
  if (what == 1 && size >= TN_MEMBER_BYTES) read_member(bytes);
  if (what == 2) read_failure(bytes, size);
  if (what == 3 && size >= TN_FRAME_HEAD) read_head(bytes);
  if (what == 4 || what == 7) read_stream(&f, bytes, size, what == 7);
  if (what == 5 && size >= TN_SUMMARY_BYTES) read_summary(&f, bytes);
  if (what == 6 && size >= TN_GREETING_BYTES) read_greeting(bytes);
  fuzz_close(&f);
  return 0;
}
