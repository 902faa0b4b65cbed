/* backends/tcp/flow.c: see flow.h. */
#include "backends/tcp/flow.h"

#include "backends/tcp/socket.h"

/* A longer move keeps the other connections waiting. */
enum { FLOW_MOST_BYTES = 1 << 20 };

void tn_tcp_flow_start(tn_tcp_flow *flow) { flow->n = flow->at = 0; }

tn_tcp_piece *tn_tcp_flow_add(tn_tcp_flow *flow, const void *data, size_t bytes) {
  tn_tcp_piece *piece = &flow->pieces[flow->n++];
  *piece = (tn_tcp_piece){.data = (char *)(uintptr_t)data, .bytes = bytes};
  return piece;
}

/* Bytes from the first on that may be moved at present, those that have been moved included. */
static size_t flow_allowed(const tn_tcp_piece *p) {
  if (p->limit == NULL || *p->limit + p->ahead > p->bytes) return p->bytes;
  return *p->limit + p->ahead;
}

static void flow_skip_complete(tn_tcp_flow *flow) {
  while (flow->at < flow->n && flow->pieces[flow->at].moved == flow->pieces[flow->at].bytes) flow->at++;
}

bool tn_tcp_flow_done(const tn_tcp_flow *flow) {
  for (int32_t i = flow->at; i < flow->n; i++)
    if (flow->pieces[i].moved < flow->pieces[i].bytes) return false;
  return true;
}

/* The memory that can be moved at once. A piece may follow another one only if that one is moved as a whole.
 */
static int32_t flow_gather(const tn_tcp_flow *flow, struct iovec *memory) {
  int32_t n = 0;
  size_t all = 0;
  for (int32_t i = flow->at; i < flow->n && all < FLOW_MOST_BYTES; i++) {
    const tn_tcp_piece *p = &flow->pieces[i];
    size_t start = p->ring > 0 ? p->moved % p->ring : p->moved, bytes = flow_allowed(p) - p->moved;
    if (p->ring > 0 && bytes > p->ring - start) bytes = p->ring - start;
    if (bytes > FLOW_MOST_BYTES - all) bytes = FLOW_MOST_BYTES - all;
    if (bytes > 0) memory[n++] = (struct iovec){p->data + start, bytes};
    all += bytes;
    if (p->moved + bytes < p->bytes) break;
  }
  return n;
}

bool tn_tcp_flow_open(const tn_tcp_flow *flow) {
  struct iovec memory[TN_TCP_PIECES];
  return flow_gather(flow, memory) > 0;
}

static void flow_advance(tn_tcp_flow *flow, size_t bytes) {
  for (int32_t i = flow->at; i < flow->n && bytes > 0; i++) {
    tn_tcp_piece *p = &flow->pieces[i];
    size_t here = p->bytes - p->moved < bytes ? p->bytes - p->moved : bytes;
    p->moved += here;
    bytes -= here;
  }
  flow_skip_complete(flow);
}

ssize_t tn_tcp_flow_send(tn_tcp_flow *flow, int fd) {
  struct iovec memory[TN_TCP_PIECES];
  int32_t n = flow_gather(flow, memory);
  ssize_t moved = n > 0 ? tn_tcp_send(fd, memory, n) : 0;
  if (moved > 0) flow_advance(flow, (size_t)moved);
  return moved;
}

ssize_t tn_tcp_flow_receive(tn_tcp_flow *flow, int fd) {
  struct iovec memory[TN_TCP_PIECES];
  int32_t n = flow_gather(flow, memory);
  ssize_t moved = n > 0 ? tn_tcp_receive(fd, memory, n) : 0;
  if (moved > 0) flow_advance(flow, (size_t)moved);
  return moved;
}
