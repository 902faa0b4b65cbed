/* core/exec/device/absent_device.c: a device that a file describes. It has kernels and properties, so
 * programs can be compiled for it; of its backend there is at most an object for queries. */
#include "core/exec/device/device.h"

#include <string.h>

#include "core/base/text/word_list.h"
#include "core/compile/kernels/answers.h"
#include "core/exec/device/device_file.h"

/* Appends the names of a comma-separated list. */
static tn_status absent_add_names(tn_arena *arena, const char *list, tn_words *names) {
  tn_words more;
  if (list == NULL) return TN_OK;
  TN_TRY(tn_words_split(arena, list, &more));
  const char **all = tn_arena_alloc(arena, ((size_t)names->n + (size_t)more.n) * sizeof *all);
  if (all == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < names->n + more.n; i++) all[i] = i < names->n ? names->v[i] : more.v[i - names->n];
  *names = (tn_words){.v = all, .n = names->n + more.n};
  return TN_OK;
}

/* An extension has no devices, so it can be open where the device is not. */
static tn_status absent_open_extension(tn_device *device, tn_registry *registry,
                                       const tn_device_request *request, const tn_device_file *file) {
  const tn_entry *entry = NULL;
  if (file->extension == NULL) return TN_OK;
  if (!tn_registry_has(registry, TN_BACKEND, file->extension))
    return tn_device_file_fail(&device->env, file, "extension", "backend '%s' is not installed",
                               file->extension);
  TN_TRY(tn_registry_find(registry, &device->env, TN_BACKEND, file->extension, &entry));
  const tn_backend *extension = (const tn_backend *)entry->item;
  if (extension->extends == NULL || !tn_text_equal(extension->extends, file->family))
    return tn_device_file_fail(&device->env, file, "extension", "backend '%s' does not extend '%s'",
                               file->extension, file->family);
  return tn_device_open_extension(device, request, extension);
}

/* The families in the order of device.c: the extension, the family, those that it accepts. */
static tn_status absent_list_families(tn_device *device, tn_registry *registry, const tn_device_file *file) {
  tn_arena *arena = &device->memory;
  const char *accepts = file->accepts;
  const tn_entry *entry = NULL;
  tn_words names = {0};
  TN_TRY(absent_add_names(arena, file->extension, &names));
  TN_TRY(absent_add_names(arena, file->family, &names));
  device->target.n_own = names.n;
  if (accepts == NULL && tn_registry_has(registry, TN_BACKEND, file->family)) {
    TN_TRY(tn_registry_find(registry, &device->env, TN_BACKEND, file->family, &entry));
    accepts = ((const tn_backend *)entry->item)->accepts;
  }
  TN_TRY(absent_add_names(arena, accepts, &names));
  device->target.families = names.v;
  device->target.n_families = names.n;
  void **selves = tn_arena_alloc(arena, (size_t)names.n * sizeof *selves);
  if (selves == NULL) return TN_ENOMEM;
  selves[0] = device->extension_self;
  selves[device->target.n_own - 1] = device->self; /* NULL where no backend answers queries */
  device->target.selves = selves;
  return TN_OK;
}

static tn_status absent_check_kernels(tn_device *device, tn_registry *registry, const tn_device_file *file) {
  const tn_entry *entries = NULL;
  int32_t n = 0;
  TN_TRY(tn_registry_list(registry, &device->env, TN_KERNEL, &entries, &n));
  for (int32_t i = 0; i < n; i++)
    for (int32_t k = 0; k < device->target.n_families; k++)
      if (tn_text_equal(((const tn_kernel *)entries[i].item)->family, device->target.families[k]))
        return TN_OK;
  return tn_device_file_fail(
      &device->env, file, "family",
      "no kernel of family '%s' is installed: install its plugin, or set \"accepts\" to "
      "families whose kernels stand for its own (\"cpu\")",
      file->family);
}

/* The backend that stands for the family: a name, and what concerns the object for queries. */
static tn_status absent_open_backend(tn_device *device, tn_registry *registry,
                                     const tn_device_request *request, const tn_device_file *file) {
  const tn_entry *entry = NULL;
  tn_backend *backend = tn_arena_alloc(&device->memory, sizeof *backend);
  if (backend == NULL) return TN_ENOMEM;
  backend->item = (tn_item)TN_ITEM_PLAIN(tn_backend, TN_BACKEND, file->family, "described by a file");
  device->backend = backend;
  if (!tn_registry_has(registry, TN_BACKEND, file->family)) return TN_OK;
  TN_TRY(tn_registry_find(registry, &device->env, TN_BACKEND, file->family, &entry));
  const tn_backend *installed = (const tn_backend *)entry->item;
  backend->close = installed->close;
  TN_TRY(tn_device_open_described(device, request, installed));
  if (device->self != NULL) backend->better_policy = installed->better_policy;
  return TN_OK;
}

/* The host of the device, on which its fallback runs: its processors keep up with its memory in pointwise ops. */
static void absent_describe_host(tn_device *device, const tn_device_file *file) {
  enum { FLOPS_OF_A_BYTE = 16 };
  if (device->fallback == NULL || !(file->host_bytes_per_s > 0)) return;
  tn_device_properties *host = &device->fallback->target.properties;
  host->bytes_per_s = file->host_bytes_per_s;
  if (host->vector_flops_per_s < FLOPS_OF_A_BYTE * host->bytes_per_s)
    host->vector_flops_per_s = FLOPS_OF_A_BYTE * host->bytes_per_s;
}

static tn_status absent_describe(tn_device *device, tn_registry *registry, const tn_device_request *request,
                                 const char *path, tn_device_file *file) {
  TN_TRY(tn_device_file_read(&device->env, &device->memory, path, file));
  TN_TRY(absent_open_backend(device, registry, request, file));
  TN_TRY(absent_open_extension(device, registry, request, file));
  TN_TRY(absent_list_families(device, registry, file));
  TN_TRY(absent_check_kernels(device, registry, file));
  device->count = file->count;
  device->target.properties = file->properties;
  device->target.deterministic = request->deterministic;
  device->target.without = request->without;
  tn_properties_complete(&device->target.properties);
  return tn_answers_create(&device->env, &device->target.answers);
}

tn_status tn_device_from_file(tn_env *env, tn_registry *registry, const tn_device_request *request,
                              const char *path, tn_device **out) {
  *out = NULL;
  tn_device *device = tn_alloc(env, sizeof *device);
  if (device == NULL) return TN_ENOMEM;
  tn_error_record_init(&device->env, &device->record, env);
  device->memory = tn_arena_new(&device->env);
  tn_device_own(device);
  tn_device_file file = {.path = path};
  tn_status status = absent_describe(device, registry, request, path, &file);
  if (status == TN_OK) status = tn_device_find_fallback(env, registry, request, request->n_names, device);
  if (status == TN_OK) {
    absent_describe_host(device, &file);
    *out = device;
    return TN_OK;
  }
  if (tn_error_text(&device->env)[0] != '\0') tn_error_move(env, &device->env);
  tn_device_destroy(device);
  return status;
}
