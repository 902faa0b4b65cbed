/* core/commands/find_lr.c: tn_run_find_lr: steps of training in which the learning rate rises
 * exponentially, and the learning rates that their losses suggest. Nothing is saved. */
#include <math.h>

#include <jansson.h>

#include "core/base/system/system.h"
#include "core/records/runs/weights_file.h"
#include "core/commands/lr_curve.h"
#include "core/step/checks/mistakes.h"
#include "core/distributed/ranks/devices.h"
#include "core/train/loop/training.h"
#include "core/run/result.h"

enum { LEAST_STEPS = 20, MOST_STEPS = 100000, STEPS = 100 };

typedef struct find_lr {
  tn_run *run;
  tn_find_lr_options options;
  tn_training training;
  tn_lr_curve curve;
  bool diverged;
  double nonfinite_lr; /* of the step whose loss was not finite; 0: none */
} find_lr;

/* ---- the schedule ---- */

typedef struct find_lr_rise {
  double from, to, base; /* base: the optimizer's own lr, of which a factor is asked for */
} find_lr_rise;

static double find_lr_factor(const void *given, const tn_schedule_at *at) {
  const find_lr_rise *rise = given;
  double done = at->steps > 1 ? (double)at->step / (double)(at->steps - 1) : 0.0;
  return rise->from * pow(rise->to / rise->from, done) / rise->base;
}
static const tn_schedule find_lr_schedule = {
    .item = TN_ITEM_PLAIN(tn_schedule, TN_SCHEDULE, "find_lr", "rises exponentially"),
    .factor = find_lr_factor};

static void find_lr_replace(tn_schedule_setting *schedule, const find_lr_rise *rise) {
  schedule->kind = &find_lr_schedule;
  schedule->options = rise;
  schedule->section.warmup = 0;
  schedule->section.toward = 0;
}

/* In place of the configured schedules of lr and their warm-up. */
static tn_status find_lr_set_schedule(find_lr *f, find_lr_rise *rise) {
  tn_training *t = &f->training;
  tn_settings *s = &f->run->settings;
  if (t->step_block.lr < 0)
    return tn_failf(&f->run->env, TN_EINVAL, "%s: optimizer '%s' has no lr to look for",
                    tn_settings_where(&f->run->ini, "optimizer", "type"), s->optimizer_kind->item.name);
  if (t->step_block.base_lr == 0)
    return tn_failf(&f->run->env, TN_EINVAL,
                    "%s: [optimizer] lr = 0, expected more than 0: the learning rates of groups keep their "
                    "ratio to it",
                    tn_settings_where(&f->run->ini, "optimizer", "lr"));
  *rise = (find_lr_rise){f->options.from, f->options.to, t->step_block.base_lr};
  find_lr_replace(s->schedule, rise);
  for (int32_t i = 0; i < s->n_schedules; i++)
    if (strcmp(s->schedules[i].option, "lr") == 0) find_lr_replace(&s->schedules[i], rise);
  t->steps = f->options.steps;
  return TN_OK;
}

/* ---- the steps ---- */

static tn_status find_lr_open(find_lr *f) {
  tn_training *t = &f->training;
  *t = (tn_training){.run = f->run, .progress = {.best = NAN, .ended = true}, .started_s = tn_clock_s()};
  TN_TRY(tn_run_tell_mistakes(f->run, tn_run_open_device(f->run, &t->device)));
  TN_TRY(tn_ranks_create(&f->run->env, 1, NULL, &t->ranks));
  TN_TRY(tn_training_prepare(t));
  TN_TRY(tn_executor_run(t->executor, t->set.index[TN_PROGRAM_INIT], 0));
  TN_TRY(tn_executor_slot_wait(t->executor, 0));
  TN_TRY(tn_weights_load_configured(f->run, t->executor, t->set.map));
  TN_TRY(tn_programs_refresh(&t->set, t->executor));
  t->max_ahead = 0;
  t->steps_per_launch = 1; /* so that the loss of every step is read */
  return TN_OK;
}

/* A step that was lost to loss scaling has no loss. */
static bool find_lr_note(find_lr *f) {
  tn_training *t = &f->training;
  double loss = tn_metric_sums_means(&t->step_sums)[0].value;
  if (!isfinite(loss)) return true;
  bool on = tn_lr_curve_add(&f->curve, t->lr, loss);
  if (f->options.progress != NULL)
    f->options.progress(f->options.user, (int32_t)t->progress.step, t->lr, loss);
  return on;
}

/* The loss before a step of any learning rate has had an effect. */
static tn_status find_lr_fail_first(find_lr *f) {
  return tn_failf(
      &f->run->env, TN_ENONFINITE,
      "the loss is not finite in the first step, which no learning rate has changed: look at the data "
      "and the weights; `tenon train` with the same configuration names the first op whose result is "
      "not finite");
}

/* A loss that is not finite ends the curve like one that has risen far, and is no point of it. */
static tn_status find_lr_step(find_lr *f) {
  tn_training *t = &f->training;
  TN_TRY(tn_training_begin_epoch(t));
  tn_status status = tn_training_step(t);
  f->diverged = status == TN_ENONFINITE || (status == TN_OK && !find_lr_note(f));
  if (status != TN_ENONFINITE) return status;
  f->nonfinite_lr = t->lr;
  tn_error_clear(&f->run->env);
  return f->curve.n > 0 ? TN_OK : find_lr_fail_first(f);
}

static tn_status find_lr_run(find_lr *f) {
  find_lr_rise rise;
  tn_training *t = &f->training;
  TN_TRY(find_lr_open(f));
  TN_TRY(find_lr_set_schedule(f, &rise));
  f->curve.v = tn_arena_alloc(&t->set.arena, (size_t)f->options.steps * sizeof *f->curve.v);
  if (f->curve.v == NULL) return TN_ENOMEM;
  while (t->progress.step < t->steps && !f->diverged) {
    TN_TRY(tn_check_stop(&f->run->env));
    TN_TRY(find_lr_step(f));
  }
  return TN_OK;
}

/* ---- the result ---- */

static json_t *find_lr_points(const tn_lr_curve *curve) {
  json_t *list = json_array();
  for (int32_t i = 0; i < curve->n; i++)
    json_array_append_new(list, json_pack("{s:f, s:f, s:f}", "lr", curve->v[i].lr, "loss", curve->v[i].loss,
                                          "smoothed", curve->v[i].smoothed));
  return list;
}

static json_t *find_lr_at(const find_lr *f, int32_t point) {
  return point >= 0 ? json_real(f->curve.v[point].lr) : json_null();
}

static json_t *find_lr_result(const find_lr *f) {
  tn_lr_advice advice = tn_lr_curve_advise(&f->curve);
  json_t *not_finite = f->nonfinite_lr > 0 ? json_real(f->nonfinite_lr) : json_null();
  return json_pack("{s:I, s:b, s:o, s:o, s:o, s:o}", "steps", (json_int_t)f->training.progress.step,
                   "diverged", (int)f->diverged, "not_finite", not_finite, "steepest",
                   find_lr_at(f, advice.steepest), "least", find_lr_at(f, advice.least), "points",
                   find_lr_points(&f->curve));
}

static tn_status find_lr_check(tn_run *run, tn_find_lr_options *o) {
  if (o->steps == 0) o->steps = STEPS;
  if (o->from == 0) o->from = 1e-7;
  if (o->to == 0) o->to = 10;
  if (o->steps < LEAST_STEPS || o->steps > MOST_STEPS)
    return tn_failf(&run->env, TN_EINVAL, "%d steps, expected %d to %d", (int)o->steps, LEAST_STEPS,
                    MOST_STEPS);
  if (o->from > 0 && o->to > o->from && isfinite(o->to)) return TN_OK;
  return tn_failf(&run->env, TN_EINVAL,
                  "learning rates from %g to %g, expected the first above 0 and the second above the first",
                  o->from, o->to);
}

tn_status tn_run_find_lr(tn_run *run, const tn_find_lr_options *given, char **json) {
  TN_ENTER(run);
  TN_NEED(run, json, "json");
  find_lr f = {.run = run};
  *json = NULL;
  TN_TRY(TN_READ_STRUCT(run, tn_find_lr_options, steps, given, &f.options));
  TN_TRY(find_lr_check(run, &f.options));
  const tn_settings before = run->settings;
  tn_status status = find_lr_run(&f);
  if (status == TN_OK) status = tn_json_take(run, find_lr_result(&f), json);
  run->settings = before;
  tn_trainings_release(&f.training, 1);
  tn_ranks_destroy(f.training.ranks);
  return status;
}
