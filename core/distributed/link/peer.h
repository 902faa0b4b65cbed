/* core/distributed/link/peer.h: one connection of a link: frames that came and frames that go. The lock
 * of the link protects it. */
#pragma once

#include "core/distributed/wire/sealed_frame.h"

/* A frame in memory. Those that go to several peers are shared. */
typedef struct tn_frame {
  struct tn_frame *next; /* in the queue of what came */
  int32_t uses;
  tn_frame_head head;
  unsigned char bytes[]; /* the head as bytes, then the body, and room for its tag */
} tn_frame;

static inline unsigned char *tn_frame_body(tn_frame *frame) { return frame->bytes + TN_FRAME_HEAD; }

typedef struct tn_peer {
  int socket; /* -1: closed */
  tn_seals seals;
  bool left;   /* it has said that it leaves */
  bool forged; /* bytes have come that it has not sent */
  double heard_s, said_s;
  uint64_t progress; /* in its last sign of life: frames that its exchanges have taken or sent */
  /* frames to send: a ring */
  tn_frame **going;
  size_t first, n_going, room;
  size_t sent; /* bytes of the first, with its tags, which are made when it becomes the first */
  bool tagged;
  unsigned char tags[2][TN_TAG_BYTES]; /* of its head and body */
  /* frames received */
  unsigned char head[TN_SEALED_HEAD];
  tn_frame *coming; /* its body is being read; NULL: its head */
  size_t got;
  tn_frame *came, **came_end; /* parts and results not taken yet, oldest first */
  size_t came_bytes;          /* of them, with their heads */
  tn_frame *report;           /* the last TN_FRAME_REPORT; NULL: none has come */
} tn_peer;

enum { TN_PEER_MOST = 8 << 20 };

/* Whether so much waits that nothing more is read. */
static inline bool tn_peer_is_full(const tn_peer *peer) { return peer->came_bytes >= TN_PEER_MOST; }

/* `seals` NULL: none, without a socket. */
void tn_peer_init(tn_peer *peer, int socket, const tn_seals *seals);
void tn_peer_close(const void *handle, tn_peer *peer);

/* A new frame with room for a body, used once; NULL: no memory. */
tn_frame *tn_frame_new(const void *handle, uint32_t kind, uint64_t number, uint32_t bytes);
void tn_frame_release(const void *handle, tn_frame *frame);

/* Adds a use of the frame, which is released when it was sent. */
tn_status tn_peer_queue(const void *handle, tn_peer *peer, tn_frame *frame);
/* Sends what the socket takes. False: the connection has ended. */
bool tn_peer_send(const void *handle, tn_peer *peer);
/* Whether all frames have arrived at the other host. The rest would be lost if the socket were closed while
 * it holds unread bytes. */
bool tn_peer_is_sent(const tn_peer *peer);
/* Reads what the socket has, until frames of TN_PEER_MOST bytes wait. Each whole frame goes to `take`, which
 * becomes its owner. False: the connection has ended, or its bytes are no frames of the peer (peer->forged).
 */
bool tn_peer_receive(const void *handle, tn_peer *peer,
                     void (*take)(void *context, tn_peer *peer, tn_frame *frame), void *context);
/* Frames of exchanges wait for the exchange. */
void tn_peer_keep(tn_peer *peer, tn_frame *frame);
/* A report replaces the one before. */
void tn_peer_keep_report(const void *handle, tn_peer *peer, tn_frame *frame);
/* The oldest frame that waits, or NULL; the caller releases it. */
tn_frame *tn_peer_take(tn_peer *peer);
