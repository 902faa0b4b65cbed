/* core/distributed/join/join.h: the processes of a run find each other. Process 0 listens on a port, and
 * the others connect to it:
 *
 *   caller -> process 0   greeting: its nonce
 *   process 0 -> caller   greeting: its nonce, and the proof that it knows the token
 *   caller -> process 0   hello, and the proof that it knows the token
 *
 * and frames with tags from then on. On one host, both also look at the user of the other end. */
#pragma once

#include <stdatomic.h>

#include "core/distributed/wire/sealed_frame.h"

typedef struct tn_join_request {
  const tn_process_place *place;
  int32_t ranks; /* of this process */
  double timeout_s;
  double silence_s; /* a process that is not heard of for so long is stopped; 0: 20 s, at most the timeout */
  const atomic_int *stop; /* becomes other than 0: the wait ends with TN_ESTOPPED. May be NULL */
  atomic_int *taken; /* becomes 1 when process 0 has taken this one, which waits for others. May be NULL */
} tn_join_request;

/* Sockets and members of all processes. `sockets` has an entry for each process: on process 0 all but its own
 * are connected, on the others the first alone; the rest are -1. */
typedef struct tn_joined {
  int32_t n;
  int *sockets;
  tn_seals *seals; /* of each socket */
  tn_member *members;
} tn_joined;

/* Returns when all processes have come. TN_ECOMM: some did not in time, or this one was refused; the message
 * names them. Afterwards nothing listens any more. The caller calls tn_joined_free, after a failure too. */
tn_status tn_join(tn_env *env, const tn_join_request *request, tn_joined *joined);
void tn_joined_free(const void *handle, tn_joined *joined);

/* Process 0 listens on the first free one of so many ports, from place->port on. */
enum { TN_JOIN_PORTS = 16 };
enum { TN_REFUSAL_BYTES = 512 }; /* the most of the text of TN_FRAME_REFUSED */
/* Roles of proofs: of process 0, over nothing; of the others, over their hello. */
#define TN_JOIN_LISTENER "process 0"
#define TN_JOIN_CALLER   "hello"
/* The name of this host. */
void tn_join_host(char host[TN_HOST_BYTES]);
void tn_join_hello(const tn_join_request *request, tn_hello *hello);
bool tn_join_stopped(const tn_join_request *request);
/* hello.c. Seconds after which a process that is not heard of counts as stopped, and those between its signs
 * of life; also on the link afterwards. */
double tn_join_silence_s(const tn_join_request *request);
double tn_join_beat_s(const tn_join_request *request);
/* join_pause.c. A process that was stopped (SIGSTOP) has not waited for the others, but they for it. The
 * seconds since *seen_s if they are more than most_s, which the caller's work takes at most; otherwise 0.
 * Sets *seen_s. */
double tn_join_pause(double *seen_s, double most_s);
/* TN_ECOMM: this process was stopped for so many seconds. */
tn_status tn_join_fail_paused(tn_env *env, const tn_join_request *request, double seconds);
/* join_listen.c: process 0. join_connect.c: the others. */
tn_status tn_join_listen(tn_env *env, const tn_join_request *request, tn_joined *joined);
tn_status tn_join_connect(tn_env *env, const tn_join_request *request, tn_joined *joined);
