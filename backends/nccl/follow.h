/* backends/nccl/follow.h: which collective a device is in.
 *
 * NCCL does not say that a rank does not come: the kernels of the others wait. So the stream itself writes
 * where it is, before and behind each collective, into a word of pinned host memory: 2 n + 1 when collective
 * n begins, 2 n + 2 when it has ended, modulo 2^31. The host marks an odd word by its highest bit, which the
 * next write of the device removes; a word that keeps its mark for the timeout is that of a collective that
 * waits. A captured collective writes the same two numbers in each replay, so numbers say where a rank is and
 * not how far; ranks run the same program, so equal numbers are the same collective.
 *
 * A write is one command of the stream, and two more nodes of a captured graph, which no kernel is launched
 * for. Nothing is allocated. Where the device or its captures do not take such commands, which `open` tries
 * out, collectives are not followed, and the host's own limits find a rank that does not come. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "backends/nccl/library.h"

enum { TN_NCCL_KEPT = 1024, TN_NCCL_NAME = 56 };

typedef struct tn_nccl_kept_name {
  uint32_t number;
  char text[TN_NCCL_NAME];
} tn_nccl_kept_name;

typedef struct tn_nccl_follow {
  const tn_nccl_driver *driver;
  _Atomic uint32_t *word;                /* pinned; NULL: nothing is followed */
  bool in_captures;                      /* captures take the writes, too */
  pthread_mutex_t lock;                  /* of the rest */
  double since;                          /* when the word was marked */
  uint32_t calls;                        /* collectives so far, captured ones once */
  tn_nccl_kept_name names[TN_NCCL_KEPT]; /* of the last calls */
} tn_nccl_follow;

void tn_nccl_follow_init(tn_nccl_follow *follow);
/* Tries the writes out on a stream of its own. The context must be current. The log says why collectives are
 * not followed. */
tn_status tn_nccl_follow_open(tn_env *env, const tn_nccl_driver *driver, tn_nccl_follow *follow);
/* Accepts one that was only initialized. */
void tn_nccl_follow_close(tn_nccl_follow *follow);

/* The next collective's number; its name is kept. */
uint32_t tn_nccl_follow_number(tn_nccl_follow *follow, const char *name);
/* Enqueue the writes before and behind collective `number`. */
tn_status tn_nccl_follow_begin(tn_env *env, const tn_nccl_follow *follow, CUstream stream, uint32_t number);
tn_status tn_nccl_follow_end(tn_env *env, const tn_nccl_follow *follow, CUstream stream, uint32_t number);

/* The word without its mark: odd in a collective. */
uint32_t tn_nccl_follow_word(const tn_nccl_follow *follow);
/* Seconds that the device has been in one collective, as far as earlier calls of this function saw it; 0:
 * it is in none, or has moved since the last call. */
double tn_nccl_follow_waited(tn_nccl_follow *follow, double now_s);
/* Whether the device is in a collective, whose name is written; TN_EUNSUPPORTED: not all are followed. */
tn_status tn_nccl_follow_position(tn_env *env, tn_nccl_follow *follow, tn_comm_position *position);
/* The name of the collective of a word, with quotes, or "collective 12" where it is not kept any more. */
void tn_nccl_follow_name(tn_nccl_follow *follow, uint32_t word, char *text, size_t size);
