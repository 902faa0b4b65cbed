/* tenon/session.h: training steps, evaluation and inference on buffers of the application, one batch at a
 * time. tn_run_train is for whole runs with data sources, epochs and checkpoints.
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
 * tn_session_open compiles and allocates; a step allocates nothing. tn_session_train, _eval and _infer copy
 * the bound inputs to the device, run the program, wait, and copy the bound outputs back. The session uses
 * the buffers only during these calls.
 *
 * Errors: the text is in the session. Threads: a session is used by one thread at a time, and so is its run
 * during tn_session_open. Sessions of different contexts run in parallel. */
#ifndef TENON_SESSION_H
#define TENON_SESSION_H

#include "tenon/run.h"

TN_BEGIN_C

typedef struct tn_session tn_session; /* begins with a tn_env */

typedef struct tn_session_options {
  uint32_t struct_size;
  int32_t train, eval, infer; /* 1: the function of that name will be called; all 0: infer */
  int64_t batch;              /* samples in a step; 0: 1 for inference alone, else [data] batch, if given */
  /* Planned training steps, for schedules of the learning rate; 0: [run] max_steps. If that is 0 as well,
   * schedules keep their first value. */
  int64_t steps;
  int64_t steps_per_epoch; /* for schedules that count epochs; 0: all steps are one epoch */
  /* Initial parameters: a safetensors file, the folder of a checkpoint, or a run folder; "": the model's
   * initializers. NULL: [weights] file; without one, the initializers if the session trains, else the best
   * checkpoint of the newest run with this configuration's name. */
  const char *weights;
} tn_session_options;

/* options may be NULL: inference. The run outlives the session. TN_EINVAL: an option or the configuration is
 * wrong, or there are no weights to infer with. On failure *session is NULL and the text is in the run.
 * tn_session_close accepts NULL. */
TN_EXPORT tn_status tn_session_open(tn_run *run, const tn_session_options *options, tn_session **session);
TN_EXPORT void tn_session_close(tn_session *session);

/* ---- buffers ------------------------------------------------------------------------------------
 * Fields are the model's inputs and targets by name, "sample.weight" (f32, one for each sample; unbound:
 * ones), and its outputs by name: those of [model] outputs, or "output". tn_session_bind also takes "output"
 * for the first of them. All are row-major with the batch as first dimension; an element of bool is one byte,
 * 0 or 1. */

enum { TN_SESSION_INPUT = 0, TN_SESSION_OUTPUT = 1 };
typedef struct tn_session_field {
  uint32_t struct_size;
  int32_t role;     /* TN_SESSION_... */
  const char *name; /* valid until the session is closed */
  tn_type type;
} tn_session_field;
/* Field `index`, from 0; TN_EOF after the last. The caller sets field->struct_size. */
TN_EXPORT tn_status tn_session_describe(tn_session *session, int32_t index, tn_session_field *field);

/* Binds a buffer to a field until another is bound; NULL unbinds. The caller keeps the buffer, which must
 * stay valid while it is bound. TN_EINVAL: no such field, or `bytes` is not tn_type_bytes of its type.
 * Unbound outputs are not copied. */
TN_EXPORT tn_status tn_session_bind(tn_session *session, const char *field, void *data, size_t bytes);

/* ---- steps --------------------------------------------------------------------------------------
 * `rows`: samples in the buffers, 1 to batch; 0 means batch. The session fills the rest of the batch with
 * zeros of weight 0 and copies only these rows of outputs. TN_EINVAL: an input that the program reads is not
 * bound. */

/* TN_ENONFINITE of the three: the loss or a bound output is not finite, and everything else is as after
 * TN_OK: the outputs are in their buffers, and tn_session_metric gives the numbers. The text has the loss, or
 * the first such row of an output and their number. A row is not finite where it has a NaN or an infinity; in
 * a vector of f32, which may be scores of classes, -infinity beside a finite score is allowed. */

/* One step of the optimizer. After TN_ENONFINITE the parameters have been updated, too, unless the
 * configuration skips updates by a loss that is not finite. */
TN_EXPORT tn_status tn_session_train(tn_session *session, int64_t rows);
/* Losses and metrics without an update. */
TN_EXPORT tn_status tn_session_eval(tn_session *session, int64_t rows);
TN_EXPORT tn_status tn_session_infer(tn_session *session, int64_t rows);

/* Mean of a loss or metric over the last tn_session_train or _eval, by its name; "loss" is the total. */
TN_EXPORT tn_status tn_session_metric(tn_session *session, const char *name, double *value);
/* Training steps taken. */
TN_EXPORT int64_t tn_session_steps(const tn_session *session);

/* ---- parameters --------------------------------------------------------------------------------- */

/* Writes and reads parameters and running statistics as a safetensors file, by path. tn_session_load fails
 * with TN_EINVAL where names or types in the file differ from the model's, or where the file of a checkpoint
 * is not as it was written; the session keeps its parameters then. With [optimizer] ema a session for
 * training evaluates, infers and saves averages; the average of "fc1.weight" is "fc1.weight.average", and
 * begins as a copy where weights are loaded. */
TN_EXPORT tn_status tn_session_save(tn_session *session, const char *path);
TN_EXPORT tn_status tn_session_load(tn_session *session, const char *path);

/* Copies one parameter, running statistic or optimizer state by path ("fc1.weight") to or from host memory,
 * row-major; `bytes` is tn_type_bytes of its type. */
TN_EXPORT tn_status tn_session_read(tn_session *session, const char *path, void *to, size_t bytes);
TN_EXPORT tn_status tn_session_write(tn_session *session, const char *path, const void *from, size_t bytes);

TN_END_C
#endif
