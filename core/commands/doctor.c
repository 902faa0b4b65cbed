/* core/commands/doctor.c: tn_doctor: the machine, the plugins, the backends with their libraries and
 * devices, the communicators, and the missing parts. */
#include <jansson.h>
#include <stdio.h>

#include "core/base/system/host.h"
#include "core/base/system/system.h"
#include "core/exec/device/device_file.h"
#include "core/exec/device/open_backend.h"
#include "core/plugin/context.h"
#include "core/run/result.h"
#include "tenon/inspect.h"
#include "tenon/plugin/backend.h"
#include "tenon/plugin/communicator.h"

static void doctor_list_libraries(tn_env *env, const tn_backend *backend, void *self, json_t *libraries) {
  tn_backend_library l;
  for (int32_t i = 0; tn_backend_library_at(env, backend, self, i, &l); i++)
    json_array_append_new(libraries, tn_json_library(&l));
}

/* The memory of a device is known when it is open: some of it is then taken by the device's context and by
 * handles of libraries. */
static tn_status doctor_read_memory(tn_env *env, const tn_backend *backend, void *self, int32_t index,
                                    json_t *memory) {
  int64_t free_bytes = 0, all = 0;
  void *device = NULL;
  TN_TRY(backend->device_open(env, self, index, &device));
  tn_status status = backend->memory_info(env, device, &free_bytes, &all);
  backend->device_close(env, device);
  if (status != TN_OK) return status;
  json_array_append_new(memory, json_pack("{s:i, s:f, s:f, s:f}", "device", (int)index, "device_mib",
                                          (double)all / 1048576.0, "taken_mib",
                                          (double)(all - free_bytes) / 1048576.0, "free_mib",
                                          (double)free_bytes / 1048576.0));
  return TN_OK;
}

static void doctor_list_memory(tn_env *env, const tn_backend *backend, void *self, int32_t count,
                               json_t *memory) {
  for (int32_t i = 0; backend->memory_info != NULL && i < count; i++) {
    tn_status status = doctor_read_memory(env, backend, self, i, memory);
    if (status == TN_OK) continue;
    if (status != TN_EUNSUPPORTED)
      json_array_append_new(
          memory, json_pack("{s:i, s:o}", "device", (int)i, "reason", tn_json_text(tn_error_text(env))));
    tn_error_clear(env);
  }
}

/* Fills in "devices" and "memory". */
static tn_status doctor_list_devices(tn_context *context, const tn_backend *backend, void *self,
                                     json_t *json) {
  tn_env *env = (tn_env *)context;
  json_t *devices = json_object_get(json, "devices");
  int32_t count = 0;
  TN_TRY(backend->count(env, self, &count));
  for (int32_t i = 0; i < count; i++) {
    tn_device_properties properties;
    TN_TRY(tn_backend_describe(env, backend, self, i, &properties));
    json_array_append_new(devices,
                          tn_device_file_json(backend->item.name, backend->accepts, count, &properties));
  }
  doctor_list_memory(env, backend, self, count, json_object_get(json, "memory"));
  return TN_OK;
}

static json_t *doctor_backend_json(tn_context *context, const tn_backend *backend) {
  tn_env *env = (tn_env *)context;
  json_t *json = json_pack("{s:s, s:s?, s:[], s:[], s:[]}", "name", backend->item.name, "extends",
                           backend->extends, "libraries", "devices", "memory");
  tn_arena arena = tn_arena_new(env);
  tn_options options;
  void *self = NULL;
  tn_status status = tn_options_start(env, &arena, &backend->item, &options);
  if (status == TN_OK) status = tn_backend_finish_options(env, &options);
  if (status == TN_OK) status = backend->open(env, options.data, &self);
  if (status == TN_OK) doctor_list_libraries(env, backend, self, json_object_get(json, "libraries"));
  if (status == TN_OK && backend->extends == NULL) status = doctor_list_devices(context, backend, self, json);
  if (status != TN_OK) json_object_set_new(json, "reason", tn_json_text(tn_error_text(env)));
  if (self) backend->close(env, self);
  tn_arena_free(&arena);
  return json;
}

/* ---- communicators ---- */

static json_t *doctor_communicator_json(tn_env *env, const tn_communicator *communicator) {
  json_t *json = json_pack("{s:s, s:[]}", "name", communicator->item.name, "libraries");
  tn_comm_library l = {.struct_size = sizeof l};
  tn_arena arena = tn_arena_new(env);
  tn_options options;
  tn_status status = tn_options_start(env, &arena, &communicator->item, &options);
  if (status == TN_OK) status = tn_options_finish(env, &options);
  if (status == TN_OK && communicator->library != NULL) status = communicator->library(env, options.data, &l);
  tn_backend_library of_it = {
      .name = l.name, .version = l.version, .path = l.path[0] != '\0' ? l.path : NULL};
  if (status == TN_OK && l.name[0] != '\0')
    json_array_append_new(json_object_get(json, "libraries"), tn_json_library(&of_it));
  if (status != TN_OK) json_object_set_new(json, "reason", tn_json_text(tn_error_text(env)));
  tn_error_clear(env);
  tn_arena_free(&arena);
  return json;
}

static tn_status doctor_list_communicators(tn_context *context, json_t *list) {
  const tn_entry *entries = NULL;
  int32_t n = 0;
  TN_TRY(tn_registry_list(context->registry, context, TN_COMMUNICATOR, &entries, &n));
  for (int32_t i = 0; i < n; i++)
    json_array_append_new(
        list, doctor_communicator_json((tn_env *)context, (const tn_communicator *)entries[i].item));
  return TN_OK;
}

/* ---- the machine and the plugins ---- */

static double doctor_mib(int64_t bytes) { return (double)bytes / 1048576.0; }

static json_t *doctor_machine_json(void) {
  char processor[TN_HOST_TEXT], instructions[TN_HOST_TEXT], system[TN_HOST_TEXT];
  tn_host_processor(processor);
  tn_host_instructions(TN_CPUINFO, instructions);
  tn_host_system(system);
  return json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:f, s:f}", "commit", tn_commit_text, "compiler",
                   tn_compiler_text, "system", system, "processor", processor, "instructions", instructions,
                   "processors", tn_cpu_count(), "memory_mib", doctor_mib(tn_memory_total()), "free_mib",
                   doctor_mib(tn_memory_available()));
}

static json_t *doctor_folders_json(const tn_registry *registry) {
  int32_t n = 0;
  const char *const *folders = tn_registry_folders(registry, &n);
  json_t *list = json_array();
  for (int32_t i = 0; i < n; i++) json_array_append_new(list, tn_json_text(folders[i]));
  return list;
}

/* All files are loaded by now, or refused. */
static json_t *doctor_plugins_json(const tn_registry *registry) {
  json_t *list = json_array();
  tn_registry_file f;
  for (int32_t i = 0; tn_registry_file_at(registry, i, &f); i++) {
    json_t *one = json_pack("{s:o, s:o, s:o}", "file", tn_json_text(f.path), "name",
                            tn_json_text_or_null(f.entry ? f.entry->plugin : NULL), "version",
                            tn_json_text_or_null(f.entry ? f.entry->version : NULL));
    if (one != NULL && f.refusal != NULL) json_object_set_new(one, "reason", tn_json_text(f.refusal));
    json_array_append_new(list, one);
  }
  return list;
}

/* ---- missing parts ---- */

static void doctor_add_missing(json_t *missing, const char *name, const char *reason) {
  json_array_append_new(missing, json_pack("{s:s, s:s}", "name", name, "reason", reason));
}

static void doctor_add_all_missing(json_t *missing, const json_t *list, const char *title) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *one = json_array_get(list, i), *reason = json_object_get(one, "reason");
    if (reason != NULL)
      doctor_add_missing(missing, json_string_value(json_object_get(one, title)), json_string_value(reason));
  }
}

/* Backends and communicators that cannot be used, plugins that cannot be loaded, and parts that the build has
 * left out; the reasons say how to get them. */
static json_t *doctor_missing_json(const json_t *backends, const json_t *communicators,
                                   const json_t *plugins) {
  json_t *missing = json_array();
  doctor_add_all_missing(missing, backends, "name");
  doctor_add_all_missing(missing, communicators, "name");
  doctor_add_all_missing(missing, plugins, "file");
  for (const tn_left_out *part = tn_left_out_parts; part->name != NULL; part++)
    doctor_add_missing(missing, part->name, part->reason);
  return missing;
}

/* ---- the whole ---- */

static tn_status doctor_list_all_plugins(tn_context *context) {
  const tn_entry *entries = NULL;
  int32_t n = 0;
  for (uint32_t kind = 1; kind < TN_KINDS; kind++)
    TN_TRY(tn_registry_list(context->registry, context, kind, &entries, &n));
  return TN_OK;
}

tn_status tn_doctor(tn_context *context, char **json) {
  TN_ENTER(context);
  TN_NEED(context, json, "json");
  const tn_entry *entries = NULL;
  int32_t n = 0;
  char abi[32];
  *json = NULL;
  TN_TRY(doctor_list_all_plugins(context));
  TN_TRY(tn_registry_list(context->registry, context, TN_BACKEND, &entries, &n));
  json_t *backends = json_array(), *communicators = json_array(),
         *plugins = doctor_plugins_json(context->registry);
  for (int32_t i = 0; i < n; i++)
    json_array_append_new(backends, doctor_backend_json(context, (const tn_backend *)entries[i].item));
  tn_status status = doctor_list_communicators(context, communicators);
  snprintf(abi, sizeof abi, "%d.%d", TN_ABI_MAJOR, TN_ABI_MINOR);
  json_t *missing = doctor_missing_json(backends, communicators, plugins);
  json_t *all = json_pack("{s:s, s:s}", "version", tn_version(), "abi", abi),
         *machine = doctor_machine_json();
  if (all != NULL) json_object_update(all, machine);
  json_decref(machine);
  json_object_set_new(all, "folders", doctor_folders_json(context->registry));
  json_object_set_new(all, "plugins", plugins);
  json_object_set_new(all, "backends", backends);
  json_object_set_new(all, "communicators", communicators);
  json_object_set_new(all, "missing", missing);
  if (status == TN_OK) return tn_json_take(context, all, json);
  json_decref(all);
  return status;
}
