/* core/distributed/link/peer.c: one connection of a link. */
#include "core/distributed/link/peer.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/system/system.h"
#include "core/distributed/wire/socket.h"

void tn_peer_init(tn_peer *peer, int socket, const tn_seals *seals) {
  *peer = (tn_peer){.socket = socket, .heard_s = tn_clock_s(), .said_s = tn_clock_s()};
  if (seals != NULL) peer->seals = *seals;
  peer->came_end = &peer->came;
}

void tn_peer_close(const void *handle, tn_peer *peer) {
  if (peer->socket >= 0) tn_socket_close(peer->socket);
  peer->socket = -1;
  for (size_t i = 0; i < peer->n_going; i++)
    tn_frame_release(handle, peer->going[(peer->first + i) % peer->room]);
  for (tn_frame *f; (f = tn_peer_take(peer)) != NULL;) tn_frame_release(handle, f);
  tn_frame_release(handle, peer->coming);
  tn_frame_release(handle, peer->report);
  tn_release(handle, peer->going);
  tn_peer_init(peer, -1, NULL);
}

/* ---- frames ---- */

tn_frame *tn_frame_new(const void *handle, uint32_t kind, uint64_t number, uint32_t bytes) {
  tn_frame *frame = tn_alloc(handle, sizeof *frame + TN_SEALED_HEAD + bytes);
  if (frame == NULL) return NULL;
  frame->uses = 1;
  frame->head = (tn_frame_head){kind, number, bytes};
  tn_frame_head_write(&frame->head, frame->bytes);
  return frame;
}

void tn_frame_release(const void *handle, tn_frame *frame) {
  if (frame != NULL && --frame->uses == 0) tn_release(handle, frame);
}

/* ---- sending ---- */

static tn_status peer_make_room(const void *handle, tn_peer *peer) {
  if (peer->n_going < peer->room) return TN_OK;
  size_t room = 2 * peer->room + 16;
  tn_frame **going = tn_alloc(handle, tn_size_mul(room, sizeof *going));
  if (going == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < peer->n_going; i++) going[i] = peer->going[(peer->first + i) % peer->room];
  tn_release(handle, peer->going);
  peer->going = going;
  peer->room = room;
  peer->first = 0;
  return TN_OK;
}

tn_status tn_peer_queue(const void *handle, tn_peer *peer, tn_frame *frame) {
  if (peer->socket < 0) return TN_OK;
  TN_TRY(peer_make_room(handle, peer));
  peer->going[(peer->first + peer->n_going++) % peer->room] = frame;
  frame->uses++;
  peer->said_s = tn_clock_s();
  return TN_OK;
}

static void peer_tag(tn_peer *peer, tn_frame *frame) {
  if (peer->tagged) return;
  tn_seal_make(&peer->seals.out, frame->bytes, TN_FRAME_HEAD, peer->tags[0]);
  if (frame->head.bytes > 0)
    tn_seal_make(&peer->seals.out, tn_frame_body(frame), frame->head.bytes, peer->tags[1]);
  peer->tagged = true;
}

/* The rest of a frame: head, tag, body and tag, without the first peer->sent bytes. Returns their
 * sum. */
static size_t peer_list_pieces(tn_peer *peer, tn_frame *frame, struct msghdr *message) {
  struct iovec *to = message->msg_iov;
  size_t body = frame->head.bytes, skipped = peer->sent, all = 0;
  const struct iovec pieces[] = {{frame->bytes, TN_FRAME_HEAD},
                                 {peer->tags[0], TN_TAG_BYTES},
                                 {tn_frame_body(frame), body},
                                 {peer->tags[1], body > 0 ? TN_TAG_BYTES : 0}};
  for (int i = 0; i < 4; i++) {
    size_t skip = skipped < pieces[i].iov_len ? skipped : pieces[i].iov_len, rest = pieces[i].iov_len - skip;
    skipped -= skip;
    all += rest;
    if (rest > 0) *to++ = (struct iovec){(char *)pieces[i].iov_base + skip, rest};
  }
  message->msg_iovlen = (size_t)(to - message->msg_iov);
  return all;
}

bool tn_peer_send(const void *handle, tn_peer *peer) {
  while (peer->n_going > 0) {
    tn_frame *frame = peer->going[peer->first];
    struct iovec pieces[4];
    struct msghdr message = {.msg_iov = pieces};
    peer_tag(peer, frame);
    size_t bytes = peer_list_pieces(peer, frame, &message);
    ssize_t n = sendmsg(peer->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    peer->sent += (size_t)n;
    if ((size_t)n < bytes) return true;
    tn_frame_release(handle, frame);
    peer->first = (peer->first + 1) % peer->room;
    peer->n_going--;
    peer->sent = 0;
    peer->tagged = false;
  }
  return true;
}

bool tn_peer_is_sent(const tn_peer *peer) {
  int waiting = 0;
  if (peer->socket < 0) return true;
  return peer->n_going == 0 && (ioctl(peer->socket, SIOCOUTQ, &waiting) != 0 || waiting == 0);
}

/* ---- receiving ---- */

/* Reads into the head, or into the body. 1: it is whole; 0: later; -1: the connection has ended. */
static int peer_read(tn_peer *peer, unsigned char *to, size_t bytes) {
  while (peer->got < bytes) {
    ssize_t n = recv(peer->socket, to + peer->got, bytes - peer->got, MSG_DONTWAIT);
    if (n == 0) return -1;
    if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
    peer->got += (size_t)n;
    peer->heard_s = tn_clock_s();
  }
  peer->got = 0;
  return 1;
}

static int peer_refuse(tn_peer *peer) {
  peer->forged = true;
  return -1;
}

static int peer_read_frame(const void *handle, tn_peer *peer) {
  tn_frame_head head;
  int got = 1;
  if (peer->coming == NULL) {
    if ((got = peer_read(peer, peer->head, TN_SEALED_HEAD)) < 1) return got;
    if (!tn_sealed_head_read(&peer->seals.in, peer->head, &head)) return peer_refuse(peer);
    peer->coming = tn_frame_new(handle, head.kind, head.number, head.bytes);
    if (peer->coming == NULL) return -1;
  }
  unsigned char *body = tn_frame_body(peer->coming);
  uint32_t bytes = peer->coming->head.bytes;
  if ((got = peer_read(peer, body, tn_sealed_body(bytes))) < 1) return got;
  return tn_sealed_body_check(&peer->seals.in, body, bytes) ? 1 : peer_refuse(peer);
}

bool tn_peer_receive(const void *handle, tn_peer *peer,
                     void (*take)(void *context, tn_peer *peer, tn_frame *frame), void *context) {
  int got = 0;
  while (!tn_peer_is_full(peer) && (got = peer_read_frame(handle, peer)) == 1) {
    tn_frame *frame = peer->coming;
    peer->coming = NULL;
    take(context, peer, frame);
  }
  return got >= 0;
}

void tn_peer_keep(tn_peer *peer, tn_frame *frame) {
  *peer->came_end = frame;
  peer->came_end = &frame->next;
  peer->came_bytes += TN_FRAME_HEAD + frame->head.bytes;
}

void tn_peer_keep_report(const void *handle, tn_peer *peer, tn_frame *frame) {
  tn_frame_release(handle, peer->report);
  peer->report = frame;
}

tn_frame *tn_peer_take(tn_peer *peer) {
  tn_frame *frame = peer->came;
  if (frame == NULL) return NULL;
  peer->came = frame->next;
  if (peer->came == NULL) peer->came_end = &peer->came;
  frame->next = NULL;
  peer->came_bytes -= TN_FRAME_HEAD + frame->head.bytes;
  return frame;
}
