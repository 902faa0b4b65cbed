/* core/train/loop/update_sizes.c: counts of batches by the schedule, and the steps of a run that has them. */
#include "core/train/loop/update_sizes.h"

#include <math.h>

/* The plan of a run looks at every update once; behind [run] max_steps at so many, for schedules that go on
 * there. */
enum { SIZES_MOST_STEPS = 1 << 22, SIZES_ENOUGH_STEPS = 1 << 20 };

/* The clock of this schedule is the data: its steps are batches. */
static double sizes_value(const tn_update_sizes *s, int64_t epoch, int64_t batch) {
  int64_t before, all;
  if (__builtin_mul_overflow(epoch, s->batches, &before) || __builtin_add_overflow(before, batch, &before))
    before = INT64_MAX;
  if (__builtin_mul_overflow(s->epochs, s->batches, &all)) all = INT64_MAX;
  const tn_step_position at = {
      .step = before, .steps = all, .steps_per_epoch = s->batches, .samples = s->batch};
  return tn_schedule_value(s->schedule, (double)s->most, &at);
}

/* A value above the most is refused by the plan. */
static int64_t sizes_count(const tn_update_sizes *s, int64_t epoch, int64_t batch) {
  double value = sizes_value(s, epoch, batch);
  return value >= (double)s->most ? s->most : value >= 1.5 ? llround(value) : 1;
}

int64_t tn_update_sizes_next(const tn_update_sizes *s, const tn_update_walk *walk) {
  int64_t left = s->batches - walk->batches;
  if (left <= 0) return 0;
  int64_t count = sizes_count(s, walk->epoch, walk->batches);
  return count <= left || s->pads ? count : 0;
}

bool tn_update_sizes_step(const tn_update_sizes *s, tn_update_walk *walk) {
  int64_t count = tn_update_sizes_next(s, walk);
  if (count == 0) return false;
  walk->last = walk->batches;
  walk->batches += count;
  walk->updates++;
  return true;
}

tn_update_walk tn_update_sizes_walk(const tn_update_sizes *s, int64_t epoch, int64_t updates,
                                    int64_t batches) {
  tn_update_walk walk = {.epoch = epoch}, next = walk;
  while (walk.updates < updates && tn_update_sizes_step(s, &next) && next.batches <= batches) walk = next;
  return walk;
}

/* ---- the plan ---- */

/* A plan that is being made. */
typedef struct sizes_plan {
  const tn_env *env;
  tn_update_sizes *sizes;
  int64_t steps; /* so far, counted from the first one of the first epoch */
  double samples;
} sizes_plan;

static tn_status sizes_check_value(const sizes_plan *p, const tn_update_walk *walk) {
  const tn_update_sizes *s = p->sizes;
  double value = sizes_value(s, walk->epoch, walk->batches);
  if (value < (double)s->most + 0.5) return TN_OK;
  return tn_failf(p->env, TN_EINVAL,
                  "%s: [%s] asks for %.4g batches in an update at batch %lld of epoch %lld; expected at most "
                  "%lld, [optimizer] accumulate: raise that, or lower the factors of the schedule",
                  s->where, s->schedule->name, value, (long long)walk->batches + 1,
                  (long long)walk->epoch + 1, (long long)s->most);
}

static tn_status sizes_refuse_epoch(const sizes_plan *p, int64_t epoch) {
  const tn_update_sizes *s = p->sizes;
  const tn_update_walk begin = {.epoch = epoch};
  return tn_failf(p->env, TN_EINVAL,
                  "%s: [%s] asks for %lld batches in the first update of epoch %lld, and an epoch has %lld; "
                  "expected fewer, or [data] last = pad",
                  s->where, s->schedule->name, (long long)sizes_count(s, epoch, begin.batches),
                  (long long)epoch + 1, (long long)s->batches);
}

/* A point where the count changes; `batches` is in place of the part of the epoch that is over. */
static tn_status sizes_add_point(sizes_plan *p, int64_t batches) {
  const tn_schedule_point point = {p->steps, (double)batches, p->samples};
  return tn_vec_push(p->env, &p->sizes->points, point);
}

/* Makes parts of the epoch out of the batches of its points. */
static void sizes_close_epoch(tn_update_sizes *s, size_t first, const tn_update_walk *walk) {
  for (size_t i = first; i < s->points.n; i++)
    s->points.v[i].epochs = (double)walk->epoch + s->points.v[i].epochs / (double)walk->batches;
}

static tn_status sizes_plan_epoch(sizes_plan *p, int64_t epoch) {
  tn_update_sizes *s = p->sizes;
  tn_update_walk walk = {.epoch = epoch};
  size_t first = s->points.n;
  int64_t before = 0, count;
  while ((count = tn_update_sizes_next(s, &walk)) > 0) {
    TN_TRY(sizes_check_value(p, &walk));
    if (p->steps >= SIZES_MOST_STEPS)
      return tn_failf(p->env, TN_EINVAL,
                      "%s: [%s]: the run has more than %d updates, each of which is planned; expected fewer: "
                      "set [run] epochs or max_steps",
                      s->where, s->schedule->name, (int)SIZES_MOST_STEPS);
    if (count != before) TN_TRY(sizes_add_point(p, walk.batches));
    before = count;
    p->steps++;
    p->samples += (double)count * (double)s->batch;
    tn_update_sizes_step(s, &walk);
  }
  if (walk.updates == 0) return sizes_refuse_epoch(p, epoch);
  sizes_close_epoch(s, first, &walk);
  return TN_OK;
}

/* A run without epochs has points, too: those of one. */
tn_status tn_update_sizes_plan(const tn_env *env, tn_update_sizes *s, const tn_update_anchor *anchor,
                               int64_t *steps) {
  sizes_plan p = {.env = env, .sizes = s};
  int64_t shift = 0, epoch = 0, end = 0;
  s->points.n = 0;
  do {
    if (epoch == anchor->epoch) shift = anchor->step - p.steps;
    bool reached = epoch > anchor->epoch && p.steps + shift >= anchor->most_steps;
    if (reached && p.steps >= SIZES_ENOUGH_STEPS) break;
    TN_TRY(sizes_plan_epoch(&p, epoch));
    if (epoch < s->epochs) end = p.steps;
  } while (++epoch < s->epochs);
  if (epoch <= anchor->epoch) shift = anchor->step - end; /* the run is over */
  const tn_schedule_point last = {p.steps, (double)epoch, p.samples};
  TN_TRY(tn_vec_push(env, &s->points, last));
  for (size_t i = 0; i < s->points.n; i++) s->points.v[i].step += shift;
  *steps = end + shift;
  return TN_OK;
}

void tn_update_sizes_free(const tn_env *env, tn_update_sizes *s) { tn_vec_free(env, &s->points); }
