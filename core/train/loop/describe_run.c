/* core/train/loop/describe_run.c: the facts about a run that its observers get. */
#include "core/data/balance.h"
#include "core/records/runs/run_differences.h"
#include "core/train/loop/training.h"
#include "core/step/programs/memory_report.h"
#include "core/step/programs/other_policy.h"

static const char *describe_text(const char *text) { return text != NULL ? text : ""; }

static void describe_device(const tn_training *t, tn_run_info *info) {
  tn_device *d = t->device;
  info->backend = tn_device_name(d);
  info->extends = d->extension != NULL ? d->extension->extends : "";
  info->libraries = tn_device_libraries(d);
  info->passed_over = d->passed_over;
  info->use = describe_text(t->run->settings.backend.use);
  info->device = d->target.properties.name;
  info->threads = d->target.properties.threads;
  info->devices = tn_run_ranks(t->run);
}

static int64_t describe_classes(const tn_loader *loader) {
  for (int32_t i = 0; i < tn_loader_field_count(loader); i++)
    if (tn_loader_field(loader, i)->classes > 0) return tn_loader_field(loader, i)->classes;
  return 0;
}

/* The samples of a step; where steps differ, the mean of those that are left. */
static int64_t describe_update(const tn_training *t) {
  int64_t first = t->progress.step;
  const tn_step_position at = tn_training_at(t, first), end = tn_training_at(t, t->steps);
  if (t->sizes.schedule == NULL || t->steps <= first) return at.samples;
  double left = tn_position_units(&end, TN_UNIT_SAMPLES) - tn_position_units(&at, TN_UNIT_SAMPLES);
  return (int64_t)(left / (double)(t->steps - first) + 0.5);
}

static void describe_data(const tn_training *t, tn_run_info *info) {
  const tn_data_setting *data = &t->run->settings.data[TN_SPLIT_TRAIN];
  const tn_loader *loader = tn_feeder_loader(t->train);
  info->source = data->source->item.name;
  info->batch = describe_update(t);
  info->data_batch = data->section.batch;
  info->samples = tn_loader_samples(loader);
  info->classes = describe_classes(loader);
  if (t->valid != NULL) info->valid_samples = tn_loader_samples(tn_feeder_loader(t->valid));
}

/* "limit_train = 0.1: 62 batches in an epoch" */
static tn_status describe_limit(const tn_training *t, const tn_feeder *feeder, const char *key,
                                const char *text, const char *what) {
  long long n = feeder != NULL ? (long long)tn_loader_batches(tn_feeder_loader(feeder)) : 0;
  if (feeder == NULL || tn_text_equal(text, "1.0")) return TN_OK;
  return tn_run_remark(t->run, "%s = %s: %lld batch%s in %s", key, text, n, n == 1 ? "" : "es", what);
}

static tn_status describe_balance(const tn_training *t) {
  if (tn_loader_is_weighted(tn_feeder_loader(t->train)))
    return tn_run_remark(t->run, "weights: samples are drawn in proportion to them, with replacement");
  const tn_balance *balance = tn_loader_balance(tn_feeder_loader(t->train));
  int64_t least, most;
  if (balance == NULL) return TN_OK;
  tn_balance_extremes(balance, &least, &most);
  return tn_run_remark(t->run, "balance: every class equally often; a class has %lld to %lld samples",
                       (long long)least, (long long)most);
}

/* The keys that make an epoch another one than all samples of the source, each once. */
static tn_status describe_epochs(const tn_training *t) {
  const tn_run_section *s = &t->run->settings.run;
  if (tn_run_overfits(t->run))
    return tn_run_remark(t->run,
                         "overfit = %lld: training and validation on the same %lld samples in every epoch, "
                         "in the same order, with the transforms of validation",
                         (long long)s->overfit, (long long)tn_loader_samples(tn_feeder_loader(t->train)));
  TN_TRY(describe_limit(t, t->train, "limit_train", s->limit_train, "an epoch"));
  TN_TRY(describe_limit(t, t->valid, "limit_valid", s->limit_valid, "a validation"));
  return describe_balance(t);
}

static tn_status describe_accumulate(const tn_training *t) {
  const tn_update_walk begin = {.epoch = t->progress.epoch, .batches = 0};
  if (t->sizes.schedule == NULL || t->progress.epoch >= t->sizes.epochs) return TN_OK;
  return tn_run_remark(t->run,
                       "accumulate: %lld batch%s in the first update of epoch %lld, %d at most; %lld "
                       "updates in the run",
                       (long long)tn_update_sizes_next(&t->sizes, &begin),
                       tn_update_sizes_next(&t->sizes, &begin) == 1 ? "" : "es", (long long)begin.epoch + 1,
                       (int)t->micro_batches, (long long)t->steps);
}

static tn_status describe_shard(const tn_training *t) {
  if (t->run->settings.distributed.shard == TN_SHARD_NO || tn_run_ranks(t->run) > 1) return TN_OK;
  return tn_run_remark(t->run, "[distributed] shard = optimizer has no effect on one device");
}

static tn_status describe_communicator(const tn_training *t) {
  const char *name = t->run->settings.distributed.communicator;
  if (*name == '\0' || tn_run_ranks(t->run) > 1) return TN_OK;
  return tn_run_remark(
      t->run,
      "[distributed] communicator = %s has no effect on one device; start several processes by "
      "`tenon launch -n N %s`, or set [distributed] devices = all",
      name, t->run->ini.path);
}

static void describe_output(const tn_run *run, tn_run_info *info) {
  info->terminal = run->terminal_columns > 0;
  info->terminal_columns = run->terminal_columns;
  info->quiet = run->quiet;
}

int64_t tn_training_planned_bytes(const tn_training *t) {
  bool direct = t->device->target.properties.host_addressable != 0;
  return tn_executor_planned_bytes(t->set.map, t->set.list, t->set.n, t->slots, direct);
}

static const char *describe_better_policy(const tn_training *t) {
  const tn_precision *policy = tn_other_policy(t->run, t->device, &t->set);
  return policy != NULL ? policy->item.name : "";
}

/* A remark for each group that is frozen now and not for ever. */
static tn_status describe_thaws(tn_training *t, int64_t epoch) {
  const tn_settings *s = &t->run->settings;
  for (int32_t i = 0; i < s->n_groups; i++) {
    const tn_group_setting *g = &s->groups[i];
    long long until = (long long)g->until;
    if (g->until < epoch) continue;
    TN_TRY(g->until < s->run.epochs
               ? tn_run_remark(t->run, "%s is frozen in epochs 1-%lld, and trained from epoch %lld on",
                               g->name, until, until + 1)
               : tn_run_remark(t->run,
                               "%s is frozen in the whole run: [group.%s] freeze = %lld, [run] epochs = %lld",
                               g->name, g->name, until, (long long)s->run.epochs));
  }
  return TN_OK;
}

/* A run that is resumed after its last epoch ends at once. */
static tn_status describe_nothing_left(tn_training *t) {
  int64_t epochs = t->run->settings.run.epochs;
  if (!t->resumed || t->progress.epoch < epochs) return TN_OK;
  return tn_run_remark(t->run, "nothing is left to train: [run] epochs = %lld; more goes on",
                       (long long)epochs);
}

/* The table of memory, at the log's level of --verbose. */
static tn_status describe_memory(tn_training *t) {
  json_t *json = json_object();
  bool direct = t->device->target.properties.host_addressable != 0;
  tn_status status = tn_memory_report_add(&t->set, t->slots, direct, t->device, json);
  const json_t *lines = json_object_get(json_object_get(json, "memory_table"), "lines");
  for (size_t i = 0; i < json_array_size(lines); i++)
    tn_logf(&t->run->env, TN_LOG_DEBUG, "%s", json_string_value(json_array_get(lines, i)));
  json_decref(json);
  return status;
}

tn_status tn_training_start_observers(tn_training *t) {
  tn_run *run = t->run;
  int64_t epoch = t->progress.epoch + 1;
  TN_TRY(describe_thaws(t, epoch));
  TN_TRY(describe_epochs(t));
  TN_TRY(describe_accumulate(t));
  TN_TRY(tn_training_describe_sizes(t));
  TN_TRY(describe_shard(t));
  TN_TRY(describe_communicator(t));
  TN_TRY(describe_nothing_left(t));
  TN_TRY(describe_memory(t));
  tn_run_info info = {.struct_size = sizeof info,
                      .name = run->settings.run.name,
                      .folder = describe_text(t->folder),
                      .epochs = run->settings.run.epochs,
                      .steps = t->steps,
                      .steps_per_epoch = t->steps_per_epoch,
                      .first_step = t->progress.step,
                      .epoch_ended = t->progress.ended,
                      .precision = run->settings.precision->item.name,
                      .parameters = tn_programs_parameters(&t->set, epoch),
                      .planned_bytes = tn_training_planned_bytes(t),
                      .resumed = t->resumed,
                      .replayed = run->recorded_choices != NULL,
                      .remarks = describe_text(run->remarks),
                      .frozen = tn_programs_frozen(&t->set, epoch),
                      .better_policy = describe_better_policy(t)};
  describe_device(t, &info);
  describe_data(t, &info);
  describe_output(run, &info);
  return tn_observers_start(run, &info, &t->observers);
}
