/* core/infer/session/session.h: a run's programs on buffers of the application (tenon/session.h), private to
 * this folder:
 *
 * open.c    programs, memory, weights, fields
 * step.c    one step: inputs, run, outputs
 * state.c   parameters to and from files and memory */
#pragma once

#include "core/step/values/control_block.h"
#include "core/step/values/metric_sums.h"
#include "tenon/session.h"

enum { TN_SESSION_TRAIN = 0, TN_SESSION_EVAL = 1, TN_SESSION_INFER = 2, TN_SESSION_PROGRAMS = 3 };

/* A field, the buffer that is bound to it, and its address in each program. */
typedef struct tn_bound_field {
  const char *name;
  int32_t role;
  tn_type type;
  size_t bytes, row; /* row: of one sample; 0 if the field is not per sample */
  char *bound;
  char *address[TN_SESSION_PROGRAMS]; /* in the input slot; NULL: the program has no such field */
} tn_bound_field;

/* One of the three programs. */
typedef struct tn_session_program {
  const tn_program *program; /* NULL: not requested */
  int32_t index;             /* in the executor */
  tn_control_block control_block;
  tn_measure_outputs outputs;
  float *sample_weight; /* NULL: the program does not read it */
} tn_session_program;

struct tn_session {
  tn_env env;
  tn_error_record record;
  tn_run *run;
  tn_arena arena;
  tn_device *device;
  tn_program_set set;
  bool built;
  tn_executor *executor;
  struct tn_mapped_weights *mapped; /* NULL: none are */
  tn_session_program programs[TN_SESSION_PROGRAMS];
  tn_bound_field *fields;
  int32_t n_fields;
  tn_bound_field *weight; /* "sample.weight"; NULL: no program reads it */
  tn_metric_sums sums;
  int64_t batch, step, steps, steps_per_epoch;
};

/* state.c: loads the file `weights`; "" loads no file, and NULL the file of [weights] or of the newest run.
 */
tn_status tn_session_start_weights(tn_session *s, const char *weights);
/* state.c: after weights were loaded: averages begin as copies of them, and low-precision copies follow. */
tn_status tn_session_follow_weights(tn_session *s);
