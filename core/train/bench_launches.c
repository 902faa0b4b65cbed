/* core/train/bench_launches.c: where the time of a step goes, launch by launch. */
#include "core/train/bench.h"

#include "core/base/thread.h"
#include "core/compile/report.h"

/* Times of all launches, one row a launch, one column a step; and of the steps as a whole. */
typedef struct tn_launch_times {
  double *ms, *step_ms, *between_ms;
  int32_t launches, steps;
} tn_launch_times;

static tn_status allocate(const tn_bench *b, tn_launch_times *t) {
  t->launches = b->set.programs[b->which]->n_steps;
  t->steps = b->options.rounds * b->options.steps;
  size_t column = tn_size_mul((size_t)t->steps, sizeof(double));
  t->ms = tn_alloc(&b->run->env, tn_size_mul((size_t)t->launches, column));
  t->step_ms = tn_alloc(&b->run->env, column);
  t->between_ms = tn_alloc(&b->run->env, column);
  return t->ms && t->step_ms && t->between_ms ? TN_OK : TN_ENOMEM;
}

static void release(const tn_bench *b, tn_launch_times *t) {
  tn_release(&b->run->env, t->ms);
  tn_release(&b->run->env, t->step_ms);
  tn_release(&b->run->env, t->between_ms);
}

static tn_status time_step(tn_bench *b, tn_launch_times *t, int32_t step) {
  double start = tn_clock_s(), launched = 0.0;
  TN_TRY(tn_bench_step(b));
  t->step_ms[step] = (tn_clock_s() - start) * 1e3;
  const tn_interval *intervals = tn_executor_intervals(b->executor, b->index);
  for (int32_t i = 0; i < t->launches; i++) {
    double ms = (intervals[i].end_s - intervals[i].start_s) * 1e3;
    t->ms[(size_t)i * (size_t)t->steps + (size_t)step] = ms;
    launched += ms;
  }
  t->between_ms[step] = t->step_ms[step] - launched;
  return TN_OK;
}

static tn_status time_steps(tn_bench *b, tn_launch_times *t) {
  TN_TRY(tn_executor_profile(b->executor, true));
  tn_status status = tn_bench_step(b); /* warms up what profiling does otherwise */
  for (int32_t i = 0; status == TN_OK && i < t->steps; i++) status = time_step(b, t, i);
  tn_status off = tn_executor_profile(b->executor, false);
  return status == TN_OK ? off : status;
}

/* The costs of a fused group's ops count what stays inside it, too: a launch moves its operands. */
static double moved_bytes(const tn_step *step) {
  double bytes = 0.0;
  for (int32_t i = 0; i < step->n_in; i++) bytes += (double)tn_type_bytes(&step->in[i].type);
  for (int32_t i = 0; i < step->n_out; i++) bytes += (double)tn_type_bytes(&step->out[i].type);
  return bytes;
}

static double median_of(const json_t *spread) { return json_number_value(json_array_get(spread, 1)); }

static tn_status describe(const tn_bench *b, tn_launch_times *t, json_t *ops, json_t *result) {
  const tn_program *program = b->set.programs[b->which];
  double launched = 0.0;
  int failed = 0;
  for (int32_t i = 0; i < t->launches; i++) {
    json_t *op = json_array_get(ops, (size_t)i);
    json_t *spread = tn_bench_spread(t->ms + (size_t)i * (size_t)t->steps, t->steps);
    launched += median_of(spread);
    json_object_del(op, "rejected");
    failed |= json_object_set_new(op, "bytes", json_real(moved_bytes(&program->steps[i])));
    failed |= json_object_set_new(op, "ms", spread);
  }
  json_t *between = tn_bench_spread(t->between_ms, t->steps);
  failed |= json_object_set(result, "launches", ops);
  failed |= json_object_set_new(result, "launched_ms", json_real(launched));
  failed |= json_object_set_new(result, "between_ms", json_real(median_of(between)));
  failed |= json_object_set_new(result, "launched_step_ms", tn_bench_spread(t->step_ms, t->steps));
  json_decref(between);
  return failed ? tn_failf(&b->run->env, TN_ENOMEM, "no memory for the result") : TN_OK;
}

tn_status tn_bench_launches(tn_bench *b, json_t *result) {
  tn_launch_times times = {NULL};
  json_t *report = NULL;
  tn_status status = allocate(b, &times);
  if (status == TN_OK) status = time_steps(b, &times);
  if (status == TN_OK) status = tn_program_report(b->set.programs[b->which], &report);
  if (status == TN_OK) status = describe(b, &times, json_object_get(report, "ops"), result);
  json_decref(report);
  release(b, &times);
  return status;
}
