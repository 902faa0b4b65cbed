/* core/distributed/wire/sealed_frame.h: a frame on a socket: its head, the tag of the head, its body
 * and, where there is one, the tag of the body. The head is checked before its number of bytes is used. */
#pragma once

#include "core/distributed/wire/proof.h"
#include "core/distributed/wire/wire.h"

enum { TN_SEALED_HEAD = TN_FRAME_HEAD + TN_TAG_BYTES };

/* The bytes behind the sealed head of a frame. */
static inline uint32_t tn_sealed_body(uint32_t bytes) { return bytes > 0 ? bytes + TN_TAG_BYTES : 0; }

/* False: not the next head of the connection. */
bool tn_sealed_head_read(tn_seal *in, const unsigned char from[TN_SEALED_HEAD], tn_frame_head *head);

/* Whether a body is the next piece; its tag lies behind it. One of no bytes has no tag. */
bool tn_sealed_body_check(tn_seal *in, const unsigned char *body, uint32_t bytes);

/* While processes join: sends a frame with at most TN_JOIN_BODY bytes, as tn_socket_send. */
enum { TN_JOIN_BODY = TN_FAILURE_BYTES };
bool tn_sealed_send(int socket, tn_seal *out, const tn_frame_head *head, const void *body, double deadline_s);
