/* backends/tcp/flow.h: the bytes of one collective between two ranks in one direction: a list of pieces of
 * memory, which are sent or received in their order. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { TN_TCP_PIECES = 4 };

/* A piece of memory. Its first *limit + ahead bytes may be moved at present, or all where limit is NULL. The
 * limit is the number of bytes that this rank has reduced or received and may send on, or that a ring has
 * room for. With ring > 0, byte i is at data + i % ring. */
typedef struct tn_tcp_piece {
  char *data;
  size_t bytes, moved, ring, ahead;
  const size_t *limit;
} tn_tcp_piece;

typedef struct tn_tcp_flow {
  tn_tcp_piece pieces[TN_TCP_PIECES];
  int32_t n, at; /* pieces, and the first that is not complete */
} tn_tcp_flow;

void tn_tcp_flow_start(tn_tcp_flow *flow);
/* Returns the added piece. Pieces without bytes may be added. */
tn_tcp_piece *tn_tcp_flow_add(tn_tcp_flow *flow, const void *data, size_t bytes);
bool tn_tcp_flow_done(const tn_tcp_flow *flow);
/* Whether bytes may be moved at present. */
bool tn_tcp_flow_open(const tn_tcp_flow *flow);
/* Moves what the socket takes or has. The bytes moved; -1: the connection is broken, as tn_tcp_send says. */
ssize_t tn_tcp_flow_send(tn_tcp_flow *flow, int fd);
ssize_t tn_tcp_flow_receive(tn_tcp_flow *flow, int fd);
