/* core/exec/watch/launch_watch.h: shows the operands and results of every launch of an executor, on the host.
 *
 * Launches are enqueued one by one, as the program has planned them, and nothing is replayed. Each launch can
 * be repeated with the same operands: the results must have the same bits, and the program goes on with those
 * of the first launch. The host holds the operands and results of one launch at a time. */
#pragma once

#include "core/exec/executor.h"

typedef struct tn_launch_watch tn_launch_watch;

/* A launch, with the values of its group in row-major memory, valid during the call. */
typedef struct tn_watched_launch {
  const tn_program *program;
  const tn_step *step;
  int32_t index;           /* of the step in the program */
  const void *const *in;   /* as step->in, as they were before the launch; NULL where absent */
  const void *const *out;  /* as step->out, after the first launch */
  int32_t differs;         /* the first repetition, from 2 on, whose results have other bits; 0: none */
  const void *const *late; /* the results of that repetition; NULL where none differs */
} tn_watched_launch;

typedef struct tn_launch_watcher {
  void *context;
  /* After a launch that is no collective. Messages go to `env`. */
  tn_status (*seen)(void *context, tn_env *env, const tn_watched_launch *launch);
} tn_launch_watcher;

/* Watches every run on the executor until tn_launch_watch_destroy, which accepts NULL. launches: of each step
 * with the same operands, at least 1. */
tn_status tn_launch_watch_create(tn_executor *executor, int32_t launches, const tn_launch_watcher *watcher,
                                 tn_launch_watch **watch);
void tn_launch_watch_destroy(tn_launch_watch *watch);

/* The most memory of the host that watching one launch of a program takes. */
int64_t tn_launch_watch_bytes(const tn_program *program, int32_t launches);
