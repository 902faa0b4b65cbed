/* core/exec/device/device.c: opens a device, its streams and its fallback by the names in a configuration. */
#include "core/exec/device/device.h"

#include "core/base/file/unnamed_file.h"
#include "core/compile/kernels/answers.h"
#include "core/config/options/option_value.h"
#include "core/exec/device/open_backend.h"
#include "core/exec/device/pin_threads.h"
#include "core/exec/device/required_kernels.h"
#include "core/plugin/default_callbacks.h"

#include <string.h>

static bool is_option_given(const tn_options *options, const tn_option *option) {
  return options->given[option - options->item->options];
}

static const void *option_value(const tn_options *options, const tn_option *option) {
  return (const char *)options->data + option->offset;
}

/* [run] threads, unless the section of the backend sets it. */
static tn_status set_threads(tn_device *device, int64_t threads, tn_options *options) {
  const tn_option *option = tn_backend_option(options, "threads", TN_OPT_INT);
  if (threads == 0 || option == NULL || is_option_given(options, option)) return TN_OK;
  return tn_options_set_int(&device->env, options, "threads", threads);
}

/* [run] pin, unless the section of the backend sets it. The length of the list is the number of threads where
 * threads is unset. *pin is empty for a backend without both options. */
static tn_status set_pin(tn_device *device, const tn_device_request *request, tn_options *options,
                         tn_ints *pin) {
  const tn_option *option = tn_backend_option(options, "pin", TN_OPT_INTS);
  const tn_option *threads = tn_backend_option(options, "threads", TN_OPT_INT);
  *pin = (tn_ints){0, NULL};
  if (option == NULL || threads == NULL) return TN_OK;
  if (request->pin.n > 0 && !is_option_given(options, option))
    TN_TRY(tn_options_set_ints(&device->env, options, "pin", request->pin.n, request->pin.v));
  *pin = *(const tn_ints *)option_value(options, option);
  return set_threads(device, pin->n, options);
}

/* After the options are finished: the number of threads is known. */
static tn_status check_pin(tn_device *device, const tn_options *options, const tn_ints *pin) {
  const tn_option *threads = tn_backend_option(options, "threads", TN_OPT_INT);
  if (pin->n == 0) return TN_OK;
  return tn_pin_check(&device->env, pin, *(const int64_t *)option_value(options, threads));
}

/* The folder of a backend under the cache folder, unless its section sets it. The backend makes it when it
 * has something to store, and reads no file of another user there: it is not checked as a folder of code that
 * a configuration names. */
static tn_status set_cache(tn_device *device, const char *folder, tn_options *options) {
  const tn_option *option = tn_backend_option(options, "cache", TN_OPT_CODE);
  if (option == NULL) option = tn_backend_option(options, "cache", TN_OPT_TEXT);
  if (folder == NULL || *folder == '\0' || option == NULL || is_option_given(options, option)) return TN_OK;
  const tn_option_value own = {.text =
                                   tn_arena_printf(&device->memory, "%s/%s", folder, options->item->name)};
  if (own.text == NULL) return TN_ENOMEM;
  tn_option_store(option, options->data, &own);
  return TN_OK;
}

/* The options struct of a backend or an extension: defaults, then [backend.NAME], then the options of [run]
 * that the section does not set. */
static tn_status fill_backend_options(tn_device *device, const tn_device_request *request,
                                      const tn_backend *backend, const void **data) {
  tn_options options;
  tn_ints pin;
  tn_env *env = &device->env;
  TN_TRY(tn_options_start(env, &device->memory, &backend->item, &options));
  if (request->configure != NULL) TN_TRY(request->configure(env, request->context, &options));
  TN_TRY(set_threads(device, request->threads, &options));
  TN_TRY(set_pin(device, request, &options, &pin));
  TN_TRY(set_cache(device, request->cache, &options));
  TN_TRY(tn_backend_finish_options(env, &options));
  TN_TRY(check_pin(device, &options, &pin));
  if (backend->parallel != NULL) device->pin = pin;
  *data = options.data;
  return TN_OK;
}

static tn_status find_backend(tn_device *device, tn_registry *registry, const char *name,
                              const tn_backend **backend) {
  const tn_entry *entry;
  TN_TRY(tn_registry_find(registry, &device->env, TN_BACKEND, name, &entry));
  *backend = (const tn_backend *)entry->item;
  return TN_OK;
}

static tn_status open_backend(tn_device *device, const tn_device_request *request, const tn_backend *backend,
                              void **self, const char **libraries) {
  const void *options = NULL;
  TN_TRY(fill_backend_options(device, request, backend, &options));
  TN_TRY(backend->open(&device->env, options, self));
  *libraries = tn_backend_libraries(&device->env, backend, *self, &device->memory);
  return *libraries != NULL ? TN_OK : TN_ENOMEM;
}

tn_status tn_device_open_extension(tn_device *device, const tn_device_request *request,
                                   const tn_backend *extension) {
  device->extension = extension;
  return open_backend(device, request, extension, &device->extension_self, &device->extension_libraries);
}

tn_status tn_device_open_described(tn_device *device, const tn_device_request *request,
                                   const tn_backend *backend) {
  const void *options = NULL;
  if (backend->open_described == NULL) return TN_OK;
  TN_TRY(fill_backend_options(device, request, backend, &options));
  return backend->open_described(&device->env, options, &device->self);
}

/* The family of an extension must not be an extension itself, since that has no devices. */
static tn_status check_family(tn_device *device) {
  const tn_backend *b = device->backend;
  if (b->extends == NULL) return TN_OK;
  return tn_failf(&device->env, TN_EABI, "it extends '%s', which extends '%s': only a family can be extended",
                  b->item.name, b->extends);
}

static tn_status choose_device(tn_device *device, const tn_device_request *request, int32_t *chosen) {
  int32_t count = 0, index = request->index;
  TN_TRY(device->backend->count(&device->env, device->self, &count));
  device->count = count;
  if (request->choose != NULL) index = request->choose(request->context, count);
  *chosen = index;
  if (index >= 0 && index < count) return TN_OK;
  return tn_failf(&device->env, TN_EUNAVAILABLE, "device %d does not exist, expected an index below %d",
                  (int)index, (int)count);
}

/* Splits "cpu, other" into names at the end of the list. */
static tn_status add_accepted(tn_device *device, const char **families, int32_t *n) {
  if (device->backend->accepts == NULL) return TN_OK;
  char *rest = tn_arena_strdup(&device->memory, device->backend->accepts);
  if (rest == NULL) return TN_ENOMEM;
  for (char *name; (name = strsep(&rest, ",")) != NULL;) {
    name = tn_text_trim(name);
    if (name[0] != '\0') families[(*n)++] = name;
  }
  return TN_OK;
}

/* Kernels of another family dereference addresses. A backend whose addresses are not the host's translates
 * them in enqueue. */
static tn_status check_accepted(tn_device *device) {
  const tn_backend *b = device->backend;
  if (b->accepts == NULL || b->enqueue != NULL || device->target.properties.host_addressable) return TN_OK;
  return tn_failf(
      &device->env, TN_EABI,
      "it accepts kernels of '%s' and has no enqueue, so they are called with addresses of the device, but "
      "it is not host_addressable; define enqueue, which translates addresses, or leave accepts NULL",
      b->accepts);
}

/* Without memory of its own a device works in the host's. */
static tn_status check_host_memory(tn_device *device) {
  if (device->target.properties.host_addressable || !tn_backend_has_host_memory(device->backend))
    return TN_OK;
  return tn_failf(
      &device->env, TN_EABI,
      "its properties do not say host_addressable, and it has no memory_new; set host_addressable, "
      "or define memory_new, memory_delete, copy and fill_zero");
}

static tn_status describe_target(tn_device *device, int32_t index) {
  const tn_backend *b = device->backend;
  size_t commas = 0;
  for (const char *c = b->accepts; c != NULL && *c != '\0'; c++) commas += *c == ',';
  const char **families = tn_arena_alloc(&device->memory, (commas + 3) * sizeof(char *));
  void **selves = tn_arena_alloc(&device->memory, (commas + 3) * sizeof *selves);
  if (families == NULL || selves == NULL) return TN_ENOMEM;
  int32_t n = 0;
  if (device->extension != NULL) {
    selves[n] = device->extension_self;
    families[n++] = device->extension->item.name;
  }
  selves[n] = device->self;
  families[n++] = b->item.name;
  device->target.n_own = n;
  device->target.backend = b;
  device->target.self = device->self;
  device->index = index;
  TN_TRY(add_accepted(device, families, &n));
  device->target.families = families;
  device->target.selves = selves;
  device->target.n_families = n;
  TN_TRY(tn_backend_describe(&device->env, b, device->self, index, &device->target.properties));
  TN_TRY(check_host_memory(device));
  tn_properties_complete(&device->target.properties);
  TN_TRY(tn_answers_create(&device->env, &device->target.answers));
  return check_accepted(device);
}

static tn_status open_streams(tn_device *device) {
  for (int32_t role = 0; role < TN_STREAMS; role++)
    TN_TRY(device->backend->stream_new(&device->env, device->device, role, &device->streams[role]));
  return TN_OK;
}

static tn_status open_named(tn_device *device, tn_registry *registry, const tn_device_request *request,
                            const char *name) {
  const tn_backend *named;
  TN_TRY(find_backend(device, registry, name, &named));
  if (named->extends == NULL)
    device->backend = named;
  else
    TN_TRY(find_backend(device, registry, named->extends, &device->backend));
  TN_TRY(check_family(device));
  TN_TRY(open_backend(device, request, device->backend, &device->self, &device->libraries));
  if (named->extends != NULL) TN_TRY(tn_device_open_extension(device, request, named));
  device->uncaptured = request->uncaptured;
  if (request->offload_folder != NULL) {
    device->offload_folder = tn_arena_strdup(&device->memory, request->offload_folder);
    if (device->offload_folder == NULL) return TN_ENOMEM;
  }
  device->target.deterministic = request->deterministic;
  device->target.without = request->without;
  if (request->pin.n > 0 &&
      (device->backend->parallel == NULL || tn_options_find(&device->backend->item, "pin") == NULL))
    tn_logf(&device->env, TN_LOG_WARN, "[run] pin has no effect: backend '%s' has no option pin", name);
  int32_t index;
  TN_TRY(choose_device(device, request, &index));
  TN_TRY(describe_target(device, index));
  return tn_device_check_kernels(device, registry);
}

/* ---- the memory of the device ---- */

/* Some backends know the free memory only of an open device. Plans must fit into it. */
static tn_status read_free_bytes(tn_device *device) {
  const tn_backend *b = device->backend;
  int64_t free_bytes = 0, all = 0;
  device->used_bytes = -1;
  if (b->memory_info == NULL) return TN_OK;
  tn_status status = b->memory_info(&device->env, device->device, &free_bytes, &all);
  if (status == TN_EUNSUPPORTED) tn_error_clear(&device->env);
  if (status != TN_OK) return status == TN_EUNSUPPORTED ? TN_OK : status;
  device->used_bytes = all - free_bytes;
  device->target.properties.free_bytes = free_bytes;
  return TN_OK;
}

bool tn_device_library_at(tn_device *device, int32_t index, tn_backend_library *library) {
  const tn_backend *backend = device->extension != NULL ? device->extension : device->backend;
  void *self = device->extension != NULL ? device->extension_self : device->self;
  return self != NULL && tn_backend_library_at(&device->env, backend, self, index, library);
}

bool tn_device_read_memory_use(tn_device *device, tn_device_memory_use *use) {
  int64_t free_bytes = 0, all = 0;
  if (device->device == NULL || device->backend->memory_info == NULL || device->used_bytes < 0 ||
      tn_device_check_process(device) != TN_OK ||
      device->backend->memory_info(&device->env, device->device, &free_bytes, &all) != TN_OK)
    return false;
  *use = (tn_device_memory_use){.all = all,
                                .others = device->used_bytes,
                                .allocated = device->bytes - device->staging_bytes,
                                .free = free_bytes};
  use->libraries = all - free_bytes - use->others - use->allocated;
  return true;
}

tn_status tn_device_start(tn_device *device) {
  if (device->device != NULL) return TN_OK;
  TN_TRY(device->backend->device_open(&device->env, device->self, device->index, &device->device));
  TN_TRY(read_free_bytes(device));
  return open_streams(device);
}

/* The next backend is tried after these failures. A wrong option ends the search. */
static bool tries_next_backend(tn_status status) { return status == TN_EUNAVAILABLE || status == TN_EABI; }

static tn_status open_candidate(tn_env *env, tn_registry *registry, const tn_device_request *request,
                                const char *name, bool start, tn_device **out) {
  tn_device *device = tn_alloc(env, sizeof(*device));
  if (device == NULL) return TN_ENOMEM;
  tn_error_record_init(&device->env, &device->record, env);
  device->memory = tn_arena_new(&device->env);
  tn_device_own(device);
  tn_status status = open_named(device, registry, request, name);
  if (status == TN_OK && start) status = tn_device_start(device);
  if (status == TN_OK) {
    *out = device;
    return TN_OK;
  }
  tn_wrap(&device->env, status, "backend '%s'", name);
  tn_error_move(env, &device->env);
  tn_device_destroy(device);
  return status;
}

/* ---- fallback ---- */

/* A fallback is another family whose kernels read and write host memory. */
static bool is_fallback_for(const tn_device *device, const tn_device *other) {
  return other->backend != device->backend && other->target.properties.host_addressable;
}

static tn_status try_fallback(tn_env *env, tn_registry *registry, const tn_device_request *request,
                              const char *name, tn_device *device) {
  tn_device_request first = *request;
  tn_device *found = NULL;
  first.index = 0;
  first.pin = (tn_ints){0, NULL}; /* the list binds the threads of the device itself */
  tn_status status = open_candidate(env, registry, &first, name, false, &found);
  if (tries_next_backend(status)) {
    tn_logf(env, TN_LOG_DEBUG, "no fallback: %s", tn_error_text(env));
    return TN_OK;
  }
  TN_TRY(status);
  if (!is_fallback_for(device, found)) {
    tn_device_destroy(found);
    return TN_OK;
  }
  device->fallback = found;
  device->target.fallback = &found->target;
  device->target.fallback_refused = request->fallback == TN_FALLBACK_ERROR;
  return TN_OK;
}

tn_status tn_device_find_fallback(tn_env *env, tn_registry *registry, const tn_device_request *request,
                                  int32_t next, tn_device *device) {
  const char *reserve = request->reserve;
  if (request->fallback == TN_FALLBACK_NONE) return TN_OK;
  for (int32_t i = next; i < request->n_names && device->fallback == NULL; i++)
    TN_TRY(try_fallback(env, registry, request, request->names[i], device));
  if (device->fallback != NULL || tn_text_equal(device->backend->item.name, reserve)) return TN_OK;
  if (reserve == NULL || !tn_registry_has(registry, TN_BACKEND, reserve)) return TN_OK;
  return try_fallback(env, registry, request, reserve, device);
}

static tn_status keep_reasons(tn_device *device, const tn_text *reasons) {
  device->passed_over = tn_arena_strdup(&device->memory, reasons->v != NULL ? reasons->v : "");
  return device->passed_over != NULL ? TN_OK : TN_ENOMEM;
}

tn_status tn_device_create(tn_env *env, tn_registry *registry, const tn_device_request *request,
                           tn_device **device) {
  *device = NULL;
  tn_text reasons = tn_text_new(env);
  tn_status status = tn_failf(env, TN_EINVAL, "no backend is named; set [backend] use = auto");
  for (int32_t i = 0; i < request->n_names; i++) {
    status = open_candidate(env, registry, request, request->names[i], !request->closed, device);
    if (status == TN_OK) status = tn_device_find_fallback(env, registry, request, i + 1, *device);
    if (!tries_next_backend(status)) break;
    tn_text_addf(&reasons, "%s%s", i > 0 ? "; " : "", tn_error_text(env));
    if (i + 1 < request->n_names)
      tn_logf(env, request->automatic ? TN_LOG_INFO : TN_LOG_WARN, "%s; trying '%s'", tn_error_text(env),
              request->names[i + 1]);
  }
  if (tries_next_backend(status) && request->n_names > 1 && reasons.v != NULL)
    tn_failf(env, status, "none of the backends can be used: %s", reasons.v);
  if (status == TN_OK) status = keep_reasons(*device, &reasons);
  tn_text_free(&reasons);
  if (status == TN_OK) {
    tn_error_clear(env); /* the reasons are in the log */
    return TN_OK;
  }
  tn_device_destroy(*device);
  *device = NULL;
  return status;
}

void tn_device_destroy(tn_device *device) {
  if (device == NULL) return;
  (void)tn_device_check_process(device);
  tn_device_destroy(device->fallback);
  tn_device_destroy(device->rehearsed);
  if (device->close_tuner != NULL) device->close_tuner(device);
  tn_answers_destroy(device->target.answers);
  const tn_backend *b = device->backend, *extension = device->extension;
  for (int32_t role = 0; role < TN_STREAMS; role++)
    if (device->streams[role] != NULL) b->stream_delete(&device->env, device->streams[role]);
  if (device->device != NULL) b->device_close(&device->env, device->device);
  if (device->extension_self != NULL) extension->close(&device->env, device->extension_self);
  if (device->self != NULL) b->close(&device->env, device->self);
  tn_arena_free(&device->memory);
  tn_device_disown(device);
  /* device->env is in the block that is released, so a copy of it releases the block. */
  tn_error_record record = device->record;
  tn_env env = {device->env.api, &record};
  tn_release(&env, device);
}

tn_status tn_device_prepare(tn_device *device, const tn_kernel *kernel, const tn_match *match,
                            const tn_choice *choice, const tn_layout *in, const tn_layout *out, int32_t use,
                            void **prepared) {
  TN_TRY(tn_device_check_process(device));
  const tn_backend *backend = device->backend;
  void *stream = device->streams[TN_STREAM_COMPUTE];
  if (kernel->prepare == NULL || device->rehearsed != NULL) return TN_OK;
  tn_prepare p = {.env = device->env,
                  .struct_size = sizeof p,
                  .match = match,
                  .device = &device->target.properties,
                  .in_layout = in,
                  .out_layout = out,
                  .variant = choice->id,
                  .native = backend->native(&device->env, device->device, stream, kernel->family),
                  .backend = tn_target_self(&device->target, kernel->family),
                  .use = use};
  return kernel->prepare(&p, prepared);
}

tn_status tn_device_finish_prepare(tn_device *device, int32_t *declined) {
  const tn_backend *b = device->backend;
  *declined = -1;
  return b->finish_prepare != NULL ? b->finish_prepare(&device->env, device->device, declined) : TN_OK;
}

bool tn_device_is_foreign(const tn_device *device, const char *family) {
  const tn_backend *b = device->backend;
  if (b->enqueue == NULL || tn_text_equal(family, b->item.name)) return false;
  return device->extension == NULL || !tn_text_equal(family, device->extension->item.name);
}

void tn_device_count_memory(tn_device *device, int32_t kind, int64_t bytes) {
  device->bytes += bytes;
  if (kind == TN_MEMORY_STAGING) device->staging_bytes += bytes;
  if (device->bytes > device->peak_bytes) device->peak_bytes = device->bytes;
}

static tn_status device_new_memory(tn_device *device, int32_t kind, int64_t bytes, void **address) {
  *address = NULL;
  if (bytes == 0) return TN_OK;
  TN_TRY(tn_device_check_process(device));
  return device->backend->memory_new(&device->env, device->device, kind, (uint64_t)bytes, address);
}

static void device_delete_memory(tn_device *device, int32_t kind, void *address, int64_t bytes) {
  if (address == NULL) return;
  (void)tn_device_check_process(device);
  device->backend->memory_delete(&device->env, device->device, kind, address, (uint64_t)bytes);
}

tn_status tn_device_memory(tn_device *device, int32_t kind, int64_t bytes, void **address) {
  TN_TRY(device_new_memory(device, kind, bytes, address));
  tn_device_count_memory(device, kind, bytes);
  return TN_OK;
}

void tn_device_memory_free(tn_device *device, int32_t kind, void *address, int64_t bytes) {
  device_delete_memory(device, kind, address, bytes);
  if (address != NULL) tn_device_count_memory(device, kind, -bytes);
}

/* A rehearsal reads no values, and its memory costs address space alone. */
bool tn_device_offloads_to_file(const tn_device *device) {
  return device->offload_folder != NULL && device->rehearsed == NULL;
}

static tn_status device_new_file(tn_device *device, int64_t bytes, void **address) {
  tn_status status = tn_unnamed_file_map(&device->env, device->offload_folder, (size_t)bytes, address);
  return tn_wrap(&device->env, status, "[run] offload_folder");
}

tn_status tn_device_offload_memory(tn_device *device, int64_t bytes, void **address) {
  TN_TRY(tn_device_offloads_to_file(device) ? device_new_file(device, bytes, address)
                                            : device_new_memory(device, TN_MEMORY_STAGING, bytes, address));
  device->offload_bytes += bytes;
  return TN_OK;
}

void tn_device_offload_memory_free(tn_device *device, void *address, int64_t bytes) {
  if (tn_device_offloads_to_file(device))
    tn_unnamed_file_unmap(address, (size_t)bytes);
  else
    device_delete_memory(device, TN_MEMORY_STAGING, address, bytes);
  if (address != NULL) device->offload_bytes -= bytes;
}
