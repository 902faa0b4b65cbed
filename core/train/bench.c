/* core/train/bench.c: time per step on random inputs of the model's signature; the fields are those
 * of the scripts that measure other frameworks, so that the two compare line by line. */
#include "core/train/result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/thread.h"
#include "tenon/random.h"

typedef struct tn_bench {
  tn_run *run;
  tn_bench_options options;
  int64_t batch;
  tn_device *device;
  tn_program_set set;
  tn_executor *executor;
  int32_t which, index;
  double first_step_s;
  double *round_ms;
} tn_bench;

/* Normal floats; integers below the number of classes that any model has: two. */
static void fill_random(void *to, const tn_type *type, uint64_t key) {
  tn_rng rng = tn_rng_at(key, 0);
  int64_t n = tn_type_count(type);
  for (int64_t i = 0; i < n; i++) {
    if (type->dtype == TN_F32)
      ((float *)to)[i] = (float)(sqrt(-2.0 * log(1.0 - tn_rng_uniform(&rng))) *
                                 cos(6.283185307179586 * tn_rng_uniform(&rng)));
    else if (type->dtype == TN_F64)
      ((double *)to)[i] = tn_rng_uniform(&rng);
    else if (type->dtype == TN_I32)
      ((int32_t *)to)[i] = (int32_t)tn_rng_below(&rng, 2);
    else if (type->dtype == TN_I64)
      ((int64_t *)to)[i] = tn_rng_below(&rng, 2);
    else if (type->dtype == TN_U8)
      ((uint8_t *)to)[i] = (uint8_t)tn_rng_below(&rng, 256);
  }
}

static void fill_inputs(tn_bench *b) {
  const tn_program *program = b->set.programs[b->which];
  for (int32_t i = 0; i < program->n_inputs; i++) {
    const tn_binding *input = &program->inputs[i];
    void *to = tn_executor_input(b->executor, b->index, 0, input->name);
    if (!to) continue;
    if (tn_text_equal(input->name, "sample.weight"))
      for (int64_t k = 0; k < tn_type_count(&input->type); k++) ((float *)to)[k] = 1.0f;
    else
      fill_random(to, &input->type, (uint64_t)i + 1);
  }
}

static tn_status step(tn_bench *b) {
  TN_TRY(tn_executor_run(b->executor, b->index, 0));
  return tn_executor_slot_wait(b->executor, 0);
}

static tn_status set_up(tn_bench *b) {
  tn_program_request request = {{0}};
  const tn_data_setting *data = &b->run->settings.data[TN_SPLIT_TRAIN];
  b->batch = b->options.batch > 0 ? b->options.batch : data->given ? data->section.batch : 1;
  request.batch[b->which] = b->batch;
  TN_TRY(tn_run_device(b->run, &b->device));
  TN_TRY(tn_programs_build(b->run, &b->device->target, &request, &b->set));
  b->index = b->set.index[b->which];
  TN_TRY(tn_executor_create(&b->run->env, b->device, b->set.map, b->set.list, b->set.n, 1, &b->executor));
  TN_TRY(tn_executor_run(b->executor, b->set.index[TN_PROGRAM_INIT], 0));
  TN_TRY(tn_executor_slot_wait(b->executor, 0));
  TN_TRY(tn_programs_refresh(&b->set, b->executor));
  fill_inputs(b);
  tn_controls controls;
  TN_TRY(tn_controls_bind(&b->set.arena, b->executor, b->index, 1, &b->set.plan, &controls));
  tn_controls_write(&controls, 0, 0, 0, 1.0);
  return TN_OK;
}

static int compare(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

static tn_status measure(tn_bench *b) {
  TN_TRY(step(b));
  b->first_step_s = tn_clock_s() - b->run->opened_s;
  for (int32_t i = 0; i < b->options.warmup; i++) TN_TRY(step(b));
  for (int32_t round = 0; round < b->options.rounds; round++) {
    double start = tn_clock_s();
    for (int32_t i = 0; i < b->options.steps; i++) TN_TRY(step(b));
    b->round_ms[round] = (tn_clock_s() - start) / b->options.steps * 1e3;
  }
  qsort(b->round_ms, (size_t)b->options.rounds, sizeof *b->round_ms, compare);
  return TN_OK;
}

/* Peak resident memory of the process, VmHWM of /proc/self/status, in MiB; 0 where there is none. */
static double peak_rss_mib(void) {
  FILE *file = fopen("/proc/self/status", "r");
  char line[256];
  long kib = 0;
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "VmHWM: %ld", &kib) == 1) break;
  if (file) fclose(file);
  return (double)kib / 1024.0;
}

static json_t *result_of(const tn_bench *b) {
  int32_t rounds = b->options.rounds;
  double median = b->round_ms[rounds / 2];
  int64_t planned = tn_executor_planned_bytes(b->set.map, b->set.list, b->set.n, 1,
                                              b->device->target.properties.host_addressable != 0);
  return json_pack("{s:s, s:i, s:s, s:I, s:s, s:[f,f,f], s:f, s:f, s:f, s:f, s:f}", "backend",
                   b->device->backend->item.name, "threads", b->device->target.properties.threads, "mode",
                   b->which == TN_PROGRAM_STEP ? "train" : "infer", "batch", (json_int_t)b->batch, "dtype",
                   b->run->settings.precision->item.name, "ms", b->round_ms[0], median,
                   b->round_ms[rounds - 1], "per_s", (double)b->batch / median * 1e3, "first_step_s",
                   b->first_step_s, "peak_rss_mib", peak_rss_mib(), "planned_peak_mib",
                   (double)planned / 1048576.0, "measured_peak_mib",
                   (double)b->device->peak_bytes / 1048576.0);
}

tn_status tn_run_bench(tn_run *run, const tn_bench_options *options, char **json) {
  tn_bench b = {.run = run,
                .options = {.struct_size = sizeof b.options, .steps = 3, .rounds = 5, .warmup = 1}};
  *json = NULL;
  if (options) {
    b.options.mode = options->mode;
    b.options.batch = options->batch;
    if (options->steps > 0) b.options.steps = options->steps;
    if (options->rounds > 0) b.options.rounds = options->rounds;
    if (options->warmup > 0) b.options.warmup = options->warmup;
  }
  b.which = b.options.mode == TN_BENCH_TRAIN ? TN_PROGRAM_STEP : TN_PROGRAM_PREDICT;
  b.round_ms = tn_alloc(&run->env, tn_size_mul((size_t)b.options.rounds, sizeof *b.round_ms));
  tn_status status = b.round_ms ? set_up(&b) : TN_ENOMEM;
  if (status == TN_OK) status = measure(&b);
  if (status == TN_OK) status = tn_json_take(run, result_of(&b), json);
  tn_executor_destroy(b.executor);
  tn_programs_free(run, &b.set);
  tn_device_destroy(b.device);
  tn_release(&run->env, b.round_ms);
  return status;
}
