/* core/distributed/link/link.h: the connections between the processes of a run, beside the collectives:
 * exchanges of small data, decisions of rank 0, failures, requests to stop. All processes are connected with
 * process 0. A thread of the link sends and receives, so that a process is heard of while its ranks compute;
 * one that is not heard of, or whose connection ends, has failed.
 *
 * Exchanges: one thread of each process makes the same calls in the same order. All other functions are for
 * any thread. */
#pragma once

#include "core/distributed/join/join.h"

typedef struct tn_link tn_link;

/* Called on the thread of the link. */
typedef struct tn_link_listener {
  /* A rank of another process, or the process itself, has failed; once. */
  void (*failed)(void *context, const tn_wire_failure *failure);
  /* On process 0: another process was asked to stop. */
  void (*stopped)(void *context);
  void *context;
} tn_link_listener;

/* Joins the other processes. TN_ECOMM, TN_ESTOPPED: as tn_join. */
tn_status tn_link_open(tn_env *env, const tn_join_request *request, tn_link **link);
/* Tells the others that this process leaves, and waits until all leave. A failure of any process until
 * then is TN_ECOMM, without a text: the listener has it. So is a process that does not leave within the
 * timeout of the request. */
tn_status tn_link_leave(tn_link *link);
/* In order: the others were told that this process leaves. Otherwise they see a failure unless they have seen
 * one. Accepts NULL. */
void tn_link_close(tn_link *link, bool in_order);
/* From now on failures and requests are told; those before as well. NULL: no longer. */
void tn_link_listen(tn_link *link, const tn_link_listener *listener);

int32_t tn_link_first_rank(const tn_link *link);
int32_t tn_link_ranks(const tn_link *link); /* of all processes */
int32_t tn_link_process(const tn_link *link);
int32_t tn_link_processes(const tn_link *link);
/* A process of the run; the one of a rank. */
const tn_member *tn_link_member(const tn_link *link, int32_t process);
int32_t tn_link_process_of(const tn_link *link, int32_t rank);

/* Exchanges. `what` is static, for messages. A failure of any process is TN_ECOMM, without a text: the
 * listener has it. */
/* Copies `bytes` bytes of each rank to all processes: `mine` has those of this process's ranks, `all` gets
 * those of all ranks. */
tn_status tn_link_all_gather(tn_link *link, const char *what, const void *mine, size_t bytes, void *all);
/* The same for process 0 alone. On the others `all` is not used, and the call may return before process 0 has
 * come to the exchange. */
tn_status tn_link_gather(tn_link *link, const char *what, const void *mine, size_t bytes, void *all);
/* Copies `data` of process 0 to all processes. */
tn_status tn_link_broadcast(tn_link *link, const char *what, void *data, size_t bytes);
/* The process for which an exchange waits, and since when no data moved; -1: none does. */
int32_t tn_link_awaited(tn_link *link, double *since_s, const char **what);

/* Process 0 sends a decision; the n-th call on another process returns the n-th of them. */
tn_status tn_link_send_decision(tn_link *link, int32_t decision);
tn_status tn_link_next_decision(tn_link *link, int32_t *decision);

/* Tells all processes, once. */
void tn_link_fail(tn_link *link, const tn_wire_failure *failure);
/* After a failure: sends at most TN_FRAME_MOST bytes to process 0; process 0 sends them to all. */
void tn_link_report(tn_link *link, const void *bytes, uint32_t n);
/* Waits for the report of a process, of 0 on another one, until its connection ends or the clock is at
 * until_s. The caller releases *bytes. False: no report came, or memory is missing. */
bool tn_link_receive_report(tn_link *link, const void *handle, int32_t process, double until_s, char **bytes,
                            uint32_t *n);
/* Until then an exchange that waits ends the run with TN_ESTOPPED where this process was asked to stop
 * (tn_stop_asked of the link's env); from then on the loop of steps does. */
void tn_link_begin_steps(tn_link *link);
/* Asks process 0 to stop the run. */
void tn_link_stop(tn_link *link);
