/* core/train/session/session.h: private to serve_*.c: a run's programs on an application's buffers
 * (tenon/session.h).
 *
 *   serve_open.c   programs, memory, weights; which fields there are
 *   serve_step.c   one step: in, run, out
 *   serve_state.c  parameters to and from files and memory */
#ifndef TN_CORE_TRAIN_SESSION_SESSION_H
#define TN_CORE_TRAIN_SESSION_SESSION_H

#include "core/train/run.h"
#include "tenon/session.h"

enum { TN_SERVE_TRAIN = 0, TN_SERVE_EVAL = 1, TN_SERVE_INFER = 2, TN_SERVES = 3 };

/* A field, the buffer that is bound to it, and where each program has it. */
typedef struct tn_serve_field {
  const char *name;
  int32_t role;
  tn_type type;
  size_t bytes, row; /* row: of one sample; 0 where there are no rows */
  char *bound;
  char *place[TN_SERVES]; /* in the slot; NULL: the program has no such field */
} tn_serve_field;

/* One of the three programs. */
typedef struct tn_serve {
  const tn_program *program; /* NULL: not asked for */
  int32_t index;             /* in the executor */
  tn_controls controls;
  tn_readings readings;
  float *sample_weight; /* NULL: the program does not read it */
} tn_serve;

struct tn_session {
  tn_env env;
  tn_error_record record;
  tn_run *run;
  tn_arena arena;
  tn_device *device;
  tn_program_set set;
  bool built;
  tn_executor *executor;
  tn_serve serves[TN_SERVES];
  tn_serve_field *fields;
  int32_t n_fields;
  tn_serve_field *weight; /* "sample.weight"; NULL: nobody reads it */
  tn_tally tally;
  int64_t batch, step, steps, steps_per_epoch;
};

/* serve_state.c */
tn_status tn_serve_start_weights(tn_session *s, const char *weights);

#endif
