/* core/distributed/wire/sealed_frame.c: see sealed_frame.h. */
#include "core/distributed/wire/sealed_frame.h"

#include <string.h>

#include "core/distributed/wire/socket.h"

bool tn_sealed_head_read(tn_seal *in, const unsigned char from[TN_SEALED_HEAD], tn_frame_head *head) {
  return tn_seal_check(in, from, TN_FRAME_HEAD, from + TN_FRAME_HEAD) && tn_frame_head_read(from, head);
}

bool tn_sealed_body_check(tn_seal *in, const unsigned char *body, uint32_t bytes) {
  return bytes == 0 || tn_seal_check(in, body, bytes, body + bytes);
}

bool tn_sealed_send(int socket, tn_seal *out, const tn_frame_head *head, const void *body,
                    double deadline_s) {
  unsigned char bytes[TN_SEALED_HEAD + TN_JOIN_BODY + TN_TAG_BYTES], *to = bytes + TN_SEALED_HEAD;
  tn_frame_head_write(head, bytes);
  tn_seal_make(out, bytes, TN_FRAME_HEAD, bytes + TN_FRAME_HEAD);
  if (head->bytes > 0) {
    memcpy(to, body, head->bytes);
    tn_seal_make(out, to, head->bytes, to + head->bytes);
  }
  return tn_socket_send(socket, bytes, TN_SEALED_HEAD + tn_sealed_body(head->bytes), deadline_s);
}
