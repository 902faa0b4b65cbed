/* tenon/session.h: a model at work on the application's own buffers: training steps, evaluation, inference,
 * one batch at a time. For applications that have their own data; a whole run with data sources, epochs and
 * checkpoints is tn_run_train.
 *
 *     tn_session *session;
 *     tn_session_options options = {.struct_size = sizeof options, .infer = 1};
 *     tn_session_open(run, &options, &session);
 *     tn_session_bind(session, "image", pixels, sizeof pixels);
 *     tn_session_bind(session, "output", scores, sizeof scores);
 *     while (get(pixels)) {
 *       tn_session_infer(session, 1);
 *       use(scores);
 *     }
 *
 * Everything is compiled and allocated when the session is opened; a step allocates nothing. Each of
 * tn_session_train, _eval and _infer copies the bound inputs in, runs, waits, and copies the bound outputs
 * out, so the buffers are the application's before and after.
 *
 * Errors: the text is in the session. Threads: a session belongs to one thread at a time, and so does its
 * run while a session is being opened. Several sessions of several contexts run side by side. */
#ifndef TENON_SESSION_H
#define TENON_SESSION_H

#include "tenon/run.h"

TN_BEGIN_C

typedef struct tn_session tn_session; /* begins with a tn_env */

typedef struct tn_session_options {
  uint32_t struct_size;
  int32_t train, eval, infer; /* which of the three will be called; none: infer */
  int64_t batch;              /* samples in a step; 0: 1 for inference alone, else [data] batch, if given */
  /* Planned training steps, for schedules of the learning rate; 0: [run] max_steps. If that is 0, too,
   * schedules stay where they begin. */
  int64_t steps;
  int64_t steps_per_epoch; /* for schedules that count epochs; 0: all steps are one epoch */
  /* Parameters to start from, a safetensors file; "": the model's initializers. NULL: what [weights] names;
   * where it names nothing, the initializers if the session trains, else the best that the newest run of this
   * configuration's name has saved. */
  const char *weights;
} tn_session_options;

/* options may be NULL: inference. The run must outlive the session. TN_EINVAL: also where there are no
 * weights to infer with. On failure *session is NULL and the text is in the run. */
TN_EXPORT tn_status tn_session_open(tn_run *run, const tn_session_options *options, tn_session **session);
TN_EXPORT void tn_session_close(tn_session *session);

/* ---- buffers ------------------------------------------------------------------------------------
 * Fields are the model's inputs and targets by name, "sample.weight" (f32, one a sample, ones where it is not
 * bound), and its outputs, "output" among them: row-major, the batch in front. */

enum { TN_SESSION_INPUT = 0, TN_SESSION_OUTPUT = 1 };
typedef struct tn_session_field {
  uint32_t struct_size;
  int32_t role;     /* TN_SESSION_... */
  const char *name; /* lives as long as the session */
  tn_type type;
} tn_session_field;
/* Field `index` from 0 on; TN_EOF after the last. Set field->struct_size before. */
TN_EXPORT tn_status tn_session_describe(tn_session *session, int32_t index, tn_session_field *field);

/* The buffer of a field, until another is bound; NULL unbinds. `bytes` must be those of the field's type.
 * Outputs that are not bound are not copied. */
TN_EXPORT tn_status tn_session_bind(tn_session *session, const char *field, void *data, size_t bytes);

/* ---- steps --------------------------------------------------------------------------------------
 * `rows` samples are in the buffers, 1 to batch; 0 means batch. The rest of the batch is filled with zeros of
 * weight 0, and of outputs only the rows are copied. All inputs that the program reads must be bound:
 * TN_EINVAL names the one that is not. */

/* One step of the optimizer. TN_ENONFINITE: the loss is not finite; the parameters have been updated all the
 * same, unless the configuration leaves such updates out. */
TN_EXPORT tn_status tn_session_train(tn_session *session, int64_t rows);
/* Losses and metrics without an update. */
TN_EXPORT tn_status tn_session_eval(tn_session *session, int64_t rows);
TN_EXPORT tn_status tn_session_infer(tn_session *session, int64_t rows);

/* A mean of the last tn_session_train or _eval: "loss", or a loss or metric by its name. */
TN_EXPORT tn_status tn_session_metric(tn_session *session, const char *name, double *value);
/* Training steps taken. */
TN_EXPORT int64_t tn_session_steps(const tn_session *session);

/* ---- parameters --------------------------------------------------------------------------------- */

/* Parameters and running statistics to and from a safetensors file, by path. What is loaded must be what the
 * model has. */
TN_EXPORT tn_status tn_session_save(tn_session *session, const char *path);
TN_EXPORT tn_status tn_session_load(tn_session *session, const char *path);

/* One parameter, running statistic or optimizer slot by path ("fc1.weight"), row-major. */
TN_EXPORT tn_status tn_session_read(tn_session *session, const char *path, void *to, size_t bytes);
TN_EXPORT tn_status tn_session_write(tn_session *session, const char *path, const void *from, size_t bytes);

TN_END_C
#endif
