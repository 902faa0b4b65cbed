/* backends/nccl/group.h: the ranks of a communicator that live in one process: which have come, and the first
 * failure. identify makes the group of process 0, whose address is part of the identity. A rank of another
 * process has a group of its own, since nothing in a plugin is global. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "backends/nccl/follow.h"

enum { TN_NCCL_TEXT = 1024 };

typedef struct tn_nccl_seat {
  bool came, left;
  int32_t device;
  tn_nccl_follow *follow;
} tn_nccl_seat;

typedef struct tn_nccl_group {
  pthread_mutex_t lock;
  int32_t ranks;
  int32_t here; /* ranks of this process; -1: unknown, since there are other processes */
  int32_t came, left;
  bool complete; /* a rank has opened its communicator, so all have come */
  atomic_bool failed;
  char text[TN_NCCL_TEXT]; /* of the first failure; with `failed` it does not change any more */
  tn_nccl_seat seats[];    /* per rank of the run */
} tn_nccl_group;

tn_status tn_nccl_group_new(tn_env *env, const tn_comm_place *place, bool alone, tn_nccl_group **group);
void tn_nccl_group_enter(tn_nccl_group *group, int32_t rank, int32_t device, tn_nccl_follow *follow);
/* Frees the group with the last rank that may leave it. */
void tn_nccl_group_leave(tn_env *env, tn_nccl_group *group, int32_t rank);
/* The rank has opened its communicator. */
void tn_nccl_group_complete(tn_nccl_group *group);

/* The first failure stays. */
void tn_nccl_group_fail(tn_nccl_group *group, const char *text);
/* TN_OK, or TN_ECOMM with the first failure. */
tn_status tn_nccl_group_status(tn_env *env, tn_nccl_group *group);

/* "rank 2 has not come to it, and is behind 'all_reduce of bucket 1'": the ranks of this
 * process that are elsewhere than the word. */
void tn_nccl_group_explain_wait(tn_nccl_group *group, uint32_t word, char *text, size_t size);
/* "rank 0 on device 0, rank 1 on device 0": the ranks of this process. */
void tn_nccl_group_list_devices(tn_nccl_group *group, char *text, size_t size);
/* "ranks 1, 3 of this process have not called open", or what else may be. */
void tn_nccl_group_explain_open(tn_nccl_group *group, char *text, size_t size);
