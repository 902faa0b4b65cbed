/* core/bench/launches.c: the time of a step, launch by launch. */
#include "core/bench/bench.h"

#include "core/base/system/system.h"
#include "core/compile/output/report.h"

/* A program of the step. Its launches are rows first .. first + launches - 1. */
typedef struct tn_launch_part {
  int32_t which; /* TN_PROGRAM_... */
  int32_t first, launches;
  int32_t runs; /* in a step */
} tn_launch_part;

/* The times of all launches, one row per launch and one column per step, and the times of the steps. */
typedef struct tn_launch_times {
  tn_launch_part parts[TN_PROGRAMS];
  int32_t n_parts;
  double *ms, *step_ms, *between_ms;
  int32_t launches, steps;
  tn_timeline *timeline; /* of one step */
} tn_launch_times;

static tn_launch_part *bench_launches_find_part(tn_launch_times *t, int32_t which) {
  for (int32_t i = 0; i < t->n_parts; i++)
    if (t->parts[i].which == which) return &t->parts[i];
  return NULL;
}

/* In the order in which the programs run. */
static void bench_launches_list_parts(const tn_bench *b, tn_launch_times *t) {
  for (int32_t i = 0; i < b->n_passes; i++) {
    int32_t which = b->passes[i].which;
    tn_launch_part *part = bench_launches_find_part(t, which);
    if (part == NULL) {
      part = &t->parts[t->n_parts++];
      *part = (tn_launch_part){which, t->launches, b->set.programs[which]->n_steps, 0};
      t->launches += part->launches;
    }
    part->runs++;
  }
}

static tn_status bench_launches_allocate(const tn_bench *b, tn_launch_times *t) {
  bench_launches_list_parts(b, t);
  t->steps = b->options.rounds * b->options.steps;
  size_t column = tn_size_mul((size_t)t->steps, sizeof(double));
  t->ms = tn_alloc(&b->run->env, tn_size_mul((size_t)t->launches, column));
  t->step_ms = tn_alloc(&b->run->env, column);
  t->between_ms = tn_alloc(&b->run->env, column);
  t->timeline = tn_timeline_new(&b->run->env);
  return t->ms && t->step_ms && t->between_ms && t->timeline ? TN_OK : TN_ENOMEM;
}

static void bench_launches_release(const tn_bench *b, tn_launch_times *t) {
  tn_release(&b->run->env, t->ms);
  tn_release(&b->run->env, t->step_ms);
  tn_release(&b->run->env, t->between_ms);
  tn_timeline_free(t->timeline);
}

/* Adds a span to the times of its launch; returns its milliseconds. */
static double bench_launches_add_span(const tn_bench *b, tn_launch_times *t, const tn_span *span,
                                      int32_t step) {
  double ms = (span->end_s - span->start_s) * 1e3;
  for (int32_t i = 0; i < t->n_parts; i++) {
    const tn_launch_part *part = &t->parts[i];
    if (b->set.index[part->which] != span->program) continue;
    t->ms[(size_t)(part->first + span->step) * (size_t)t->steps + (size_t)step] += ms;
  }
  return ms;
}

static void bench_launches_add_step(const tn_bench *b, tn_launch_times *t, int32_t step) {
  size_t n;
  int64_t lost;
  const tn_span *spans = tn_timeline_spans(t->timeline, &n, &lost);
  t->between_ms[step] = t->step_ms[step];
  for (size_t i = 0; i < n; i++)
    if (spans[i].kind == TN_SPAN_LAUNCH)
      t->between_ms[step] -= bench_launches_add_span(b, t, &spans[i], step);
}

static tn_status bench_launches_time_step(tn_bench *b, tn_launch_times *t, int32_t step) {
  tn_timeline_clear(t->timeline);
  tn_timeline_open(t->timeline, true);
  double start = tn_clock_s();
  TN_TRY(tn_bench_step(b));
  t->step_ms[step] = (tn_clock_s() - start) * 1e3;
  TN_TRY(tn_executor_profile_read(b->executor));
  tn_timeline_open(t->timeline, false);
  bench_launches_add_step(b, t, step);
  return TN_OK;
}

static tn_status bench_launches_time_steps(tn_bench *b, tn_launch_times *t) {
  TN_TRY(tn_executor_profile(b->executor, t->timeline));
  tn_status status = tn_bench_step(b); /* the first profiled step may compile */
  if (status == TN_OK) status = tn_executor_profile_read(b->executor);
  for (int32_t i = 0; status == TN_OK && i < t->steps; i++) status = bench_launches_time_step(b, t, i);
  tn_executor_profile(b->executor, NULL);
  return status;
}

/* ---- the result ---- */

static double bench_launches_median(const json_t *spread) {
  return json_number_value(json_array_get(spread, 1));
}

/* Describes all runs of a launch in a step. Returns the median of their time. */
static double bench_launches_describe_launch(const tn_bench *b, tn_launch_times *t,
                                             const tn_launch_part *part, int32_t i, json_t *op) {
  const tn_program *program = b->set.programs[part->which];
  json_t *spread = tn_bench_spread(t->ms + (size_t)(part->first + i) * (size_t)t->steps, t->steps);
  double median = bench_launches_median(spread), flops = json_number_value(json_object_get(op, "flops"));
  json_object_del(op, "rejected");
  json_object_set_new(op, "flops", json_real(flops * part->runs));
  json_object_set_new(op, "bytes", json_real(tn_step_moved_bytes(&program->steps[i]) * part->runs));
  json_object_set_new(op, "ms", spread);
  if (b->micro_batches == 1) return median;
  json_object_set_new(op, "program", json_string(program->name));
  json_object_set_new(op, "runs", json_integer(part->runs));
  return median;
}

/* Appends the launches of one program, and adds their medians to *launched. */
static tn_status bench_launches_describe_part(const tn_bench *b, tn_launch_times *t,
                                              const tn_launch_part *part, json_t *all, double *launched) {
  json_t *report = NULL;
  TN_TRY(tn_program_report(b->set.programs[part->which], &report));
  json_t *ops = json_object_get(report, "ops");
  for (int32_t i = 0; i < part->launches; i++)
    *launched += bench_launches_describe_launch(b, t, part, i, json_array_get(ops, (size_t)i));
  int failed = json_array_extend(all, ops);
  json_decref(report);
  return failed ? tn_failf(&b->run->env, TN_ENOMEM, "no memory for the result") : TN_OK;
}

static tn_status bench_launches_describe(const tn_bench *b, tn_launch_times *t, json_t *result) {
  json_t *all = json_array(), *between = tn_bench_spread(t->between_ms, t->steps);
  double launched = 0.0;
  tn_status status = TN_OK;
  for (int32_t i = 0; status == TN_OK && i < t->n_parts; i++)
    status = bench_launches_describe_part(b, t, &t->parts[i], all, &launched);
  int failed = json_object_set_new(result, "launches", all);
  failed |= json_object_set_new(result, "launched_ms", json_real(launched));
  failed |= json_object_set_new(result, "between_ms", json_real(bench_launches_median(between)));
  failed |= json_object_set_new(result, "launched_step_ms", tn_bench_spread(t->step_ms, t->steps));
  json_decref(between);
  if (status == TN_OK && failed) return tn_failf(&b->run->env, TN_ENOMEM, "no memory for the result");
  return status;
}

tn_status tn_bench_launches(tn_bench *b, json_t *result) {
  tn_launch_times times = {.n_parts = 0};
  tn_status status = bench_launches_allocate(b, &times);
  if (status == TN_OK) status = bench_launches_time_steps(b, &times);
  if (status == TN_OK) status = bench_launches_describe(b, &times, result);
  bench_launches_release(b, &times);
  return status;
}
