/* core/exec/device/open_backend.c: the processors and the memory of the host, for backends that use them. */
#include "core/exec/device/open_backend.h"

#include "core/base/system/system.h"

const tn_option *tn_backend_option(const tn_options *options, const char *name, uint32_t type) {
  const tn_option *option = tn_options_find(options->item, name);
  return option != NULL && option->type == type ? option : NULL;
}

tn_status tn_backend_finish_options(tn_env *env, tn_options *options) {
  const tn_option *option = tn_backend_option(options, "threads", TN_OPT_INT);
  int64_t *threads = option != NULL ? (int64_t *)((char *)options->data + option->offset) : NULL;
  if (threads != NULL && *threads == 0) {
    int64_t count = tn_cpu_count();
    while (count > 0 && !tn_option_allows(option, count)) count--;
    *threads = count;
  }
  return tn_options_finish(env, options);
}

tn_status tn_backend_describe(tn_env *env, const tn_backend *backend, void *self, int32_t index,
                              tn_device_properties *properties) {
  *properties = (tn_device_properties){.struct_size = sizeof *properties};
  TN_TRY(backend->properties(env, self, index, properties));
  properties->struct_size = sizeof *properties; /* the backend's may be smaller */
  if (properties->memory_bytes > 0) return TN_OK;
  properties->memory_bytes = tn_memory_total();
  properties->free_bytes = tn_memory_available();
  return TN_OK;
}

bool tn_backend_library_at(tn_env *env, const tn_backend *backend, void *self, int32_t index,
                           tn_backend_library *library) {
  *library = (tn_backend_library){.struct_size = sizeof *library};
  return backend->library(env, self, index, library) != 0;
}

const char *tn_backend_libraries(tn_env *env, const tn_backend *backend, void *self, tn_arena *arena) {
  const char *text = "";
  tn_backend_library l;
  for (int32_t i = 0; text != NULL && tn_backend_library_at(env, backend, self, i, &l); i++)
    text = tn_arena_printf(arena, "%s%s%s %s", text, i > 0 ? ", " : "", l.name, l.version);
  return text;
}
