/* core/distributed/link/link_state.c: the members of a run, frames to all peers, the first failure. */
#include "core/distributed/link/link_state.h"

#include <string.h>
#include <unistd.h>

/* ---- members ---- */

int32_t tn_link_first_rank(const tn_link *l) { return l->joined.members[l->process].first_rank; }
int32_t tn_link_process(const tn_link *l) { return l->process; }
int32_t tn_link_processes(const tn_link *l) { return l->joined.n; }
const tn_member *tn_link_member(const tn_link *l, int32_t process) { return &l->joined.members[process]; }

int32_t tn_link_ranks(const tn_link *l) {
  const tn_member *last = &l->joined.members[l->joined.n - 1];
  return last->first_rank + last->ranks;
}

int32_t tn_link_process_of(const tn_link *l, int32_t rank) {
  int32_t process = l->joined.n - 1;
  while (process > 0 && l->joined.members[process].first_rank > rank) process--;
  return process;
}

/* ---- frames to all peers ---- */

void tn_link_wake(tn_link *l) {
  uint64_t one = 1;
  (void)!write(l->wake, &one, sizeof one);
}

/* Whether the thread of the link must send the rest. It sees the end of a connection as well. */
static bool link_send_now(tn_link *l, tn_peer *peer, tn_frame *frame) {
  if (peer->socket < 0) return false;
  if (tn_peer_queue(&l->env, peer, frame) != TN_OK) l->out_of_memory = true;
  return !tn_peer_send(&l->env, peer) || peer->n_going > 0;
}

void tn_link_queue_all(tn_link *l, tn_frame *frame) {
  bool rest = false;
  for (int32_t i = 0; i < l->n_peers; i++) rest = link_send_now(l, &l->peers[i], frame) || rest;
  if (rest) tn_link_wake(l);
}

/* ---- failures ---- */

void tn_link_note(tn_link *l, const tn_wire_failure *failure, bool told) {
  unsigned char body[TN_FAILURE_BYTES];
  /* TN_ECOMM may be a consequence of another failure, which replaces it */
  if (l->failed && (l->failure.status != TN_ECOMM || failure->status == TN_ECOMM)) return;
  l->failed = true;
  l->told = told;
  l->failure = *failure;
  uint32_t bytes = tn_failure_write(failure, body);
  tn_frame *frame = tn_frame_new(&l->env, TN_FRAME_FAILURE, 0, bytes);
  if (frame != NULL) memcpy(tn_frame_body(frame), body, bytes);
  if (frame != NULL) tn_link_queue_all(l, frame);
  tn_frame_release(&l->env, frame);
  if (!told) tn_link_wake(l);
  pthread_cond_broadcast(&l->changed);
}
