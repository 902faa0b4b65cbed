/* core/train/commands/bench.c: tn_run_bench: time per step on random inputs. The fields of the result are
 * those of the scripts that measure other frameworks. */
#include "core/train/commands/bench.h"

#include <math.h>
#include <string.h>

#include "core/base/system.h"
#include "core/compile/output/report.h"
#include "core/train/checkpoints/plan_file.h"
#include "core/train/distributed/devices.h"
#include "core/train/programs/control_block.h"
#include "tenon/random.h"

/* The exclusive upper bound for the integers of an input: the number of rows of the embedding tables that it
 * indexes, or else 2, the least number of classes. */
static uint64_t bench_count_classes(const tn_graph *graph, const char *input) {
  int64_t classes = 0;
  for (size_t i = 0; i < graph->nodes.n; i++) {
    const tn_gnode *node = &graph->nodes.v[i];
    if (!tn_text_equal(node->op->item.name, "embedding")) continue;
    const char *ids = graph->values.v[node->in[0]].name;
    int64_t rows = tn_graph_type(graph, node->in[1])->dims[0];
    if (ids && tn_text_equal(ids, input) && (classes == 0 || rows < classes)) classes = rows;
  }
  return classes > 0 ? (uint64_t)classes : 2;
}

/* Normal floats; integers below `classes`. */
static void bench_fill_random(void *to, const tn_type *type, uint64_t classes, uint64_t key) {
  tn_rng rng = tn_rng_at(key, 0);
  int64_t n = tn_type_count(type);
  for (int64_t i = 0; i < n; i++) {
    if (type->dtype == TN_F32)
      ((float *)to)[i] = (float)(sqrt(-2.0 * log(1.0 - tn_rng_uniform(&rng))) *
                                 cos(6.283185307179586 * tn_rng_uniform(&rng)));
    else if (type->dtype == TN_F64)
      ((double *)to)[i] = tn_rng_uniform(&rng);
    else if (type->dtype == TN_I32)
      ((int32_t *)to)[i] = (int32_t)tn_rng_below(&rng, classes);
    else if (type->dtype == TN_I64)
      ((int64_t *)to)[i] = (int64_t)tn_rng_below(&rng, classes);
    else if (type->dtype == TN_U8)
      ((uint8_t *)to)[i] = (uint8_t)tn_rng_below(&rng, 256);
  }
}

static void bench_fill_inputs(tn_bench *b, int32_t slot) {
  const tn_program *program = b->set.programs[b->which];
  for (int32_t i = 0; i < program->n_inputs; i++) {
    const tn_binding *input = &program->inputs[i];
    void *to = tn_executor_input(b->executor, b->set.index[b->which], slot, input->name);
    uint64_t key = (uint64_t)slot * (uint64_t)program->n_inputs + (uint64_t)i + 1;
    if (to == NULL) continue;
    if (tn_text_equal(input->name, "sample.weight"))
      for (int64_t k = 0; k < tn_type_count(&input->type); k++) ((float *)to)[k] = 1.0f;
    else
      bench_fill_random(to, &input->type, bench_count_classes(program->cover->graph, input->name), key);
  }
}

/* The control block of step 0. */
static tn_status bench_write_control_blocks(tn_bench *b) {
  static const int32_t programs[] = {TN_PROGRAM_WEIGH, TN_PROGRAM_MICRO};
  tn_control_block block;
  for (int32_t i = 0; i < 3; i++) {
    int32_t which = i < 2 ? programs[i] : b->which;
    if (b->set.index[which] < 0) continue;
    TN_TRY(tn_control_block_bind(&b->set.arena, b->executor, b->set.index[which], b->micro_batches,
                                 &b->set.update, &block));
    for (int32_t m = 0; m < b->micro_batches; m++) tn_control_block_write(&block, m, 0, m, 1.0);
  }
  return TN_OK;
}

static tn_status bench_prepare(tn_bench *b) {
  tn_program_request request = {{0}};
  const tn_data_setting *data = &b->run->settings.data[TN_SPLIT_TRAIN];
  b->batch = b->options.batch > 0 ? b->options.batch : data->given ? data->section.batch : 1;
  request.batch[b->which] = b->batch;
  b->micro_batches = b->which == TN_PROGRAM_STEP ? (int32_t)b->run->settings.optimizer.accumulate : 1;
  TN_TRY(tn_run_open_device(b->run, &b->device));
  if (b->which == TN_PROGRAM_STEP) TN_TRY(tn_plan_file_read(b->run, b->device, &request.choices));
  request.slots = b->micro_batches;
  TN_TRY(tn_programs_open(b->run, &b->run->env, b->device, &request, &b->set, &b->executor));
  TN_TRY(tn_bench_list_passes(b));
  TN_TRY(tn_executor_run(b->executor, b->set.index[TN_PROGRAM_INIT], 0));
  TN_TRY(tn_executor_slot_wait(b->executor, 0));
  TN_TRY(tn_programs_refresh(&b->set, b->executor));
  for (int32_t m = 0; m < b->micro_batches; m++) bench_fill_inputs(b, m);
  return bench_write_control_blocks(b);
}

static tn_status bench_measure(tn_bench *b) {
  TN_TRY(tn_bench_step(b));
  b->first_step_s = tn_clock_s() - b->run->opened_s;
  for (int32_t i = 0; i < b->options.warmup; i++) TN_TRY(tn_bench_step(b));
  for (int32_t round = 0; round < b->options.rounds; round++) {
    double start = tn_clock_s();
    for (int32_t i = 0; i < b->options.steps; i++) TN_TRY(tn_bench_step(b));
    b->round_ms[round] = (tn_clock_s() - start) / b->options.steps * 1e3;
  }
  return TN_OK;
}

static json_t *bench_result(const tn_bench *b) {
  const tn_device *device = b->device;
  const tn_backend *backend = device->extension ? device->extension : device->backend;
  json_t *ms = tn_bench_spread(b->round_ms, b->options.rounds);
  double median = json_number_value(json_array_get(ms, 1));
  int64_t planned = tn_executor_planned_bytes(b->set.map, b->set.list, b->set.n, b->micro_batches,
                                              device->target.properties.host_addressable != 0);
  double samples = (double)b->batch * b->micro_batches;
  json_t *result =
      json_pack("{s:s, s:i, s:s, s:I, s:s, s:o, s:f, s:f, s:f, s:f, s:f}", "backend", backend->item.name,
                "threads", device->target.properties.threads, "mode",
                b->which == TN_PROGRAM_STEP ? "train" : "infer", "batch", (json_int_t)b->batch, "dtype",
                b->run->settings.precision->item.name, "ms", ms, "per_s", samples / median * 1e3,
                "first_step_s", b->first_step_s, "peak_rss_mib", tn_peak_rss_mib(), "planned_peak_mib",
                (double)planned / 1048576.0, "measured_peak_mib", (double)device->peak_bytes / 1048576.0);
  tn_json_add_memory(b->device, result);
  if (b->micro_batches > 1) json_object_set_new(result, "accumulate", json_integer(b->micro_batches));
  return result;
}

static void bench_set_options(tn_bench *b, tn_bench_options o) {
  if (o.steps < 1) o.steps = 3;
  if (o.rounds < 1) o.rounds = 5;
  if (o.warmup < 1) o.warmup = 1;
  b->options = o;
}

static tn_status bench_run_step(void *context) { return tn_bench_step(context); }

static tn_status bench_report(tn_bench *b, char **json) {
  const tn_profiled what = {.run = b->run, .set = &b->set, .executor = b->executor};
  json_t *result = bench_result(b);
  const tn_program *program = b->set.programs[b->which];
  tn_status status =
      result ? tn_program_report_captures(program, tn_device_captures(b->device), result) : TN_OK;
  if (status == TN_OK && result && b->options.launches) status = tn_bench_launches(b, result);
  if (status == TN_OK && result) status = tn_bench_trace(&what, bench_run_step, b, result);
  if (status == TN_OK) return tn_json_take(b->run, result, json);
  json_decref(result);
  return status;
}

tn_status tn_run_bench(tn_run *run, const tn_bench_options *given, char **json) {
  tn_bench_options options;
  TN_ENTER(run);
  TN_NEED(run, json, "json");
  *json = NULL;
  TN_TRY(TN_READ_STRUCT(run, tn_bench_options, mode, given, &options));
  if (run->trace != NULL) TN_TRY(tn_profile_check_path(&run->env, run->trace));
  if (options.mode == TN_BENCH_LOAD) return tn_bench_load(run, &options, json);
  tn_bench b = {.run = run};
  bench_set_options(&b, options);
  b.which = b.options.mode == TN_BENCH_TRAIN ? TN_PROGRAM_STEP : TN_PROGRAM_PREDICT;
  b.round_ms = tn_alloc(&run->env, tn_size_mul((size_t)b.options.rounds, sizeof *b.round_ms));
  tn_status status = b.round_ms ? bench_prepare(&b) : TN_ENOMEM;
  if (status == TN_OK) status = bench_measure(&b);
  if (status == TN_OK) status = bench_report(&b, json);
  tn_executor_destroy(b.executor);
  tn_programs_free(run, &b.set);
  tn_device_destroy(b.device);
  tn_release(&run->env, b.round_ms);
  return status;
}
