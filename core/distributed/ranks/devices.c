/* core/distributed/ranks/devices.c: opens the devices of a run, and divides the batch among them. */
#include "core/distributed/ranks/devices.h"

#include <string.h>
#include <unistd.h>

#include "core/base/system/system.h"
#include "core/compile/kernels/answers.h"
#include "core/exec/device/auto_backend.h"
#include "core/exec/tune/measure.h"
#include "core/distributed/place/place.h"

/* ---- opening ---- */

/* Fills a backend's options from [backend.NAME]. */
static tn_status devices_configure_backend(tn_env *env, void *context, tn_options *options) {
  tn_run *run = context;
  const char *name = tn_arena_printf(&run->arena, "backend.%s", options->item->name);
  if (name == NULL) return TN_ENOMEM;
  TN_TRY(tn_section_fill(env, &run->ini, tn_ini_section(&run->ini, name), &options, 1));
  return tn_ini_tell(env, &run->ini);
}

/* Checks [backend.NAME] of all backends in [backend] use before any of them is opened. */
static tn_status devices_check_backend_sections(tn_run *run, const tn_words *names) {
  for (int32_t i = 0; i < names->n; i++) {
    const tn_item *item = NULL;
    const void *options;
    const char *section = tn_arena_printf(&run->arena, "backend.%s", names->v[i]);
    if (section == NULL) return TN_ENOMEM;
    if (tn_ini_section(&run->ini, section) == NULL ||
        !tn_registry_has(run->registry, TN_BACKEND, names->v[i]))
      continue;
    TN_TRY(tn_settings_find_item(&run->env, run->registry, TN_BACKEND, names->v[i], &item));
    TN_TRY(tn_settings_item_options(&run->env, &run->ini, "backend", item, &options));
  }
  return TN_OK;
}

/* While planning, the tuner uses earlier measurements and makes no new ones. A device that a file describes
 * has none: its libraries are unknown. Deterministic runs measure nothing, since measurements vary. */
static tn_status devices_open_tuner(tn_run *run, tn_device *device, const char *folder) {
  const tn_backend_section *s = &run->settings.backend;
  bool described = device->libraries == NULL || device->rehearsed != NULL;
  if (s->autotune == TN_AUTOTUNE_NO || described || run->settings.run.deterministic) return TN_OK;
  return tn_tune_open(device, folder, s->autotune == TN_AUTOTUNE_YES && !run->planning);
}

/* [backend] tune_folder, or else the user's cache folder; "": neither is known. */
static tn_status devices_cache_folder(tn_run *run, const char **folder) {
  *folder = run->settings.backend.tune_folder;
  if (**folder != '\0') return TN_OK;
  char *of_user = tn_tune_folder(&run->env);
  if (of_user == NULL) return TN_OK;
  *folder = tn_arena_strdup(&run->arena, of_user);
  tn_release(&run->env, of_user);
  return *folder != NULL ? TN_OK : TN_ENOMEM;
}

/* Destroys the device if its tuner cannot be opened. */
static tn_status devices_add_tuner(tn_run *run, const char *folder, tn_device **device) {
  tn_status status = devices_open_tuner(run, *device, folder);
  if (status == TN_OK) return TN_OK;
  tn_error_move(&run->env, &(*device)->env);
  tn_device_destroy(*device);
  *device = NULL;
  return status;
}

/* Whether a launcher or the user has bound this process to some of the processors. */
static bool devices_process_is_bound(void) {
  tn_processors allowed;
  return tn_processors_allowed(&allowed) && allowed.n < sysconf(_SC_NPROCESSORS_ONLN);
}

/* The processes of a host share its processors: each gets as many, and other ones. */
static void devices_share_processors(const tn_run *run, int64_t *threads, tn_ints *processors) {
  if (run->place == NULL || run->place->locals == 1 || devices_process_is_bound()) return;
  int64_t n = tn_cpu_count() / run->place->locals;
  if (*threads == 0) *threads = n > 0 ? n : 1;
  bool fit = run->settings.pin.how == TN_PIN_YES && *threads * run->place->locals <= processors->n;
  if (!fit) return;
  processors->v += *threads * run->place->local;
  processors->n = *threads;
}

/* Called before the backends are opened, since their libraries may bind the calling thread. */
static tn_status devices_resolve_pin(tn_run *run, int64_t *threads, tn_ints *processors) {
  const tn_settings *s = &run->settings;
  int64_t all = *threads = s->run.threads;
  tn_status status = tn_pin_resolve(&run->env, &run->arena, &s->pin, &all, processors);
  if (status == TN_OK) devices_share_processors(run, threads, processors);
  if (status == TN_OK && *threads == 0) *threads = all;
  return tn_wrap(&run->env, status, "%s: [run] pin", tn_settings_where(&run->ini, "run", "pin"));
}

static tn_status devices_wrap_key(tn_run *run, tn_status status, const char *section, const char *key) {
  return tn_wrap(&run->env, status, "%s: [%s] %s", tn_settings_where(&run->ini, section, key), section, key);
}

static bool devices_has_key(tn_run *run, const char *name, const char *key) {
  tn_section *section = tn_ini_section(&run->ini, name);
  return section != NULL && tn_section_key(section, key) != NULL;
}

/* ---- how many, and which ---- */

static tn_status devices_parse_count(tn_run *run, int64_t *n) {
  const char *text = run->settings.distributed.devices;
  if (tn_text_to_int(text, n) && *n >= 1 && *n <= INT32_MAX) return TN_OK;
  return tn_failf(&run->env, TN_EINVAL, "%s: [distributed] devices = %s, expected a number from 1 on, or all",
                  tn_settings_where(&run->ini, "distributed", "devices"), text);
}

static int32_t devices_processes(const tn_run *run) { return run->place != NULL ? run->place->locals : 1; }

/* The number of devices of this process, of `count` that it sees; 0: `all` of too few. One device is shared
 * by the processes of a host, since it is the host itself, or the one that the launcher has left visible. */
static tn_status devices_of_process(tn_run *run, int32_t count, int64_t *n) {
  *n = count == 1 ? 1 : count / devices_processes(run);
  return tn_text_equal(run->settings.distributed.devices, "all") ? TN_OK : devices_parse_count(run, n);
}

/* Processes of a host take different devices where it has enough of them. Where it has not, each sees its own
 * alone. tn_devices_count reports mistakes. */
static int32_t devices_choose(void *context, int32_t count) {
  tn_run *run = context;
  int64_t n = 1;
  bool known = devices_of_process(run, count, &n) == TN_OK;
  bool enough = known && run->place != NULL && n * devices_processes(run) <= count;
  return run->local + (enough ? (int32_t)n * run->place->local : 0);
}

/* The kernels that [backend] without names, of any backend: a comparison of two backends leaves out one's. */
static tn_status devices_read_without(tn_run *run, tn_words *without) {
  TN_TRY(tn_words_split(&run->arena, run->settings.backend.without, without));
  for (int32_t i = 0; i < without->n; i++) {
    const tn_item *kernel = NULL;
    tn_status status = tn_settings_find_item(&run->env, run->registry, TN_KERNEL, without->v[i], &kernel);
    if (status != TN_OK) return devices_wrap_key(run, status, "backend", "without");
  }
  return TN_OK;
}

/* Puts the location of the option that the backend named in front of the message: a key of [backend.NAME] or
 * [run], or else [backend] use. */
static tn_status devices_locate_failure(tn_run *run, const tn_words *names, tn_status status) {
  const char *option = tn_arena_strdup(&run->arena, run->record.option);
  for (int32_t i = 0; option != NULL && *option != '\0' && i < names->n; i++) {
    const char *section = tn_arena_printf(&run->arena, "backend.%s", names->v[i]);
    if (section != NULL && devices_has_key(run, section, option))
      return devices_wrap_key(run, status, section, option);
  }
  if (option != NULL && *option != '\0' && devices_has_key(run, "run", option))
    return devices_wrap_key(run, status, "run", option);
  return devices_has_key(run, "backend", "use") ? devices_wrap_key(run, status, "backend", "use") : status;
}

tn_status tn_run_open_device(tn_run *run, tn_device **device) {
  tn_backend_names use;
  int64_t threads = 0;
  tn_ints pin;
  const char *folder = NULL;
  tn_words without;
  run->ini.mistakes.n = 0; /* those that an earlier call of the run has told are looked for anew */
  TN_TRY(devices_resolve_pin(run, &threads, &pin));
  tn_status status =
      tn_backend_names_read(&run->env, run->registry, &run->arena, run->settings.backend.use, &use);
  if (status != TN_OK) return devices_wrap_key(run, status, "backend", "use");
  TN_TRY(devices_check_backend_sections(run, &use.words));
  TN_TRY(devices_cache_folder(run, &folder));
  TN_TRY(devices_read_without(run, &without));
  bool to_file = run->settings.run.offload_folder[0] != '\0'; /* whose pages no capture can copy */
  tn_device_request request = {.names = use.words.v,
                               .n_names = use.words.n,
                               .automatic = use.automatic,
                               .choose = devices_choose,
                               .threads = (int32_t)threads,
                               .pin = pin,
                               .cache = folder,
                               .configure = devices_configure_backend,
                               .context = run,
                               .uncaptured = !run->settings.backend.capture || to_file,
                               .offload_folder = to_file ? run->settings.run.offload_folder : NULL,
                               .fallback = run->settings.backend.fallback + 1,
                               .reserve = TN_DEFAULT_FALLBACK,
                               .closed = run->planning,
                               .without = without,
                               .deterministic = run->settings.run.deterministic != 0};
  if (run->device_file != NULL) {
    TN_TRY((run->planning ? tn_device_from_file : tn_device_rehearse)(&run->env, run->registry, &request,
                                                                      run->device_file, device));
    return devices_add_tuner(run, request.cache, device);
  }
  status = tn_device_create(&run->env, run->registry, &request, device);
  if (status == TN_OK) status = devices_add_tuner(run, request.cache, device);
  return status == TN_OK ? TN_OK : devices_locate_failure(run, &use.words, status);
}

tn_status tn_devices_count(tn_run *run, const tn_device *device) {
  int64_t n = 1;
  const char *where = tn_settings_where(&run->ini, "distributed", "devices"),
             *backend = device->backend->item.name;
  TN_TRY(devices_of_process(run, device->count, &n));
  if (n == 0)
    return tn_failf(
        &run->env, TN_EUNAVAILABLE,
        "%s: [distributed] devices = all, but %d processes of this host see %d devices of backend '%s'; "
        "start fewer processes, or give the number of devices of each",
        where, (int)devices_processes(run), (int)device->count, backend);
  if (n > 1 && n > device->count)
    return tn_failf(&run->env, TN_EUNAVAILABLE,
                    "%s: [distributed] devices = %lld, but backend '%s' has %d; ask for fewer, or for all",
                    where, (long long)n, backend, (int)device->count);
  run->locals = run->ranks = (int32_t)n;
  return TN_OK;
}

/* Without a launcher that says more, all ranks are on one host. */
void tn_devices_connect(const tn_run *run, tn_device *device) {
  tn_interconnect *c = &device->target.interconnect;
  int32_t asked = (int32_t)run->settings.distributed.host_ranks;
  int32_t there = run->place != NULL ? run->locals * run->place->locals : tn_run_ranks(run);
  *c = run->settings.interconnect;
  c->ranks = tn_run_ranks(run);
  c->host_ranks = asked > 0 ? asked : there;
}

tn_status tn_devices_open(tn_run *run, tn_device *first, tn_device **device) {
  tn_status status = tn_run_open_device(run, device);
  if (status != TN_OK) return tn_wrap(&run->env, status, "device %d", (int)run->local);
  tn_tune_copy(*device, first);
  TN_TRY(tn_answers_copy_declines(&(*device)->target, &first->target));
  if ((*device)->backend == first->backend && (*device)->extension == first->extension) return TN_OK;
  return tn_failf(&run->env, TN_EUNAVAILABLE,
                  "device %d is one of backend '%s', but device 0 of '%s'; all must be of one backend",
                  (int)run->local, (*device)->backend->item.name, first->backend->item.name);
}

tn_status tn_run_rank_batch(tn_run *run, int32_t split, int64_t *batch) {
  const char *own = split == TN_SPLIT_TRAIN ? "data.train" : "data.valid";
  tn_section *section = tn_ini_section(&run->ini, own);
  int64_t batch_of_all = run->settings.data[split].section.batch;
  int32_t n = tn_run_ranks(run);
  *batch = batch_of_all / n;
  if (batch_of_all % n == 0) return TN_OK;
  bool is_own = section && tn_section_key(section, "batch");
  return tn_failf(&run->env, TN_EINVAL,
                  "%s: [%s] batch = %lld cannot be divided among %d devices, expected a multiple of %d",
                  tn_settings_where(&run->ini, is_own ? own : "data", "batch"), is_own ? own : "data",
                  (long long)batch_of_all, (int)n, (int)n);
}
