/* core/infer/session/step.c: one step of a session. No function here allocates. */
#include "core/step/values/finite_rows.h"
#include "core/infer/session/session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const calls[TN_SESSION_PROGRAMS] = {"tn_session_train", "tn_session_eval",
                                                       "tn_session_infer"};
static const char *const wants[TN_SESSION_PROGRAMS] = {"train", "eval", "infer"};

static tn_status session_check_rows(tn_session *s, int32_t which, int64_t *rows) {
  if (s->programs[which].program == NULL)
    return tn_failf(s, TN_EINVAL, "%s: the session was not opened for it; set tn_session_options.%s",
                    calls[which], wants[which]);
  if (*rows == 0) *rows = s->batch;
  if (*rows > 0 && *rows <= s->batch) return TN_OK;
  return tn_failf(s, TN_EINVAL, "%s: %lld rows, expected 1 to %lld, the session's batch", calls[which],
                  (long long)*rows, (long long)s->batch);
}

static tn_status session_read_inputs(tn_session *s, int32_t which, int64_t rows) {
  for (int32_t i = 0; i < s->n_fields; i++) {
    const tn_bound_field *f = &s->fields[i];
    if (f->role != TN_SESSION_INPUT || f->address[which] == NULL || f == s->weight) continue;
    if (f->bound == NULL)
      return tn_failf(s, TN_EINVAL, "%s: no buffer is bound to '%s'; tn_session_bind", calls[which], f->name);
    size_t bytes = f->row > 0 ? f->row * (size_t)rows : f->bytes;
    memcpy(f->address[which], f->bound, bytes);
    memset(f->address[which] + bytes, 0, f->bytes - bytes);
  }
  return TN_OK;
}

static void session_write_weights(tn_session *s, int32_t which, int64_t rows) {
  float *weights = s->programs[which].sample_weight;
  const float *bound = s->weight != NULL ? (const float *)(const void *)s->weight->bound : NULL;
  for (int64_t i = 0; weights != NULL && i < s->batch; i++)
    weights[i] = i >= rows ? 0.0f : bound != NULL ? bound[i] : 1.0f;
}

static bool session_is_written(const tn_bound_field *f, int32_t which) {
  return f->role == TN_SESSION_OUTPUT && f->address[which] != NULL && f->bound != NULL;
}

static void session_write_outputs(const tn_session *s, int32_t which, int64_t rows) {
  for (int32_t i = 0; i < s->n_fields; i++) {
    const tn_bound_field *f = &s->fields[i];
    if (!session_is_written(f, which)) continue;
    memcpy(f->bound, f->address[which], f->row > 0 ? f->row * (size_t)rows : f->bytes);
  }
}

/* ---- numbers that are not finite ---- */

/* The rows of an output that were copied; an output without rows counts as one. */
static void session_count_rows(const tn_bound_field *f, int32_t which, int64_t rows, tn_finite_rows *finite) {
  tn_type row = f->type;
  if (f->row > 0) {
    row.rank--;
    memmove(row.dims, row.dims + 1, sizeof *row.dims * (size_t)row.rank);
  }
  for (int64_t i = 0; i < (f->row > 0 ? rows : 1); i++)
    tn_finite_rows_count(finite, i, tn_row_is_finite(&row, f->address[which] + (size_t)i * f->row));
}

static tn_status session_judge_outputs(tn_session *s, int32_t which, int64_t rows) {
  char name[160];
  for (int32_t i = 0; i < s->n_fields; i++) {
    tn_finite_rows finite = {0};
    if (!session_is_written(&s->fields[i], which)) continue;
    session_count_rows(&s->fields[i], which, rows, &finite);
    snprintf(name, sizeof name, "row %lld of %s", (long long)finite.first, s->fields[i].name);
    TN_TRY(tn_finite_rows_judge(s, &finite, name));
  }
  return TN_OK;
}

/* After a step of the optimizer the loss tells more than an output. */
static tn_status session_judge(tn_session *s, int32_t which, int64_t rows) {
  double loss = which == TN_SESSION_INFER ? 0 : tn_metric_sums_means(&s->sums)[0].value;
  if (!isfinite(loss) && which == TN_SESSION_TRAIN)
    return tn_failf(s, TN_ENONFINITE, "the loss is %g at step %lld", loss, (long long)s->step);
  if (!isfinite(loss)) return tn_failf(s, TN_ENONFINITE, "%s: the loss is %g", calls[which], loss);
  return session_judge_outputs(s, which, rows);
}

/* ---- steps ---- */

static tn_status session_run_step(tn_session *s, int32_t which, int64_t rows, bool plain) {
  static const double no_epochs[TN_SCHEDULE_STATE];
  const tn_step_position at = {.step = s->step,
                               .steps = s->steps,
                               .steps_per_epoch = s->steps_per_epoch,
                               .samples = s->batch,
                               .state = no_epochs,
                               .plain = plain};
  const tn_session_program *one = &s->programs[which];
  TN_TRY(session_read_inputs(s, which, rows));
  session_write_weights(s, which, rows);
  tn_control_block_write(&one->control_block, 0, 0, &at);
  TN_TRY(tn_executor_run(s->executor, one->index, 0));
  TN_TRY(tn_executor_slot_wait(s->executor, 0));
  session_write_outputs(s, which, rows);
  if (which == TN_SESSION_TRAIN) s->step++;
  if (which != TN_SESSION_INFER) {
    tn_metric_sums_reset(&s->sums);
    tn_metric_sums_add(&s->sums, &one->outputs, 0, rows);
    TN_TRY(tn_metric_sums_add_rows(&s->sums, &one->outputs, 0));
    if (which == TN_SESSION_EVAL) TN_TRY(tn_metric_sums_close(&s->sums));
  }
  return session_judge(s, which, rows);
}

tn_status tn_session_train(tn_session *s, int64_t rows) {
  TN_ENTER(s);
  TN_TRY(session_check_rows(s, TN_SESSION_TRAIN, &rows));
  return session_run_step(s, TN_SESSION_TRAIN, rows, false);
}

tn_status tn_session_eval(tn_session *s, int64_t rows) {
  TN_ENTER(s);
  TN_TRY(session_check_rows(s, TN_SESSION_EVAL, &rows));
  return session_run_step(s, TN_SESSION_EVAL, rows, true);
}

tn_status tn_session_infer(tn_session *s, int64_t rows) {
  TN_ENTER(s);
  TN_TRY(session_check_rows(s, TN_SESSION_INFER, &rows));
  return session_run_step(s, TN_SESSION_INFER, rows, true);
}

tn_status tn_session_metric(tn_session *s, const char *name, double *value) {
  TN_ENTER(s);
  TN_NEED(s, value, "value");
  *value = NAN;
  TN_NEED(s, name, "name");
  const tn_metric *means = tn_metric_sums_means(&s->sums);
  if (s->sums.steps == 0)
    return tn_failf(s, TN_EINVAL,
                    "tn_session_metric(\"%s\"): nothing has been measured yet; train or evaluate first",
                    name);
  for (int32_t i = 0; i < s->sums.n_means; i++) {
    if (!tn_text_equal(means[i].name, name)) continue;
    *value = means[i].value;
    return TN_OK;
  }
  return tn_failf(s, TN_EINVAL, "the model has no loss or metric '%s'", name);
}

int64_t tn_session_steps(const tn_session *s) { return s != NULL ? s->step : 0; }
