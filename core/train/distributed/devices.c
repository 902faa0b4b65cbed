/* core/train/distributed/devices.c: several devices that train together. */
#include "core/train/distributed/devices.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/compile/select/collective_kernel.h"

/* ---- how many ---- */

static tn_status parse_count(tn_run *run, const char *text, int64_t *n) {
  char *end = NULL;
  long long value = strtoll(text, &end, 10);
  *n = value;
  if (end != text && *end == '\0' && value >= 1 && value <= INT32_MAX) return TN_OK;
  return tn_failf(&run->env, TN_EINVAL, "%s: [distributed] devices = %s, expected a number from 1 on, or all",
                  tn_settings_where(&run->ini, "distributed", "devices"), text);
}

tn_status tn_devices_count(tn_run *run, const tn_device *device) {
  const char *text = run->settings.distributed.devices;
  int64_t n = device->count;
  if (!tn_text_equal(text, "all")) TN_TRY(parse_count(run, text, &n));
  if (n > 1 && n > device->count)
    return tn_failf(&run->env, TN_EUNAVAILABLE,
                    "%s: [distributed] devices = %lld, but backend '%s' has %d; ask for fewer, or for all",
                    tn_settings_where(&run->ini, "distributed", "devices"), (long long)n,
                    device->backend->item.name, (int)device->count);
  run->ranks = (int32_t)n;
  return TN_OK;
}

tn_status tn_devices_open(tn_run *run, const tn_device *first, tn_device **device) {
  tn_status status = tn_run_device(run, device);
  if (status != TN_OK) return tn_wrap(&run->env, status, "device %d", (int)run->rank);
  if ((*device)->backend == first->backend && (*device)->extension == first->extension) return TN_OK;
  return tn_failf(&run->env, TN_EUNAVAILABLE,
                  "device %d is one of backend '%s', but device 0 of '%s'; all must be of one backend",
                  (int)run->rank, (*device)->backend->item.name, first->backend->item.name);
}

/* A rank's part of a batch of all devices. */
tn_status tn_run_share(tn_run *run, int32_t split, int64_t *batch) {
  const char *own = split == TN_SPLIT_TRAIN ? "data.train" : "data.valid";
  tn_section *section = tn_ini_section(&run->ini, own);
  int64_t whole = run->settings.data[split].section.batch;
  int32_t n = tn_run_ranks(run);
  *batch = whole / n;
  if (whole % n == 0) return TN_OK;
  bool is_own = section && tn_section_key(section, "batch");
  return tn_failf(&run->env, TN_EINVAL,
                  "%s: [%s] batch = %lld cannot be divided among %d devices, expected a multiple of %d",
                  tn_settings_where(&run->ini, is_own ? own : "data", "batch"), is_own ? own : "data",
                  (long long)whole, (int)n, (int)n);
}

/* ---- who carries sums ---- */

static bool serves(const tn_run *run, const tn_communicator *kind, const tn_device *device, bool *yes) {
  tn_words families;
  tn_arena arena = tn_arena_new(&run->env);
  bool split = tn_words_split(&arena, kind->families, &families) == TN_OK;
  *yes = split && tn_words_hold(&families, device->backend->item.name);
  tn_arena_free(&arena);
  return split;
}

/* The first that serves the device; the names of all others go to `names`. */
static tn_status first_serving(tn_run *run, const tn_device *device, const tn_communicator **kind) {
  const tn_entry *entries = NULL;
  int32_t n = 0;
  *kind = NULL;
  TN_TRY(tn_registry_list(run->registry, &run->env, TN_COMMUNICATOR, &entries, &n));
  for (int32_t i = 0; i < n && !*kind; i++) {
    const tn_communicator *candidate = (const tn_communicator *)entries[i].item;
    bool yes = false;
    if (!serves(run, candidate, device, &yes)) return TN_ENOMEM;
    if (yes) *kind = candidate;
  }
  if (*kind) return TN_OK;
  return tn_failf(&run->env, TN_EUNAVAILABLE,
                  "%s: [distributed] devices = %s: no communicator that is installed serves devices of "
                  "backend '%s'; use one device, or name a plugin that has one in [plugins] load",
                  tn_settings_where(&run->ini, "distributed", "devices"), run->settings.distributed.devices,
                  device->backend->item.name);
}

static tn_status named(tn_run *run, const tn_device *device, const char *name, const tn_communicator **kind) {
  const tn_item *item = NULL;
  const char *where = tn_settings_where(&run->ini, "distributed", "communicator");
  tn_status status = tn_settings_find(&run->env, run->registry, TN_COMMUNICATOR, name, &item);
  if (status != TN_OK) return tn_wrap(&run->env, status, "%s: [distributed] communicator", where);
  bool yes = false;
  *kind = (const tn_communicator *)item;
  if (!serves(run, *kind, device, &yes)) return TN_ENOMEM;
  if (yes) return TN_OK;
  return tn_failf(&run->env, TN_EINVAL,
                  "%s: [distributed] communicator = %s serves devices of %s, not those of backend '%s'",
                  where, name, (*kind)->families, device->backend->item.name);
}

tn_status tn_devices_communicator(tn_run *run, const tn_device *device, const tn_communicator **kind,
                                  const void **options) {
  const char *name = run->settings.distributed.communicator;
  TN_TRY(*name ? named(run, device, name, kind) : first_serving(run, device, kind));
  return tn_settings_item(&run->env, &run->ini, "communicator", &(*kind)->item, options);
}

/* ---- equal plans ---- */

uint64_t tn_devices_plan_hash(const tn_program_set *set) {
  uint64_t hash = TN_HASH_START;
  for (int32_t i = 0; i < set->n; i++)
    hash = tn_hash_bytes(hash, &set->list[i]->hash, sizeof set->list[i]->hash);
  return hash;
}

/* A rank that has the right one goes on only if all have: it waits until the others have said so. */
static tn_status compare_hashes(tn_rank_set *ranks, tn_env *env, int32_t rank, const uint64_t *all) {
  bool equal = true;
  for (int32_t r = 1; r < tn_ranks_count(ranks); r++) equal = equal && all[r] == all[0];
  if (equal) return TN_OK;
  if (all[rank] == all[0]) return tn_ranks_gather(ranks, env, rank, NULL, 0, NULL);
  return tn_failf(env, TN_ECOMM,
                  "the plan of rank %d has hash %016" PRIx64 ", that of rank 0 %016" PRIx64
                  "; all ranks must have the same devices, plugins and configuration",
                  (int)rank, all[rank], all[0]);
}

tn_status tn_devices_compare_plans(tn_rank_set *ranks, tn_env *env, int32_t rank, uint64_t hash) {
  uint64_t *all = tn_alloc(env, tn_size_mul((size_t)tn_ranks_count(ranks), sizeof *all));
  if (!all) return TN_ENOMEM;
  tn_status status = tn_ranks_gather(ranks, env, rank, &hash, sizeof hash, all);
  if (status == TN_OK) status = compare_hashes(ranks, env, rank, all);
  tn_release(env, all);
  return status;
}

/* ---- what they hand over ---- */

static void add_traffic(const tn_program *program, int64_t times, tn_traffic *traffic) {
  for (int32_t i = 0; program && i < program->n_steps; i++) {
    if (!tn_kernel_is_collective(program->steps[i].group->kernel)) continue;
    traffic->collectives += times;
    traffic->bytes += times * (int64_t)tn_type_bytes(&program->steps[i].in[0].type);
  }
}

tn_traffic tn_devices_traffic(const tn_run *run, const tn_program_set *set) {
  tn_traffic traffic = {0, 0};
  int64_t micro_batches = run->settings.optimizer.accumulate;
  add_traffic(set->programs[TN_PROGRAM_WEIGH], micro_batches, &traffic);
  add_traffic(set->programs[TN_PROGRAM_MICRO], micro_batches - 1, &traffic);
  add_traffic(set->programs[TN_PROGRAM_STEP], 1, &traffic);
  return traffic;
}
