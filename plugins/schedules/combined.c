/* plugins/schedules/combined.c: schedules made of others: sequential, one behind the other, and chained,
 * their product; with the values of PyTorch's SequentialLR and ChainedScheduler. */
#include <math.h>

#include "plugins/schedules/schedules.h"

/* The parts are checked here, since the host checks the schedule that holds them. */
static tn_status combined_check(tn_env *env, const tn_schedules *parts) {
  if (parts->n == 0)
    return tn_fail(env, TN_EINVAL, "schedules", "the list is empty, expected schedules such as [cosine]");
  for (int64_t i = 0; i < parts->n; i++) {
    const tn_schedule *part = parts->v[i].schedule;
    if (part->epoch != NULL)
      return tn_fail(env, TN_EINVAL, "schedules", "%s follows a metric, and stands alone", part->item.name);
    if (part->check == NULL) continue;
    tn_status status = part->check(env, parts->v[i].options);
    if (status != TN_OK) return tn_fail_in(env, status, "schedules: %s", part->item.name);
  }
  return TN_OK;
}

static double combined_factor(const tn_schedule_part *part, const tn_schedule_at *at) {
  return part->schedule->factor(part->options, at);
}

/* ---- sequential ---- */

typedef struct sequential_options {
  tn_schedules schedules;
  tn_ints milestones;
  int32_t unit;
} sequential_options;
static const tn_option sequential_rows[] = {
    TN_OPT(sequential_options, schedules, TN_OPT_SCHEDULES, NULL, NULL, "the schedules, in their order"),
    TN_OPT(sequential_options, milestones, TN_OPT_INTS, NULL, ">= 1",
           "when the second schedule begins, the third, ..."),
    SCHEDULE_UNIT(sequential_options, "unit of the milestones"), TN_OPT_END};

static tn_status sequential_check(tn_env *env, const void *given) {
  const sequential_options *o = given;
  tn_status status = combined_check(env, &o->schedules);
  if (status != TN_OK) return status;
  if (o->milestones.n != o->schedules.n - 1)
    return tn_fail(env, TN_EINVAL, "milestones",
                   "%lld milestones for %lld schedules, expected one less than schedules",
                   (long long)o->milestones.n, (long long)o->schedules.n);
  return schedule_check_milestones(env, &o->milestones);
}

/* Each part sees a run of its own, from its milestone to the next one. The warm-up belongs to the first. */
static double sequential_factor(const void *given, const tn_schedule_at *at) {
  const sequential_options *o = given;
  tn_schedule_at part = *at;
  int64_t begin = 0, end = at->steps, k = 0;
  for (; k < o->milestones.n; k++) {
    int64_t next = tn_schedule_steps(at, o->milestones.v[k], o->unit);
    if (next < 0 || at->step < next) {
      end = next < 0 ? at->steps : next;
      break;
    }
    begin = next;
  }
  part.step -= begin;
  part.origin += begin;
  part.steps = end < 0 ? -1 : end - begin;
  part.warmup = at->warmup > begin ? at->warmup - begin : 0;
  return combined_factor(&o->schedules.v[k], &part);
}

const tn_schedule sequential_schedule = {
    .item = TN_ITEM(tn_schedule, TN_SCHEDULE, "sequential",
                    "several schedules, one behind the other; each has the steps to its end for its run",
                    sequential_options, sequential_rows),
    .example = "schedules = [linear(0.1, 1), cosine(floor=0.01)]\nmilestones = [5]",
    .factor = sequential_factor,
    .check = sequential_check};

/* ---- chained ---- */

typedef struct chained_options {
  tn_schedules schedules;
} chained_options;
static const tn_option chained_rows[] = {
    TN_OPT(chained_options, schedules, TN_OPT_SCHEDULES, NULL, NULL, "the schedules"), TN_OPT_END};

static tn_status chained_check(tn_env *env, const void *given) {
  return combined_check(env, &((const chained_options *)given)->schedules);
}

static double chained_factor(const void *given, const tn_schedule_at *at) {
  const tn_schedules *parts = &((const chained_options *)given)->schedules;
  double factor = 1;
  for (int64_t i = 0; i < parts->n; i++) factor *= combined_factor(&parts->v[i], at);
  return factor;
}

const tn_schedule chained_schedule = {.item = TN_ITEM(tn_schedule, TN_SCHEDULE, "chained",
                                                      "the product of several schedules", chained_options,
                                                      chained_rows),
                                      .example = "schedules = [constant(0.1, steps=100), exponential(0.95)]",
                                      .factor = chained_factor,
                                      .check = chained_check};
