/* core/tensor/device.c: opens, describes and closes devices of an application. */
#include <string.h>

#include "core/exec/device/auto_backend.h"
#include "core/tensor/tensor.h"

/* ---- options ---- */

/* "threads = 2; name = x" */
typedef struct device_option {
  const char *name, *value;
  bool known; /* to the backend or its family */
} device_option;

typedef struct device_options {
  device_option *v;
  size_t n;
} device_options;

static tn_status split_option(const void *handle, char *text, device_option *p) {
  char *equals = strchr(text, '=');
  if (equals == NULL)
    return tn_failf(handle, TN_EINVAL, "device option '%s': expected NAME = VALUE, separated by ';'", text);
  *equals = '\0';
  *p = (device_option){tn_text_trim(text), tn_text_trim(equals + 1), false};
  return TN_OK;
}

static tn_status split_options(tn_arena *arena, const char *text, device_options *list) {
  char *rest = tn_arena_strdup(arena, text);
  size_t most = 1;
  for (const char *c = text; *c != '\0'; c++) most += *c == ';' || *c == '\n';
  list->v = tn_arena_alloc(arena, most * sizeof *list->v);
  if (rest == NULL || list->v == NULL) return TN_ENOMEM;
  for (char *part; (part = strsep(&rest, ";\n")) != NULL;) {
    part = tn_text_trim(part);
    if (part[0] != '\0') TN_TRY(split_option(arena->handle, part, &list->v[list->n++]));
  }
  return TN_OK;
}

/* An option that both an extension and its family have is set for both. */
static tn_status set_device_options(tn_env *env, void *context, tn_options *options) {
  device_options *list = context;
  for (size_t i = 0; i < list->n; i++) {
    if (tn_options_find(options->item, list->v[i].name) == NULL) continue;
    list->v[i].known = true;
    TN_TRY(tn_options_set_text(env, options, list->v[i].name, list->v[i].value));
  }
  return TN_OK;
}

/* An unknown option fails with the message of the named backend. */
static tn_status check_known(tn_device *device, const device_options *list) {
  const tn_backend *b = device->extension != NULL ? device->extension : device->backend;
  for (size_t i = 0; i < list->n; i++) {
    tn_options options;
    if (list->v[i].known) continue;
    TN_TRY(tn_options_start(&device->env, &device->memory, &b->item, &options));
    TN_TRY(tn_options_set_text(&device->env, &options, list->v[i].name, list->v[i].value));
  }
  return TN_OK;
}

/* ---- life ---- */

static tn_status start_use(tn_device *device, tn_context *context, int32_t index) {
  tn_device_use *use = tn_arena_alloc(&device->memory, sizeof *use);
  if (use == NULL) return TN_ENOMEM;
  device->use = use;
  use->context = context;
  use->index = index;
  use->users = 1;
  use->backend = tn_arena_strdup(&device->memory, tn_device_name(device));
  if (use->backend == NULL) return TN_ENOMEM;
  return tn_context_ops(context, &use->ops);
}

static tn_status open_and_check(tn_context *context, const tn_device_request *request,
                                const device_options *list, tn_device **device) {
  TN_TRY(tn_device_create(&context->env, context->registry, request, device));
  const char *name = tn_device_name(*device);
  tn_status status = check_known(*device, list);
  if (status == TN_OK) status = start_use(*device, context, request->index);
  if (status == TN_OK) return TN_OK;
  if (tn_error_text(&(*device)->env)[0] != '\0') tn_error_move(context, &(*device)->env);
  tn_device_destroy(*device);
  *device = NULL;
  return tn_wrap(context, status, "backend '%s'", name);
}

tn_status tn_device_open(tn_context *context, const char *backend, int32_t index, const char *options,
                         tn_device **device) {
  TN_ENTER(context);
  TN_NEED(context, device, "device");
  tn_arena arena = tn_arena_new(context);
  device_options list = {0};
  *device = NULL;
  tn_status status = split_options(&arena, options != NULL ? options : "", &list);
  tn_backend_names use = {{NULL, 0}, false};
  if (status == TN_OK)
    status = tn_backend_names_read(&context->env, context->registry, &arena,
                                   backend != NULL ? backend : "auto", &use);
  tn_device_request request = {.names = use.words.v,
                               .n_names = use.words.n,
                               .automatic = use.automatic,
                               .index = index,
                               .configure = set_device_options,
                               .context = &list};
  if (status == TN_OK) status = open_and_check(context, &request, &list, device);
  tn_arena_free(&arena);
  return status;
}

void tn_device_retain(tn_device *device) { device->use->users++; }

void tn_device_release(tn_device *device) {
  if (--device->use->users > 0) return;
  tn_call_cache_clear(device);
  tn_vec_free(&device->env, &device->use->cache.calls);
  tn_device_destroy(device);
}

void tn_device_close(tn_device *device) {
  if (device == NULL) return;
  TN_THREAD_STATE;
  tn_device_wait(device);
  tn_device_release(device);
}

tn_status tn_device_wait(tn_device *device) {
  if (device == NULL) return TN_EINVAL;
  TN_THREAD_STATE;
  device->use->busy = false;
  TN_TRY(tn_device_check_process(device));
  return device->backend->stream_wait(&device->env, tn_device_stream(device));
}

tn_status tn_device_copy(tn_device *device, int32_t direction, void *to, const void *from, int64_t bytes) {
  device->use->busy = true;
  TN_TRY(tn_device_check_process(device));
  return device->backend->copy(&device->env, tn_device_stream(device), direction, to, from, (uint64_t)bytes);
}

/* ---- description ---- */

tn_status tn_device_describe(tn_device *device, tn_device_info *info) {
  TN_ENTER(device);
  TN_NEED(device, info, "info");
  const tn_device_use *use = device->use;
  const tn_device_properties *p = &device->target.properties;
  uint32_t room = info->struct_size;
  tn_device_info all = {.struct_size = room,
                        .index = use->index,
                        .backend = use->backend,
                        .name = p->name,
                        .host_addressable = p->host_addressable != 0,
                        .threads = p->threads,
                        .memory_bytes = p->memory_bytes,
                        .bytes = device->bytes,
                        .peak_bytes = device->peak_bytes,
                        .programs = (int64_t)use->cache.calls.n,
                        .compiled = use->cache.compiled};
  if (room < offsetof(tn_device_info, index))
    return tn_failf(device, TN_EINVAL, "tn_device_info.struct_size is %u; set it to sizeof(tn_device_info)",
                    room);
  memcpy(info, &all, room < sizeof all ? room : sizeof all);
  return TN_OK;
}

void tn_device_trim(tn_device *device) {
  TN_THREAD_STATE;
  if (device != NULL) tn_call_cache_clear(device);
}
