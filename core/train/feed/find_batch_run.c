/* core/train/feed/find_batch_run.c: [data] batch = auto: the samples that there are, the search, and the
 * number in place of the word. */
#include "core/records/runs/run_differences.h"
#include "core/step/programs/find_batch.h"
#include "core/train/feed/feeder.h"
#include "core/train/feed/find_batch_run.h"

static bool find_batch_is_auto(const tn_run *run, int32_t split) {
  return run->settings.data[split].given && run->settings.data[split].batch_auto;
}

/* A batch is at most the samples of an epoch; INT64_MAX: their number is not known, as to a plan, which opens
 * no data. */
static int64_t find_batch_samples(const tn_run *run, const tn_loader *loader) {
  int64_t n = loader != NULL ? tn_loader_samples(loader) : run->settings.data[TN_SPLIT_TRAIN].section.epoch;
  return n > 0 ? n : INT64_MAX;
}

static tn_status find_batch_open(tn_run *run, tn_device *device, int32_t split, tn_batch_search *search,
                                 tn_loader **loader) {
  if (!run->settings.data[split].given) return TN_OK;
  if (find_batch_is_auto(run, split))
    run->settings.data[split].section.batch = 1; /* any that the data fill */
  TN_TRY(tn_feeder_open_loader(run, split, &device->target, tn_run_most_input_slots(run), loader));
  search->request.loaders[split] = *loader;
  return TN_OK;
}

static tn_status find_batch_search(tn_run *run, tn_device *device, tn_loader *loaders[2],
                                   tn_found_batch *found) {
  const tn_data_setting *valid = &run->settings.data[TN_SPLIT_VALID];
  tn_batch_search search = {.run = run, .target = &device->target};
  for (int32_t split = 0; split < 2; split++)
    TN_TRY(find_batch_open(run, device, split, &search, &loaders[split]));
  search.request.all_lengths = true;
  search.most = find_batch_samples(run, loaders[TN_SPLIT_TRAIN]) / run->settings.optimizer.accumulate;
  if (search.most < 1) search.most = 1;
  if (search.most > INT32_MAX) search.most = INT32_MAX;
  search.request.batch[TN_PROGRAM_EVAL] = valid->given ? 1 : 0;
  search.most_eval = find_batch_is_auto(run, TN_SPLIT_VALID) ? INT64_MAX : valid->section.batch;
  return tn_find_batch(&search, found);
}

/* "net.ini:14" of the key. */
static const char *find_batch_where(tn_run *run) {
  tn_section *own = tn_ini_section(&run->ini, "data.train");
  bool is_own = own != NULL && tn_section_key(own, "batch") != NULL;
  return tn_settings_where(&run->ini, is_own ? "data.train" : "data", "batch");
}

static tn_status find_batch_check_ranks(tn_run *run) {
  int32_t ranks = tn_run_ranks(run);
  if (ranks == 1) return TN_OK;
  return tn_failf(
      &run->env, TN_EINVAL,
      "%s: [data] batch = auto with %d devices, which may have different memory: expected a number. "
      "`tenon plan FILE.ini` with [distributed] devices = 1 finds the batch of one device",
      find_batch_where(run), (int)ranks);
}

tn_status tn_run_find_batch(tn_run *run, tn_device *device) {
  tn_loader *loaders[2] = {NULL, NULL};
  tn_found_batch found;
  if (!find_batch_is_auto(run, TN_SPLIT_TRAIN)) return TN_OK;
  TN_TRY(find_batch_check_ranks(run));
  tn_status status = find_batch_search(run, device, loaders, &found);
  for (int32_t split = 0; split < 2; split++) tn_loader_destroy(loaders[split]);
  if (status == TN_ENOMEM)
    return tn_wrap(&run->env, status, "%s: [data] batch = auto", find_batch_where(run));
  if (status != TN_OK) return status;
  TN_TRY(tn_put_batch(run, found.batch));
  return tn_run_remark(run, "batch = auto: %lld, by %d plans; %.1f of %.1f MiB", (long long)found.batch,
                       (int)found.plans, (double)found.bytes / 1048576.0, (double)found.limit / 1048576.0);
}
