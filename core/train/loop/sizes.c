/* core/train/loop/sizes.c: [model] sizes: which one an epoch has, and the feeder of its samples. */
#include <math.h>
#include <stdio.h>

#include "core/records/runs/run_differences.h"
#include "core/train/loop/training.h"

/* The size that is nearest to a value, counted from 0. */
static int32_t sizes_nearest(const tn_settings *s, double value) {
  int32_t best = s->n_lengths - 1;
  for (int32_t k = best - 1; k >= 0; k--)
    if (fabs((double)s->lengths[k] - value) < fabs((double)s->lengths[best] - value)) best = k;
  return best;
}

/* Without [schedule.size] each size has an equal part of the epochs. */
static int32_t sizes_of_part(const tn_settings *s, int64_t epoch) {
  double part = s->run.epochs > 0 ? (double)epoch / (double)s->run.epochs : 1;
  int32_t k = (int32_t)(part * s->n_lengths + 1e-9);
  return k < s->n_lengths ? k : s->n_lengths - 1;
}

/* Of an epoch, counted from 0, by its first step. */
static int32_t sizes_of_epoch(const tn_training *t, int64_t epoch, int64_t first_step) {
  const tn_settings *s = &t->run->settings;
  const tn_schedule_setting *schedule = tn_settings_schedule_of(s, TN_SCHEDULES_SIZE);
  if (schedule == NULL) return sizes_of_part(s, epoch);
  const tn_step_position at = tn_training_at(t, first_step);
  return sizes_nearest(s, tn_schedule_value(schedule, (double)tn_settings_longest(s), &at));
}

static bool sizes_differ(const tn_training *t) {
  return t->run->settings.sizes && t->run->settings.n_lengths > 1;
}

/* The feeder of before lives until there is another. Its threads write nothing any more. */
static tn_status sizes_replace_feeder(tn_training *t, int32_t size) {
  const tn_settings *s = &t->run->settings;
  int32_t which = tn_length_program(s, TN_PROGRAM_STEP, size);
  tn_feeder *feeder = NULL;
  TN_TRY(tn_training_pause_profile(t));
  TN_TRY(tn_feeder_stop(t->train));
  tn_status status =
      tn_feeder_create_sized(t->train, size, t->set.index[which], t->set.programs[which], &feeder);
  TN_TRY(tn_feeder_require(t->run, status));
  tn_step_profile_set_loader(t->profiling.taken, tn_feeder_profiled_loader(feeder));
  tn_feeder_destroy(t->train);
  t->train = feeder;
  t->size = size;
  return TN_OK;
}

tn_status tn_training_take_size(tn_training *t) {
  const tn_progress *p = &t->progress;
  if (!sizes_differ(t)) return TN_OK;
  int32_t size = sizes_of_epoch(t, p->epoch, p->step - p->batch);
  if (size == t->size) return TN_OK;
  TN_TRY(sizes_replace_feeder(t, size));
  if (t->run->rank == 0)
    tn_logf(&t->run->env, TN_LOG_INFO, "epoch %lld: training at size %lld", (long long)p->epoch + 1,
            (long long)t->run->settings.lengths[size]);
  return TN_OK;
}

/* ---- the remark ---- */

enum { SIZES_MOST_PARTS = 12, SIZES_MOST_EPOCHS = 100000 };

/* ", 160 from epoch 7 on" */
static void sizes_add_part(const tn_training *t, int64_t epoch, int32_t size, tn_text *text) {
  tn_text_addf(text, "%s%lld from epoch %lld on", text->n > 0 ? ", " : "",
               (long long)t->run->settings.lengths[size], (long long)epoch + 1);
}

tn_status tn_training_describe_sizes(tn_training *t) {
  const tn_step_position start = tn_training_at(t, 0);
  int64_t epochs = t->run->settings.run.epochs;
  int32_t before = -1, parts = 0;
  if (!sizes_differ(t)) return TN_OK;
  tn_text text = tn_text_new(&t->run->env);
  for (int64_t epoch = 0; epoch < epochs && epoch < SIZES_MOST_EPOCHS && parts < SIZES_MOST_PARTS; epoch++) {
    int32_t size = sizes_of_epoch(t, epoch, tn_position_steps(&start, epoch, TN_UNIT_EPOCHS));
    if (size == before) continue;
    sizes_add_part(t, epoch, size, &text);
    before = size;
    parts++;
  }
  tn_status status = tn_run_remark(t->run, "size: %s", text.v != NULL ? text.v : "");
  tn_text_free(&text);
  return status;
}
