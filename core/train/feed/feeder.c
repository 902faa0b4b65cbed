/* core/train/feed/feeder.c: the loader's workers write directly into the input slots of the executor. */
#include "core/train/feed/feeder.h"

#include <string.h>

#include "core/base/system/system.h"
#include "core/records/learnt/class_names.h"
#include "core/records/learnt/learnt.h"
#include "core/records/learnt/target_units.h"
#include "core/distributed/ranks/devices.h"
#include "core/step/checks/check_model.h"

/* Several ranks agree on the step at which they stop, so each reads the samples up to there: a rank that was
 * asked to stop waits so long for a batch. */
static const double PATIENCE_S = 5;

/* One field of the loader, and the program's input of that name. */
typedef struct tn_feed_field {
  const char *input; /* NULL: the program has no such input */
  size_t bytes;      /* of one batch */
} tn_feed_field;

struct tn_feeder {
  tn_run *run;
  tn_arena arena;
  tn_executor *executor;
  int32_t index, slots;
  int32_t size; /* of [model] sizes, counted from 0; TN_MAX_LENGTHS: the largest */
  tn_loader *loader;
  tn_feed_field *fields;
  int32_t n_fields;
  void ***addresses; /* [slot][field] */
  float **weights;   /* [slot] */
  int32_t *pending;  /* slots that the loader fills, oldest first */
  int32_t n_pending;
  int64_t rank_batch, number; /* samples of this rank in a batch; number of the next batch */
  int32_t accumulate;         /* batches per update */
};

static const tn_binding *feeder_find_input(const tn_program *program, const char *name) {
  for (int32_t i = 0; i < program->n_inputs; i++)
    if (tn_text_equal(program->inputs[i].name, name)) return &program->inputs[i];
  return NULL;
}

static tn_status feeder_map_fields(tn_feeder *f, const tn_program *program) {
  f->n_fields = tn_loader_field_count(f->loader);
  f->fields = tn_arena_alloc(&f->arena, tn_size_mul((size_t)f->n_fields + 1, sizeof *f->fields));
  if (f->fields == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < f->n_fields; i++) {
    const tn_field *field = tn_loader_field(f->loader, i);
    const tn_binding *input = feeder_find_input(program, field->name);
    f->fields[i].bytes = tn_size_mul(tn_type_bytes(&field->type), (size_t)f->rank_batch);
    if (input != NULL) f->fields[i].input = input->name;
  }
  return TN_OK;
}

/* The program's inputs are fields of the data. The programs of a run whose data could be opened before are
 * compiled only where that is so (check_model.h). */
static tn_status feeder_check_inputs(tn_feeder *f, int32_t split, const tn_program *program) {
  tn_signature_field *wanted =
      tn_arena_alloc(&f->arena, tn_size_mul((size_t)program->n_inputs + 1, sizeof *wanted));
  int32_t n = 0;
  if (wanted == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < program->n_inputs; i++) {
    const tn_binding *input = &program->inputs[i];
    if (!tn_input_is_of_host(input->name)) wanted[n++] = tn_field_of_input(input->name, &input->type);
  }
  TN_TRY(tn_fields_check(f->run, split, f->loader, wanted, n));
  return tn_ini_tell(&f->run->env, &f->run->ini);
}

/* The addresses of a slot. Fields and weights that the program does not read get scratch memory. */
static tn_status feeder_bind_slot(tn_feeder *f, int32_t slot) {
  f->addresses[slot] = tn_arena_alloc(&f->arena, tn_size_mul((size_t)f->n_fields + 1, sizeof(void *)));
  if (f->addresses[slot] == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < f->n_fields; i++) {
    void *to = f->fields[i].input ? tn_executor_input(f->executor, f->index, slot, f->fields[i].input) : NULL;
    f->addresses[slot][i] = to ? to : tn_arena_alloc(&f->arena, f->fields[i].bytes);
    if (f->addresses[slot][i] == NULL) return TN_ENOMEM;
  }
  f->weights[slot] = tn_executor_input(f->executor, f->index, slot, "sample.weight");
  if (f->weights[slot] == NULL)
    f->weights[slot] = tn_arena_alloc(&f->arena, tn_size_mul((size_t)f->rank_batch, sizeof(float)));
  return f->weights[slot] ? TN_OK : TN_ENOMEM;
}

/* A rank's part of [data] cache. */
static int64_t feeder_cache_bytes(const tn_run *run, int64_t bytes) {
  if (bytes == TN_CACHE_AUTO) bytes = tn_memory_available() / 4;
  return bytes / tn_run_ranks(run);
}

/* How many transforms the device applies: where it computes in host memory, `auto` means none. */
static int32_t feeder_device_transforms(const tn_data_setting *data, const tn_target *target) {
  bool late = target != NULL && !target->properties.host_addressable;
  if (target == NULL || data->n_transforms == 0) return 0;
  return data->device_transforms == TN_DEVICE_TRANSFORMS_AUTO && !late ? 0 : data->device_transforms;
}

bool tn_run_overfits(const tn_run *run) { return run->settings.run.overfit > 0 && !run->evaluating; }

/* [run] overfit: both splits read the same batches of the training data, as validation reads data. */
static void feeder_overfit(const tn_run *run, const tn_target *target, tn_loader_options *options) {
  const tn_data_setting *train = &run->settings.data[TN_SPLIT_TRAIN],
                        *valid = &run->settings.data[TN_SPLIT_VALID], *as = valid->given ? valid : train;
  int64_t samples;
  bool large = __builtin_mul_overflow(run->settings.run.overfit, train->section.batch, &samples);
  options->source = train->source;
  options->source_options = train->options;
  options->split = TN_SPLIT_TRAIN;
  options->fold.held_out = false;
  options->transforms = as->transforms;
  options->n_transforms = as->n_transforms;
  options->device_transforms = feeder_device_transforms(as, target);
  options->shuffle = options->balance = options->training = false;
  options->epoch_samples = large ? INT64_MAX : samples;
  options->epoch_key = "[run] overfit";
  options->limit = (tn_epoch_limit){0, 0};
  options->where = train->where;
}

/* [data] fold: validation reads a part of the training data. */
static void feeder_take_fold(const tn_run *run, int32_t split, tn_loader_options *options) {
  const tn_data_setting *train = &run->settings.data[TN_SPLIT_TRAIN];
  options->fold = train->fold;
  if (train->fold.parts == 0 || split == TN_SPLIT_TRAIN) return;
  options->source = train->source;
  options->source_options = train->options;
  options->split = TN_SPLIT_TRAIN;
  options->fold.held_out = true;
  options->where = train->where;
}

/* Batches in every update; where updates differ, an epoch is measured in batches. */
static int32_t feeder_accumulate(const tn_settings *s) {
  return tn_settings_schedule_of(s, TN_SCHEDULES_ACCUMULATE) == NULL ? (int32_t)s->optimizer.accumulate : 1;
}

tn_status tn_feeder_options(tn_run *run, int32_t split, const tn_target *target, int32_t slots,
                            tn_loader_options *options) {
  const tn_data_setting *data = &run->settings.data[split];
  const tn_data_section *s = &data->section;
  bool training = split == TN_SPLIT_TRAIN;
  if (!data->given)
    return tn_failf(&run->env, TN_EINVAL, "%s: no [data] source%s, expected one, for example source = digits",
                    run->ini.path, split == TN_SPLIT_VALID ? " for validation" : "");
  *options = (tn_loader_options){.source = data->source,
                                 .source_options = data->options,
                                 .split = split,
                                 .transforms = data->transforms,
                                 .n_transforms = data->n_transforms,
                                 .device_transforms = feeder_device_transforms(data, target),
                                 .shard = run->rank,
                                 .shards = tn_run_ranks(run),
                                 .accumulate = training ? feeder_accumulate(&run->settings) : 1,
                                 .workers = (int32_t)s->workers,
                                 .prefetch = slots,
                                 .shuffle = training && s->shuffle,
                                 .training = training,
                                 .pad_last = !training || s->last == TN_LAST_PAD,
                                 .epoch_samples = s->epoch,
                                 .balance = training && s->balance,
                                 .skip_corrupt = s->corrupt == TN_CORRUPT_SKIP,
                                 .seed = (uint64_t)run->settings.run.seed,
                                 .cache_bytes = feeder_cache_bytes(run, data->cache),
                                 .where = data->where,
                                 .stop = run->record.stop,
                                 .patience_s = tn_run_ranks(run) == 1 ? 0 : PATIENCE_S};
  feeder_take_fold(run, split, options);
  if (!run->evaluating) options->limit = run->settings.limit[split];
  if (tn_run_overfits(run)) feeder_overfit(run, target, options);
  TN_TRY(tn_learnt_text(run, options->source, &options->learnt));
  TN_TRY(tn_fields_padded(run, options));
  return tn_run_rank_batch(run, split, &options->batch);
}

/* The learnt state of the training data is kept for the validation data, which are opened next. */
static tn_status feeder_create_loader(tn_run *run, int32_t split, const tn_loader_options *options,
                                      tn_loader **loader) {
  TN_TRY(tn_loader_create(&run->env, options, loader));
  tn_status status = split == TN_SPLIT_TRAIN ? tn_learnt_of_data(run, *loader, options->source) : TN_OK;
  if (status == TN_OK) return TN_OK;
  tn_loader_destroy(*loader);
  *loader = NULL;
  return tn_wrap(&run->env, status, "%s", options->where);
}

/* Both splits may lack the same data. */
static void feeder_warn_of_plan(tn_run *run) {
  const char *why = tn_error_text(&run->env);
  if (run->absent != NULL && tn_text_equal(run->absent, why)) return;
  tn_logf(&run->env, TN_LOG_WARN, "the plan has all transforms on the host: %s", why);
  run->absent = tn_arena_strdup(&run->arena, why);
}

tn_status tn_feeder_open_loader(tn_run *run, int32_t split, const tn_target *target, int32_t slots,
                                tn_loader **loader) {
  tn_loader_options options;
  *loader = NULL;
  if (!run->settings.data[split].given) return TN_OK;
  /* a batch that cannot be divided is told with the mistakes that are found behind it */
  TN_TRY(tn_ini_note(&run->env, &run->ini, tn_feeder_options(run, split, target, slots, &options)));
  if (options.batch < 1) options.batch = 1;
  if (run->planning && options.device_transforms == 0) return TN_OK;
  tn_status status = feeder_create_loader(run, split, &options, loader);
  if (status == TN_EUNAVAILABLE || status == TN_EIO) {
    if (run->planning) feeder_warn_of_plan(run);
    tn_error_clear(&run->env);
    return TN_OK;
  }
  return status;
}

/* Takes over the loader that was opened before, or creates one whose transforms all run on the host. */
static tn_status feeder_take_loader(tn_feeder *f, int32_t split, const tn_loader_options *options,
                                    tn_loader **opened) {
  f->loader = *opened;
  *opened = NULL;
  return f->loader != NULL ? TN_OK : feeder_create_loader(f->run, split, options, &f->loader);
}

/* Training samples of [model] sizes have transforms of their own. */
static void feeder_take_size(const tn_feeder *f, int32_t split, tn_loader_options *options) {
  const tn_settings *s = &f->run->settings;
  if (split == TN_SPLIT_TRAIN && s->sizes && f->size < s->n_lengths - 1)
    options->transforms = s->data[split].sized[f->size];
}

/* `before`: a feeder of the same split, whose open source is read; NULL for the first one. */
static tn_status feeder_prepare(tn_feeder *f, int32_t split, const tn_feeder *before, tn_loader **opened,
                                const tn_program *program) {
  const tn_data_setting *data = &f->run->settings.data[split];
  tn_loader_options options;
  TN_TRY(tn_feeder_options(f->run, split, NULL, f->slots, &options));
  f->rank_batch = options.batch;
  f->accumulate = options.accumulate;
  options.like = before != NULL ? before->loader : NULL;
  feeder_take_size(f, split, &options);
  TN_TRY(feeder_take_loader(f, split, &options, opened));
  TN_TRY(feeder_check_inputs(f, split, program));
  TN_TRY(tn_class_names_of_data(f->run, f->loader));
  TN_TRY(tn_target_units_of_data(f->run, f->loader));
  TN_TRY(feeder_map_fields(f, program));
  f->addresses = tn_arena_alloc(&f->arena, tn_size_mul((size_t)f->slots, sizeof *f->addresses));
  f->weights = tn_arena_alloc(&f->arena, tn_size_mul((size_t)f->slots, sizeof *f->weights));
  f->pending = tn_arena_alloc(&f->arena, tn_size_mul((size_t)f->slots, sizeof *f->pending));
  if (f->addresses == NULL || f->weights == NULL || f->pending == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < f->slots; i++) TN_TRY(feeder_bind_slot(f, i));
  if (tn_loader_batches(f->loader) > 0) return TN_OK;
  return tn_failf(&f->run->env, TN_EINVAL,
                  "%s: %lld samples do not fill one batch of %lld; use a smaller batch or last = pad",
                  data->where, (long long)tn_loader_samples(f->loader), (long long)data->section.batch);
}

/* `feeder` has what the caller gives. */
static tn_status feeder_create(const tn_feeder *feeder, int32_t split, const tn_feeder *before,
                               tn_loader **opened, const tn_program *program, tn_feeder **out) {
  *out = NULL;
  tn_feeder *f = tn_alloc(&feeder->run->env, sizeof *f);
  if (f == NULL) return TN_ENOMEM;
  *f = *feeder;
  f->arena = tn_arena_new(&f->run->env);
  tn_status status = feeder_prepare(f, split, before, opened, program);
  if (status == TN_OK)
    *out = f;
  else
    tn_feeder_destroy(f);
  return status;
}

tn_status tn_feeder_create(tn_run *run, int32_t split, tn_loader **opened, tn_executor *executor,
                           int32_t index, const tn_program *program, int32_t slots, tn_feeder **out) {
  const tn_feeder f = {
      .run = run, .executor = executor, .index = index, .slots = slots, .size = TN_MAX_LENGTHS};
  return feeder_create(&f, split, NULL, opened, program, out);
}

tn_status tn_feeder_create_sized(const tn_feeder *before, int32_t size, int32_t index,
                                 const tn_program *program, tn_feeder **out) {
  const tn_feeder f = {
      .run = before->run, .executor = before->executor, .index = index, .slots = before->slots, .size = size};
  tn_loader *none = NULL;
  return feeder_create(&f, TN_SPLIT_TRAIN, before, &none, program, out);
}

tn_status tn_feeder_require(tn_run *run, tn_status status) {
  if (status != TN_EUNAVAILABLE) return status;
  return tn_failf(&run->env, TN_EIO, "%s", tn_error_text(&run->env));
}

/* Logs how many decoded samples the loader keeps. */
static void feeder_log_cache(const tn_feeder *f) {
  if (f->loader == NULL) return;
  tn_loader_cache_info memory = tn_loader_cache(f->loader);
  if (memory.keeps)
    tn_logf(&f->run->env, TN_LOG_INFO, "%lld of %lld samples are kept in memory, %.1f MiB%s",
            (long long)memory.kept, (long long)memory.count, (double)memory.bytes / 1048576.0,
            memory.full ? ", the limit of [data] cache" : "");
}

void tn_feeder_destroy(tn_feeder *f) {
  if (f == NULL) return;
  feeder_log_cache(f);
  tn_loader_destroy(f->loader); /* its workers write into the slots until this returns */
  tn_arena_free(&f->arena);
  tn_release(&f->run->env, f);
}

const tn_loader *tn_feeder_loader(const tn_feeder *f) { return f->loader; }

tn_loader *tn_feeder_profiled_loader(tn_feeder *f) { return f->loader; }

int32_t tn_feeder_length(const tn_feeder *f) { return tn_loader_length(f->loader); }

int64_t tn_feeder_updates(const tn_feeder *f) { return tn_loader_batches(f->loader) / f->accumulate; }

tn_status tn_feeder_return(tn_feeder *f, int32_t slot) {
  tn_batch batch = {f->addresses[slot], f->weights[slot], NULL};
  TN_TRY(tn_loader_submit(f->loader, &batch));
  f->pending[f->n_pending++] = slot;
  return TN_OK;
}

tn_status tn_feeder_start_updates(tn_feeder *f, int64_t epoch, const tn_epoch_updates *updates) {
  TN_TRY(tn_loader_start_updates(f->loader, epoch, updates));
  f->number = updates->first;
  f->n_pending = 0;
  for (int32_t i = 0; i < f->slots; i++) TN_TRY(tn_feeder_return(f, i));
  return TN_OK;
}

tn_status tn_feeder_start(tn_feeder *f, int64_t epoch, int64_t first) {
  const tn_epoch_updates equal = {first * f->accumulate, tn_loader_batches(f->loader), -1};
  return tn_feeder_start_updates(f, epoch, &equal);
}

tn_status tn_feeder_stop(tn_feeder *f) {
  f->n_pending = 0;
  return tn_loader_start(f->loader, 0, 0);
}

/* Of several ranks, one that has no batch cannot come to the step at which all stop. */
static tn_status feeder_give_up(tn_feeder *f) {
  if (tn_run_ranks(f->run) == 1) return TN_ESTOPPED;
  f->run->gave_up = true;
  return tn_failf(
      &f->run->env, TN_ESTOPPED,
      "stopped: its next batch has not come for %g s; the steps since the last checkpoint are lost",
      PATIENCE_S);
}

tn_status tn_feeder_next(tn_feeder *f, int32_t *slot, int64_t *samples) {
  if (f->n_pending == 0) return TN_EOF;
  tn_status status = tn_loader_wait(f->loader, samples);
  if (status == TN_ESTOPPED) return feeder_give_up(f); /* the slot remains the loader's */
  *slot = f->pending[0];
  f->n_pending--;
  memmove(f->pending, f->pending + 1, sizeof *f->pending * (size_t)f->n_pending);
  if (status != TN_OK) return status;
  int64_t batch = f->rank_batch * tn_run_ranks(f->run),
          left = tn_loader_samples(f->loader) - f->number++ * batch;
  *samples = left < 0 ? 0 : left < batch ? left : batch;
  return TN_OK;
}
