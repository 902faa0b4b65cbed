/* core/distributed/link/link_state.h: a link, for link.c and exchanges.c. */
#pragma once

#include <poll.h>
#include <pthread.h>

#include "core/base/vec.h"
#include "core/distributed/link/link.h"
#include "core/distributed/link/peer.h"

/* The most decisions that a process may be behind process 0. */
enum { TN_LINK_DECISIONS = 1 << 20 };

struct tn_link {
  tn_env env; /* under the lock, like all that follows */
  tn_error_record record;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  tn_joined joined;
  int32_t process;
  tn_peer *peers; /* on process 0 one for each process, its own without a socket; on the others process 0 */
  int32_t n_peers;
  struct pollfd *polls; /* of the thread */
  int32_t *polled;
  int wake;
  double timeout_s, silence_s, beat_s;
  pthread_t thread;
  bool started, ending, leaving;
  bool all_left; /* on process 0: it has told that */

  bool out_of_memory;
  bool failed, told; /* told: the listener knows it */
  tn_wire_failure failure;
  bool stop_asked, stop_told;
  bool steps; /* tn_link_begin_steps */
  tn_link_listener listener;
  bool telling; /* the listener is being called */

  uint64_t number;   /* of the last exchange */
  int32_t awaited;   /* the process for which it waits; -1 */
  double since_s;    /* the last progress of that wait */
  uint64_t progress; /* frames that exchanges have taken or sent so far; signs of life tell it */
  const char *what;
  TN_VEC(int32_t) decisions; /* that came */
  size_t decided;            /* of them taken */
};

/* Records a failure and tells it to all peers, once. The lock must be held. */
void tn_link_note(tn_link *link, const tn_wire_failure *failure, bool told);
/* Sends a frame to all peers, at once if their sockets take it. The lock must be held. */
void tn_link_queue_all(tn_link *link, tn_frame *frame);
void tn_link_wake(tn_link *link);
