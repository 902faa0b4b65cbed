/* core/compile/memory/schedule_graph.h: the dependences between groups, and the state of list scheduling. */
#pragma once

#include "core/compile/memory/memory_plan.h"

/* Adjacency lists in compressed rows: those of `from` are to[start[from]] to to[start[from + 1] - 1]. */
typedef struct tn_adjacency {
  int32_t *start, *to;
} tn_adjacency;

typedef struct tn_group_edge {
  int32_t from, to;
} tn_group_edge;

/* A ready group, and the difference of the bytes that it would free and take when the entry was made. */
typedef struct tn_freeing_group {
  int64_t net;
  int32_t group;
} tn_freeing_group;

typedef struct tn_schedule {
  tn_plan *plan;
  tn_arena arena;
  int32_t n; /* groups */
  bool has_collectives;
  bool has_concurrent;            /* collectives or offloads */
  TN_VEC(tn_group_edge) edges;    /* scratch of make_rows */
  tn_adjacency hard;              /* per group: the groups that must run after it */
  tn_adjacency soft;              /* per group: the groups that should run after it */
  int32_t *hard_left, *soft_left; /* per group: predecessors that have not run */
  tn_adjacency readers;           /* per root buffer: groups that read it, each once */
  tn_adjacency reads;             /* per group: roots in the arena that it reads */
  tn_adjacency writes;            /* per group: roots in the arena that it writes */
  tn_adjacency writers;           /* per root buffer: groups that write it */
  int32_t *readers_left;          /* per buffer */
  bool *live;                     /* per buffer: a group has written it */
  int64_t *gain;                  /* per group: bytes that running it now would free */
  bool *done;                     /* per group */
  bool *waits;              /* per group: it reads the result of a collective, which runs on another stream */
  bool *early;              /* per group: of these, it waits for reduce_scatters alone */
  double *result_s;         /* per group: when the results that it waits for are predicted to be there */
  double compute_s, comm_s; /* when the groups and the collectives so far are predicted to have ended */
  int32_t *ready, n_ready;  /* heap of the ready groups */
  int32_t *late, n_late;    /* heap of the ready groups that wait for a collective */
  int32_t *blocked, n_blocked; /* heap of the groups that are ready but for soft edges */
  int32_t *placed, n_placed;   /* the ready groups that are placed on the host */
  int32_t *position;           /* per group that has run: its index in the order */
  bool *drains; /* per group: it makes little of a value that is copied to the host for a placed group, and
                   then needs no memory; NULL: there is no such value */
  int32_t *committed, n_committed; /* buffers that ask for the location of a state */
  /* Heap of the ready groups that free at least the bytes that they take. A group gets another entry when its
   * difference grows; an entry with an old difference is skipped. */
  TN_VEC(tn_freeing_group) freeing;
  bool *listed; /* per group: it has an entry there */
} tn_schedule;

/* Sets `drains`. */
tn_status tn_schedule_find_drains(tn_schedule *schedule);
/* A ready group that drains a value; -1 where no ready group does. (schedule_placed.c) */
int32_t tn_schedule_next_drain(const tn_schedule *schedule);
/* Takes one of the ready groups that are placed on the host: the one whose operands are there first. Returns
 * -1 where no ready group is placed on the host. (schedule_placed.c) */
int32_t tn_schedule_pop_placed(tn_schedule *schedule);
/* Fills the tables of a schedule of which plan, arena and n are set. */
tn_status tn_schedule_prepare(tn_schedule *schedule);
