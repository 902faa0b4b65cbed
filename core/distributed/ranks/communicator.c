/* core/distributed/ranks/communicator.c: selects the communicator that sums values over devices. */
#include "core/base/text/text.h"
#include "core/distributed/ranks/devices.h"
#include "core/distributed/place/place.h"

static bool communicator_serves(const tn_run *run, const tn_communicator *kind, const tn_device *device,
                                bool *serves) {
  tn_words families;
  tn_arena arena = tn_arena_new(&run->env);
  bool split = tn_words_split(&arena, kind->families, &families) == TN_OK;
  *serves = split && tn_words_contain(&families, device->backend->item.name);
  tn_arena_free(&arena);
  return split;
}

static tn_comm_place communicator_place(const tn_run *run) {
  const tn_process_place *place = run->place;
  return (tn_comm_place){.struct_size = sizeof(tn_comm_place),
                         .rank = run->rank,
                         .ranks = tn_run_ranks(run),
                         .process = place != NULL ? place->process : 0,
                         .processes = place != NULL ? place->processes : 1,
                         .address = "",
                         .timeout_s = run->settings.distributed.timeout};
}

/* Whether a communicator serves the device's backend and suits the ranks. A reason against it is appended. */
static tn_status communicator_consider(tn_run *run, const tn_communicator *kind, const tn_device *device,
                                       tn_text *reasons, bool *serves) {
  const tn_comm_place place = communicator_place(run);
  const void *options = NULL;
  if (!communicator_serves(run, kind, device, serves)) return TN_ENOMEM;
  if (!*serves || kind->suits == NULL) return TN_OK;
  TN_TRY(tn_settings_item_options(&run->env, &run->ini, "communicator", &kind->item, &options));
  tn_status status = kind->suits(&run->env, options, &place);
  *serves = status == TN_OK;
  if (status != TN_EUNSUPPORTED) return status;
  tn_text_addf(reasons, "; communicator '%s' is not for these ranks: %s", kind->item.name,
               tn_error_text(&run->env));
  tn_error_clear(&run->env);
  return TN_OK;
}

static tn_status communicator_find(tn_run *run, const tn_device *device, tn_text *reasons,
                                   const tn_communicator **kind) {
  const tn_entry *entries = NULL;
  int32_t n = 0;
  *kind = NULL;
  TN_TRY(tn_registry_list(run->registry, &run->env, TN_COMMUNICATOR, &entries, &n));
  for (int32_t i = 0; i < n && *kind == NULL; i++) {
    const tn_communicator *candidate = (const tn_communicator *)entries[i].item;
    bool serves = false;
    TN_TRY(communicator_consider(run, candidate, device, reasons, &serves));
    if (serves) *kind = candidate;
  }
  return TN_OK;
}

/* The first communicator that serves the backend of the device. */
static tn_status communicator_find_first(tn_run *run, const tn_device *device, const tn_communicator **kind) {
  tn_text reasons = tn_text_new(&run->env);
  tn_status status = communicator_find(run, device, &reasons, kind);
  if (status == TN_OK && *kind == NULL)
    status =
        tn_failf(&run->env, TN_EUNAVAILABLE,
                 "%s: [distributed] devices = %s: no communicator that is installed serves devices of "
                 "backend '%s'; use one device, or name a plugin that has one in [plugins] load%s",
                 tn_settings_where(&run->ini, "distributed", "devices"), run->settings.distributed.devices,
                 device->backend->item.name, reasons.n > 0 && !reasons.failed ? reasons.v : "");
  tn_text_free(&reasons);
  return status;
}

static tn_status communicator_find_named(tn_run *run, const tn_device *device, const char *name,
                                         const tn_communicator **kind) {
  const tn_item *item = NULL;
  const char *where = tn_settings_where(&run->ini, "distributed", "communicator");
  tn_status status = tn_settings_find_item(&run->env, run->registry, TN_COMMUNICATOR, name, &item);
  if (status != TN_OK) return tn_wrap(&run->env, status, "%s: [distributed] communicator", where);
  bool serves = false;
  *kind = (const tn_communicator *)item;
  if (!communicator_serves(run, *kind, device, &serves)) return TN_ENOMEM;
  if (serves) return TN_OK;
  return tn_failf(&run->env, TN_EINVAL,
                  "%s: [distributed] communicator = %s serves devices of %s, not those of backend '%s'",
                  where, name, (*kind)->families, device->backend->item.name);
}

tn_status tn_devices_communicator(tn_run *run, const tn_device *device, const tn_communicator **kind,
                                  const void **options) {
  const char *name = run->settings.distributed.communicator;
  TN_TRY(*name ? communicator_find_named(run, device, name, kind)
               : communicator_find_first(run, device, kind));
  TN_TRY(tn_comm_check(&run->env, *kind));
  return tn_settings_item_options(&run->env, &run->ini, "communicator", &(*kind)->item, options);
}
