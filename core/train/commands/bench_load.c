/* core/train/commands/bench_load.c: images a second of the loader alone, in the way in which other loaders
 * are measured: a few batches to warm up, then a number of batches on the clock. */
#include "core/train/commands/bench.h"

#include "core/base/thread.h"

/* Both as the usual scripts for other loaders have them. */
enum { WARMUP = 4, STEPS = 40 };

typedef struct tn_load_bench {
  tn_run *run;
  tn_bench_options options;
  tn_arena arena;
  tn_loader_options asked;
  tn_loader *loader;
  tn_batch *slots;
  int32_t n_slots;
  int64_t epoch, given; /* which epoch; batches handed to the loader so far: the slots' turn */
  int64_t ahead;        /* of them, those that have not come back */
  double first_ms;      /* a batch of the first epoch */
  double *round_ms;
} tn_load_bench;

static tn_status make_slot(tn_load_bench *b, tn_batch *slot) {
  int32_t n = tn_loader_field_count(b->loader);
  void **fields = tn_arena_alloc(&b->arena, tn_size_mul((size_t)n, sizeof *fields));
  slot->weights = tn_arena_alloc(&b->arena, tn_size_mul((size_t)b->asked.batch, sizeof(float)));
  if (!fields || !slot->weights) return TN_ENOMEM;
  slot->fields = fields;
  for (int32_t i = 0; i < n; i++) {
    size_t bytes = tn_type_bytes(&tn_loader_field(b->loader, i)->type);
    fields[i] = tn_arena_alloc(&b->arena, tn_size_mul(bytes, (size_t)b->asked.batch));
    if (!fields[i]) return TN_ENOMEM;
  }
  return TN_OK;
}

static tn_status set_up(tn_load_bench *b) {
  b->n_slots = tn_run_slots(b->run);
  TN_TRY(tn_feeder_options(b->run, TN_SPLIT_TRAIN, b->n_slots, &b->asked));
  if (b->options.batch > 0) b->asked.batch = b->options.batch;
  TN_TRY(tn_feeder_required(b->run, tn_loader_create(&b->run->env, &b->asked, &b->loader)));
  b->slots = tn_arena_alloc(&b->arena, tn_size_mul((size_t)b->n_slots, sizeof *b->slots));
  if (!b->slots) return TN_ENOMEM;
  for (int32_t i = 0; i < b->n_slots; i++) TN_TRY(make_slot(b, &b->slots[i]));
  return TN_OK;
}

static tn_status give_slot(tn_load_bench *b) {
  b->ahead++;
  return tn_loader_submit(b->loader, &b->slots[b->given++ % b->n_slots]);
}

static tn_status start_epoch(tn_load_bench *b) {
  TN_TRY(tn_loader_start(b->loader, b->epoch++, 0));
  b->ahead = 0;
  while (b->ahead < b->n_slots) TN_TRY(give_slot(b));
  return TN_OK;
}

/* Takes a batch, and gives its slot back at once: nobody reads it. Epochs follow one another. */
static tn_status take_batch(tn_load_bench *b) {
  int64_t samples;
  tn_status status = tn_loader_wait(b->loader, &samples);
  if (status == TN_EOF) {
    TN_TRY(start_epoch(b));
    status = tn_loader_wait(b->loader, &samples);
  }
  b->ahead--;
  return status == TN_OK ? give_slot(b) : status;
}

static tn_status take_batches(tn_load_bench *b, int64_t n, double *ms) {
  double start = tn_clock_s();
  for (int64_t i = 0; i < n; i++) TN_TRY(take_batch(b));
  if (ms) *ms = (tn_clock_s() - start) / (double)n * 1e3;
  return TN_OK;
}

/* Until every sample has been read once, where that changes anything. */
static tn_status fill_cache(tn_load_bench *b) {
  tn_loader_memory memory = tn_loader_kept(b->loader);
  if (!memory.keeps) return TN_OK;
  return take_batches(b, tn_loader_batches(b->loader), NULL);
}

static tn_status measure(tn_load_bench *b) {
  TN_TRY(start_epoch(b));
  TN_TRY(take_batches(b, b->options.warmup, NULL));
  TN_TRY(take_batches(b, b->options.steps, &b->first_ms));
  TN_TRY(fill_cache(b));
  for (int32_t round = 0; round < b->options.rounds; round++)
    TN_TRY(take_batches(b, b->options.steps, &b->round_ms[round]));
  return TN_OK;
}

static json_t *result_of(const tn_load_bench *b) {
  json_t *ms = tn_bench_spread(b->round_ms, b->options.rounds);
  double batch = (double)b->asked.batch, median = json_number_value(json_array_get(ms, 1));
  tn_loader_memory memory = tn_loader_kept(b->loader);
  return json_pack("{s:s, s:s, s:i, s:I, s:i, s:o, s:f, s:f, s:I, s:I, s:f, s:f}", "mode", "load", "source",
                   b->asked.source->item.name, "workers", (int)b->asked.workers, "batch",
                   (json_int_t)b->asked.batch, "steps", (int)b->options.steps, "ms", ms, "per_s",
                   batch / median * 1e3, "first_per_s", batch / b->first_ms * 1e3, "samples",
                   (json_int_t)memory.count, "kept", (json_int_t)memory.kept, "cache_mib",
                   (double)memory.bytes / 1048576.0, "peak_rss_mib", tn_peak_rss_mib());
}

tn_status tn_bench_load(tn_run *run, const tn_bench_options *options, char **json) {
  tn_load_bench b = {.run = run, .options = *options, .arena = tn_arena_new(&run->env)};
  if (b.options.steps <= 0) b.options.steps = STEPS;
  if (b.options.rounds <= 0) b.options.rounds = 5;
  if (b.options.warmup <= 0) b.options.warmup = WARMUP;
  b.round_ms = tn_arena_alloc(&b.arena, tn_size_mul((size_t)b.options.rounds, sizeof *b.round_ms));
  tn_status status = b.round_ms ? set_up(&b) : TN_ENOMEM;
  if (status == TN_OK) status = measure(&b);
  if (status == TN_OK) status = tn_json_take(run, result_of(&b), json);
  tn_loader_destroy(b.loader);
  tn_arena_free(&b.arena);
  return status;
}
