/* core/plugin/loader.c: dlopen of plugin files. */
#include "core/plugin/loader.h"

#include <dlfcn.h>
#include <string.h>

/* The linker's reason, without the path in front of it, which the message has already. */
static tn_status loader_fail_open(const void *handle, const char *real, const char *reason) {
  size_t n = strlen(real);
  if (reason == NULL) reason = "the dynamic linker gives no reason";
  if (strncmp(reason, real, n) == 0 && reason[n] == ':') reason += n + 1 + strspn(reason + n + 1, " ");
  return tn_failf(handle, TN_EUNAVAILABLE, "%s: cannot be opened: %s", real, reason);
}

/* RTLD_NOW: a missing symbol is an error here, not during a run. RTLD_LOCAL: plugins do not see each other's
 * symbols. A constructor may change the floating-point environment: in objects linked with -ffast-math GCC's
 * flushes denormals. */
static void *loader_open(const char *real) {
  TN_THREAD_STATE;
  return dlopen(real, RTLD_NOW | RTLD_LOCAL);
}

tn_status tn_plugin_open(const void *handle, const char *real, const tn_plugin **plugin) {
  *plugin = NULL;
  TN_TRY(tn_plugin_check_elf(handle, real));
  void *object = loader_open(real);
  if (object == NULL) return loader_fail_open(handle, real, dlerror());
  void *symbol = dlsym(object, TN_PLUGIN_SYMBOL);
  if (symbol == NULL)
    return tn_failf(handle, TN_EABI, "%s: not a Tenon plugin: the dynamic linker finds no %s in it", real,
                    TN_PLUGIN_SYMBOL);
  const tn_plugin *(*entry)(void);
  memcpy(&entry, &symbol, sizeof(entry)); /* ISO C has no cast from object to function pointers */
  *plugin = entry();
  return TN_OK;
}
