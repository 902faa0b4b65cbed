/* core/bench/rounds.c: the timed rounds of a benchmark. The host launches all steps of a
 * round, as a training does, and waits once: the batch of a step is copied while the device computes the step
 * before. */
#include <math.h>

#include "core/base/system/system.h"
#include "core/bench/bench.h"
#include "core/train/loop/steps_per_launch.h"

int32_t tn_bench_count_slots(void *bench) {
  tn_bench *b = bench;
  bool late = !b->device->target.properties.host_addressable;
  bool several = b->which == TN_PROGRAM_STEP && b->micro_batches == 1;
  b->steps_per_launch = several ? tn_steps_per_launch(b->run, b->device, &b->set) : 1;
  b->group = b->steps_per_launch > 1 ? b->steps_per_launch : b->micro_batches;
  b->groups = late ? 2 : 1;
  int32_t n = b->steps_per_launch;
  b->steps = (b->options.steps + n - 1) / n * n;
  return tn_bench_slots(b);
}

static tn_status rounds_launch(tn_bench *b, int32_t slot, bool again) {
  int32_t index = b->set.index[b->which];
  if (b->steps_per_launch == 1) return tn_bench_launch(b, slot, again);
  return (again ? tn_executor_run_several_again : tn_executor_run_several)(b->executor, index, slot,
                                                                           b->steps_per_launch);
}

/* The milliseconds of a step, and of them the host's. */
static tn_status rounds_run(tn_bench *b, bool again, double *step_ms, double *host_ms) {
  int32_t slot = 0;
  double start = tn_clock_s();
  for (int32_t i = 0; i < b->steps; i += b->steps_per_launch) {
    slot = i / b->steps_per_launch % b->groups * b->group;
    TN_TRY(rounds_launch(b, slot, again));
  }
  *host_ms = (tn_clock_s() - start) / b->steps * 1e3;
  TN_TRY(tn_executor_slot_wait(b->executor, slot + b->group - 1));
  *step_ms = (tn_clock_s() - start) / b->steps * 1e3;
  return TN_OK;
}

/* The first launch of several steps captures them, and the inputs of all slots come to the device. */
static tn_status rounds_prepare(tn_bench *b) {
  for (int32_t i = 0; i < b->groups && b->groups * b->steps_per_launch > 1; i++)
    TN_TRY(rounds_launch(b, i * b->group, false));
  return tn_executor_slot_wait(b->executor, tn_bench_slots(b) - 1);
}

static tn_status rounds_time_copy(tn_bench *b, double *ms) {
  double start = tn_clock_s();
  TN_TRY(tn_executor_stage(b->executor, b->set.index[b->passes[0].which], 0));
  *ms = (tn_clock_s() - start) * 1e3;
  return TN_OK;
}

static tn_status rounds_measure_parts(tn_bench *b) {
  tn_bench_parts *p = &b->parts;
  p->device_ms = p->copy_ms = INFINITY;
  for (int32_t round = 0; round < b->options.rounds; round++) {
    double step_ms, host_ms, copy_ms;
    TN_TRY(rounds_run(b, true, &step_ms, &host_ms));
    TN_TRY(rounds_time_copy(b, &copy_ms));
    p->device_ms = fmin(p->device_ms, step_ms);
    p->copy_ms = fmin(p->copy_ms, copy_ms);
  }
  p->copy_bytes = b->set.programs[b->passes[0].which]->slot_bytes;
  b->has_parts = true;
  return TN_OK;
}

tn_status tn_bench_rounds(tn_bench *b) {
  b->parts.host_ms = INFINITY;
  TN_TRY(rounds_prepare(b));
  for (int32_t round = 0; round < b->options.rounds; round++) {
    double host_ms;
    TN_TRY(rounds_run(b, false, &b->round_ms[round], &host_ms));
    b->parts.host_ms = fmin(b->parts.host_ms, host_ms);
  }
  return b->device->target.properties.host_addressable ? TN_OK : rounds_measure_parts(b);
}

void tn_bench_parts_report(const tn_bench *b, json_t *result) {
  if (b->steps_per_launch > 1)
    json_object_set_new(result, "steps_per_launch", json_integer(b->steps_per_launch));
  if (!b->has_parts) return;
  json_object_set_new(result, "host_ms", json_real(b->parts.host_ms));
  json_object_set_new(result, "device_ms", json_real(b->parts.device_ms));
  json_object_set_new(result, "copy_ms", json_real(b->parts.copy_ms));
  json_object_set_new(result, "copy_bytes", json_integer(b->parts.copy_bytes));
}
