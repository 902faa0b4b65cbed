/* backends/tcp/tcp.h: the communicator of a rank: its connections to all others, the collectives that wait
 * for its thread, and the first failure.
 *
 * A thread of the communicator (worker.c) runs the collectives in their order, and notices between them when
 * a rank ends. Each pair of ranks has two connections (wire.h), so that one rank sends another its part of an
 * operand without a third.
 *
 * Order of sums. Each element is reduced by one rank, or, of small operands, by every rank, always in the
 * order of ranks 0, 1, 2, ...; results have the same bits on all ranks, in every run, and as those of `sim`.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "backends/tcp/flow.h"
#include "backends/tcp/wire.h"

typedef struct tn_tcp_options {
  const char *address; /* tn_tcp_address_choose */
  const char *ports;   /* "40000-40100"; "": any */
  int64_t direct;      /* bytes up to which an all_reduce sends whole operands */
  int64_t buffer;      /* bytes received ahead from each rank */
} tn_tcp_options;

extern const tn_communicator tn_tcp_communicator;

/* Another rank. Rank and process: those of the table. */
typedef struct tn_tcp_peer {
  int lanes[TN_TCP_LANES]; /* sockets; -1: none */
  tn_tcp_address address;
  int32_t process;
  bool left;        /* it has closed its communicator */
  tn_tcp_note note; /* of which note_bytes have come */
  size_t note_bytes;

  /* of the collective that runs */
  bool asked, told; /* whether it is alive; it is, and the note's `called` and `waits` are these */
  bool waits;
  uint64_t called;
  tn_tcp_flow in, out;
  tn_tcp_call call; /* as the peer came to it */
  bool compared;    /* `call` has come, and equals the own */
  char *ring;       /* of `buffer` bytes, for the peer's operands */
} tn_tcp_peer;

/* The first failure. */
typedef struct tn_tcp_failure {
  atomic_bool set;
  pthread_mutex_t lock;
  char text[488];
} tn_tcp_failure;

enum { TN_TCP_QUEUE = 4096 }; /* collectives that may wait */

typedef struct tn_tcp {
  int32_t rank, ranks;
  double timeout_s;
  tn_tcp_options options;
  tn_tcp_peer *peers; /* one for each rank; that of the rank itself is unused but for its place */
  tn_tcp_failure failure;

  /* between the host's threads and the worker */
  pthread_t thread;
  int wake;             /* eventfd: written when there is something new for the worker */
  pthread_mutex_t lock; /* of the members up to `stop` */
  pthread_cond_t changed;
  uint64_t pushed, ended; /* collectives */
  bool stop;
  tn_collective queue[TN_TCP_QUEUE]; /* collective i is at i % TN_TCP_QUEUE, counted from 0 */

  /* the worker's own: the collective that runs */
  tn_collective call;
  tn_tcp_call announced;
  size_t reduced, part_bytes; /* of the part that this rank reduces */
  bool whole;                 /* every rank reduces the whole operand */
  char *rings;
} tn_tcp;

/* ---- failure.c ---- */

/* Records a failure; later ones are dropped. From any thread. */
void tn_tcp_fail(tn_tcp *t, const char *format, ...) TN_PRINTF(2, 3);
tn_status tn_tcp_failed(tn_env *env, tn_tcp *t);
/* "rank 2 (10.0.0.3:4711)"; returns `text`. */
enum { TN_TCP_RANK_TEXT = 96 };
const char *tn_tcp_rank_text(const tn_tcp *t, int32_t rank, char text[TN_TCP_RANK_TEXT]);

/* ---- join.c ---- */

/* Connects the rank with all others. On success every peer has its sockets; on failure the caller closes
 * those that it has. `listener` is closed. */
tn_status tn_tcp_join(tn_env *env, tn_tcp *t, const tn_tcp_identity *identity, const tn_comm_place *place,
                      const tn_tcp_address *own, int listener);

/* ---- exchange.c ---- */

/* Begins t->call: makes the flows. */
void tn_tcp_exchange_begin(tn_tcp *t, uint64_t number);
/* Compares calls that have come, and reduces elements that have come. true: there were some. A difference
 * between the calls is recorded as failure. */
bool tn_tcp_exchange_advance(tn_tcp *t);
bool tn_tcp_exchange_done(const tn_tcp *t);

/* ---- worker.c ---- */

/* The thread's body; the argument is a tn_tcp. */
void *tn_tcp_work(void *arg);
