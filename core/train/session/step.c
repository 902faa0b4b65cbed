/* core/train/session/step.c: one step of a session. No function here allocates. */
#include "core/train/session/session.h"

#include <math.h>
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

static void session_write_outputs(const tn_session *s, int32_t which, int64_t rows) {
  for (int32_t i = 0; i < s->n_fields; i++) {
    const tn_bound_field *f = &s->fields[i];
    if (f->role != TN_SESSION_OUTPUT || f->address[which] == NULL || f->bound == NULL) continue;
    memcpy(f->bound, f->address[which], f->row > 0 ? f->row * (size_t)rows : f->bytes);
  }
}

static tn_status session_run_step(tn_session *s, int32_t which, int64_t rows, double lr_factor) {
  const tn_session_program *one = &s->programs[which];
  TN_TRY(session_read_inputs(s, which, rows));
  session_write_weights(s, which, rows);
  tn_control_block_write(&one->control_block, 0, s->step, 0, lr_factor);
  TN_TRY(tn_executor_run(s->executor, one->index, 0));
  TN_TRY(tn_executor_slot_wait(s->executor, 0));
  session_write_outputs(s, which, rows);
  if (which == TN_SESSION_INFER) return TN_OK;
  tn_metric_sums_reset(&s->sums);
  tn_metric_sums_add(&s->sums, &one->outputs, 0, rows);
  return TN_OK;
}

tn_status tn_session_train(tn_session *s, int64_t rows) {
  TN_ENTER(s);
  TN_TRY(session_check_rows(s, TN_SESSION_TRAIN, &rows));
  static const double no_epochs[TN_SCHEDULE_STATE];
  double factor =
      tn_learning_rate_factor(&s->run->settings, s->step, s->steps, s->steps_per_epoch, no_epochs);
  TN_TRY(session_run_step(s, TN_SESSION_TRAIN, rows, factor));
  s->step++;
  double loss = tn_metric_sums_means(&s->sums)[0].value;
  if (isfinite(loss)) return TN_OK;
  return tn_failf(s, TN_ENONFINITE, "the loss is %g at step %lld", loss, (long long)s->step);
}

tn_status tn_session_eval(tn_session *s, int64_t rows) {
  TN_ENTER(s);
  TN_TRY(session_check_rows(s, TN_SESSION_EVAL, &rows));
  return session_run_step(s, TN_SESSION_EVAL, rows, 1.0);
}

tn_status tn_session_infer(tn_session *s, int64_t rows) {
  TN_ENTER(s);
  TN_TRY(session_check_rows(s, TN_SESSION_INFER, &rows));
  return session_run_step(s, TN_SESSION_INFER, rows, 1.0);
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
  for (int32_t i = 0; i <= s->sums.n; i++) {
    if (!tn_text_equal(means[i].name, name)) continue;
    *value = means[i].value;
    return TN_OK;
  }
  return tn_failf(s, TN_EINVAL, "the model has no loss or metric '%s'", name);
}

int64_t tn_session_steps(const tn_session *s) { return s != NULL ? s->step : 0; }
