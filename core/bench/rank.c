/* core/bench/rank.c: the benchmark of one rank: programs, random inputs, timed steps. */
#include <math.h>
#include <string.h>

#include "core/train/feed/find_batch_run.h"
#include "core/base/system/system.h"
#include "core/exec/flight_recorder.h"
#include "core/records/runs/plan_file.h"
#include "core/bench/bench.h"
#include "core/step/programs/program_kinds.h"
#include "core/step/values/control_block.h"
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
    else if (type->dtype == TN_U8 || type->dtype == TN_I8)
      ((uint8_t *)to)[i] = (uint8_t)tn_rng_below(&rng, 256);
  }
}

/* All groups of slots have the same batches. */
static void bench_fill_inputs(tn_bench *b, int32_t slot) {
  const tn_program *program = b->set.programs[b->which];
  for (int32_t i = 0; i < program->n_inputs; i++) {
    const tn_binding *input = &program->inputs[i];
    void *to = tn_executor_input(b->executor, b->set.index[b->which], slot, input->name);
    uint64_t key = (uint64_t)slot * (uint64_t)program->n_inputs + (uint64_t)i + 1;
    if (to == NULL) continue;
    if (slot >= b->micro_batches)
      memcpy(to, tn_executor_input(b->executor, b->set.index[b->which], slot % b->micro_batches, input->name),
             tn_type_bytes(&input->type));
    else if (tn_text_equal(input->name, "sample.weight"))
      for (int64_t k = 0; k < tn_type_count(&input->type); k++) ((float *)to)[k] = 1.0f;
    else
      bench_fill_random(to, &input->type, bench_count_classes(program->cover->graph, input->name), key);
  }
}

/* The control block of step 0. */
static tn_status bench_write_control_blocks(tn_bench *b) {
  tn_control_block block;
  for (int32_t i = 0; i < b->n_passes; i++) {
    int32_t which = b->passes[i].which;
    const tn_update_info *update = tn_phase_update(&b->set, &b->run->settings, tn_program_phase(which));
    TN_TRY(tn_control_block_bind(&b->set.arena, b->executor, b->set.index[which], tn_bench_slots(b), update,
                                 &block));
    for (int32_t s = 0; s < tn_bench_slots(b); s++)
      tn_control_block_write(&block, s, s % b->micro_batches, &(tn_step_position){.plain = true});
  }
  return TN_OK;
}

/* A rank's part of the batch. */
static tn_status bench_find_batch(tn_bench *b) {
  const tn_data_setting *data = &b->run->settings.data[TN_SPLIT_TRAIN];
  int32_t ranks = tn_run_ranks(b->run);
  if (b->options.batch == 0 && b->which == TN_PROGRAM_STEP) TN_TRY(tn_run_find_batch(b->run, b->device));
  int64_t batch = b->options.batch > 0 ? b->options.batch : data->given ? data->section.batch : ranks;
  b->batch = batch / ranks;
  if (batch % ranks == 0) return TN_OK;
  return tn_failf(&b->run->env, TN_EINVAL, "a batch of %lld cannot be divided among %d devices",
                  (long long)batch, (int)ranks);
}

tn_status tn_bench_prepare(tn_bench *b) {
  tn_program_request request = {{0}};
  tn_env *env = &b->run->env;
  TN_TRY(bench_find_batch(b));
  b->round_ms = tn_alloc(env, tn_size_mul((size_t)b->options.rounds, sizeof *b->round_ms));
  if (b->round_ms == NULL) return TN_ENOMEM;
  request.batch[b->which] = b->batch;
  b->micro_batches = b->which == TN_PROGRAM_STEP ? (int32_t)b->run->settings.optimizer.accumulate : 1;
  if (b->which == TN_PROGRAM_STEP) TN_TRY(tn_plan_file_read(b->run, b->device, &request.choices));
  request.count_slots = tn_bench_count_slots;
  request.context = b;
  b->run->cuts = b->all->run->cuts; /* of the first rank */
  TN_TRY(tn_programs_open(b->run, env, b->device, &request, &b->set, &b->executor));
  return tn_bench_list_passes(b);
}

/* A rehearsal reads no inputs. */
static tn_status bench_initialize(tn_bench *b) {
  TN_TRY(tn_executor_run(b->executor, b->set.index[TN_PROGRAM_INIT], 0));
  TN_TRY(tn_executor_slot_wait(b->executor, 0));
  TN_TRY(tn_programs_refresh(&b->set, b->executor));
  for (int32_t s = 0; s < tn_bench_slots(b) && b->device->rehearsed == NULL; s++) bench_fill_inputs(b, s);
  return bench_write_control_blocks(b);
}

/* The time of a rehearsal is not that of the host. */
static tn_status bench_rehearse(tn_bench *b) {
  for (int32_t round = 0; round < b->options.rounds; round++) {
    TN_TRY(tn_bench_overlap(b, b->options.steps, &b->measured));
    b->round_ms[round] = b->measured.step_s * 1e3;
  }
  return TN_OK;
}

static double bench_awaited_s(const tn_bench *b) {
  return b->device->flight != NULL ? b->device->flight->awaited_s : 0;
}

/* A host without a clock of its device waits for each launch and collective of a profile, so nothing overlaps
 * there. The step, and the time in which it waits for collectives, are then those of the rounds. */
static tn_status bench_measure_overlap(tn_bench *b, double awaited_s) {
  double n = b->options.rounds, ms = 0;
  if (b->all->communicator == NULL) return TN_OK;
  TN_TRY(tn_bench_overlap(b, b->options.steps, &b->measured));
  if (tn_executor_has_clock(b->executor)) return TN_OK;
  for (int32_t round = 0; round < b->options.rounds; round++) ms += b->round_ms[round];
  b->measured.step_s = ms / n * 1e-3;
  b->measured.exposed_s = awaited_s / (n * b->steps);
  return TN_OK;
}

tn_status tn_bench_measure(tn_bench *b) {
  TN_TRY(bench_initialize(b));
  TN_TRY(tn_bench_step(b));
  b->first_step_s = tn_clock_s() - b->run->opened_s;
  for (int32_t i = 0; i < b->options.warmup; i++) TN_TRY(tn_bench_step(b));
  if (b->device->rehearsed != NULL) return bench_rehearse(b);
  double before_s = bench_awaited_s(b);
  TN_TRY(tn_bench_rounds(b));
  return bench_measure_overlap(b, bench_awaited_s(b) - before_s);
}
