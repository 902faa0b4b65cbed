/* core/bench/load.c: samples per second of the loader alone: some batches to warm up, then
 * timed batches, like the usual scripts for other loaders. The device only decides which transforms it leaves
 * to the host. */
#include "core/bench/bench.h"

#include "core/base/system/system.h"
#include "core/distributed/ranks/devices.h"
#include "core/train/feed/feeder.h"

enum { WARMUP = 4, STEPS = 40 };

typedef struct tn_bench_loader {
  tn_run *run;
  tn_bench_options options;
  tn_arena arena;
  tn_loader_options loader_options;
  tn_loader *loader;
  tn_batch *slots;
  int32_t n_slots;
  int64_t epoch, submitted; /* number of the epoch; batches submitted so far, which selects the slot */
  int64_t ahead;            /* submitted batches that have not been waited for */
  double first_batch_s;     /* from the opening of the source to the first batch */
  double first_ms;          /* ms per batch of the first epoch */
  double *round_ms;
} tn_bench_loader;

static tn_status bench_load_prepare(tn_bench_loader *b) {
  tn_device *device = NULL;
  b->n_slots = tn_run_input_slots(b->run, tn_run_steps_per_launch(b->run));
  TN_TRY(tn_run_open_device(b->run, &device));
  tn_status status =
      tn_feeder_options(b->run, TN_SPLIT_TRAIN, &device->target, b->n_slots, &b->loader_options);
  tn_device_destroy(device);
  TN_TRY(status);
  if (b->options.batch > 0) b->loader_options.batch = b->options.batch;
  TN_TRY(tn_feeder_require(b->run, tn_loader_create(&b->run->env, &b->loader_options, &b->loader)));
  b->slots = tn_arena_alloc(&b->arena, tn_size_mul((size_t)b->n_slots, sizeof *b->slots));
  if (b->slots == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < b->n_slots; i++)
    TN_TRY(tn_loader_new_batch(b->loader, &b->arena, b->loader_options.batch, &b->slots[i]));
  return TN_OK;
}

static tn_status bench_load_submit_slot(tn_bench_loader *b) {
  b->ahead++;
  return tn_loader_submit(b->loader, &b->slots[b->submitted++ % b->n_slots]);
}

static tn_status bench_load_start_epoch(tn_bench_loader *b) {
  TN_TRY(tn_loader_start(b->loader, b->epoch++, 0));
  b->ahead = 0;
  while (b->ahead < b->n_slots) TN_TRY(bench_load_submit_slot(b));
  return TN_OK;
}

/* Waits for a batch and submits its slot again, since the contents are not used. Starts the next epoch where
 * one ends. */
static tn_status bench_load_take_batch(tn_bench_loader *b) {
  int64_t samples;
  tn_status status = tn_loader_wait(b->loader, &samples);
  if (status == TN_EOF) {
    TN_TRY(bench_load_start_epoch(b));
    status = tn_loader_wait(b->loader, &samples);
  }
  b->ahead--;
  return status == TN_OK ? bench_load_submit_slot(b) : status;
}

static tn_status bench_load_take_batches(tn_bench_loader *b, int64_t n, double *ms) {
  double start = tn_clock_s();
  for (int64_t i = 0; i < n; i++) TN_TRY(bench_load_take_batch(b));
  if (ms) *ms = (tn_clock_s() - start) / (double)n * 1e3;
  return TN_OK;
}

/* Reads every sample once if the loader keeps decoded samples. */
static tn_status bench_load_fill_cache(tn_bench_loader *b) {
  tn_loader_cache_info memory = tn_loader_cache(b->loader);
  if (!memory.keeps) return TN_OK;
  return bench_load_take_batches(b, tn_loader_batches(b->loader), NULL);
}

static tn_status bench_load_first_batch(tn_bench_loader *b) {
  double start = tn_clock_s();
  TN_TRY(bench_load_prepare(b));
  TN_TRY(bench_load_start_epoch(b));
  TN_TRY(bench_load_take_batch(b));
  b->first_batch_s = tn_clock_s() - start;
  return TN_OK;
}

static tn_status bench_load_measure(tn_bench_loader *b) {
  TN_TRY(bench_load_take_batches(b, b->options.warmup, NULL));
  TN_TRY(bench_load_take_batches(b, b->options.steps, &b->first_ms));
  TN_TRY(bench_load_fill_cache(b));
  for (int32_t round = 0; round < b->options.rounds; round++)
    TN_TRY(bench_load_take_batches(b, b->options.steps, &b->round_ms[round]));
  return TN_OK;
}

static json_t *bench_load_result(const tn_bench_loader *b) {
  json_t *ms = tn_bench_spread(b->round_ms, b->options.rounds);
  double batch = (double)b->loader_options.batch, median = json_number_value(json_array_get(ms, 1));
  tn_loader_cache_info memory = tn_loader_cache(b->loader);
  return json_pack("{s:s, s:s, s:i, s:I, s:i, s:o, s:f, s:f, s:f, s:I, s:I, s:f, s:f}", "mode", "load",
                   "source", b->loader_options.source->item.name, "workers", (int)b->loader_options.workers,
                   "batch", (json_int_t)b->loader_options.batch, "steps", (int)b->options.steps, "ms", ms,
                   "per_s", batch / median * 1e3, "first_per_s", batch / b->first_ms * 1e3, "first_batch_s",
                   b->first_batch_s, "samples", (json_int_t)memory.count, "kept", (json_int_t)memory.kept,
                   "cache_mib", (double)memory.bytes / 1048576.0, "peak_rss_mib", tn_peak_rss_mib());
}

static tn_status bench_load_take(void *context) { return bench_load_take_batch(context); }

static tn_status bench_load_report(tn_bench_loader *b, char **json) {
  const tn_profiled what = {
      .run = b->run, .loader = b->loader, .workers = (int32_t)b->loader_options.workers};
  json_t *result = bench_load_result(b);
  tn_status status = result ? tn_bench_trace(&what, bench_load_take, b, result) : TN_OK;
  if (status == TN_OK) return tn_json_take(b->run, result, json);
  json_decref(result);
  return status;
}

tn_status tn_bench_load(tn_run *run, const tn_bench_options *options, char **json) {
  tn_bench_loader b = {.run = run, .options = *options, .arena = tn_arena_new(&run->env)};
  if (b.options.steps <= 0) b.options.steps = STEPS;
  if (b.options.rounds <= 0) b.options.rounds = 5;
  if (b.options.warmup <= 0) b.options.warmup = WARMUP;
  b.round_ms = tn_arena_alloc(&b.arena, tn_size_mul((size_t)b.options.rounds, sizeof *b.round_ms));
  tn_status status = b.round_ms ? bench_load_first_batch(&b) : TN_ENOMEM;
  if (status == TN_OK) status = bench_load_measure(&b);
  if (status == TN_OK) status = bench_load_report(&b, json);
  tn_loader_destroy(b.loader);
  tn_arena_free(&b.arena);
  return status;
}
