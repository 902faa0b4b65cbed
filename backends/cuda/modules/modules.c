/* backends/cuda/modules/modules.c: the modules of a device, found by their text, and the functions that
 * prepared kernels have requested. */
#include "backends/cuda/modules/modules.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/modules/compile_pool.h"
#include "backends/cuda/modules/device_text.h"

enum { BUCKETS = 256 };

struct tn_cuda_module {
  tn_cuda_job job;
  char *title, *text;
  CUmodule module; /* NULL: not loaded yet */
  tn_cuda_module *next;
};

struct tn_cuda_modules {
  tn_cuda_device *device;
  tn_cuda_pool pool;
  tn_cuda_module *buckets[BUCKETS];
  tn_cuda_function *requested; /* functions that are not looked up yet */
  tn_cuda_ahead ahead;         /* images that nvcc made; the pool has its address where it is used */
  bool refused;                /* the driver does not take them */
  bool folder_made;
};

/* ---- create, destroy ---- */

/* A driver runs code of older compilers, not of newer ones. */
static void modules_find_ahead(tn_env *env, tn_cuda_modules *m) {
  const tn_cuda_backend_object *b = m->device->backend;
  switch (tn_cuda_ahead_find(b->options->images, m->device->limits.arch, &m->ahead)) {
  case TN_CUDA_AHEAD_MISSING: return;
  case TN_CUDA_AHEAD_STALE:
    tn_env_log(env, TN_LOG_WARN,
               "cuda: %s is of another build than the plugin, so NVRTC compiles its kernels", m->ahead.path);
    return;
  case TN_CUDA_AHEAD_DAMAGED:
    tn_env_log(env, TN_LOG_WARN, "cuda: %s is damaged, so NVRTC compiles its kernels", m->ahead.path);
    return;
  case TN_CUDA_AHEAD_READY: break;
  }
  if (m->ahead.nvcc_version / 1000 <= b->libraries.driver_version / 1000)
    m->pool.ahead = &m->ahead;
  else
    tn_env_log(env, TN_LOG_INFO,
               "cuda: %s is of CUDA %d, which is newer than the driver, so NVRTC compiles its kernels",
               m->ahead.path, m->ahead.nvcc_version / 1000);
}

tn_status tn_cuda_modules_create(tn_env *env, tn_cuda_device *device, tn_cuda_modules **modules) {
  *modules = NULL;
  tn_cuda_modules *m = tn_new(env, sizeof *m);
  if (m == NULL) return TN_ENOMEM;
  m->device = device;
  m->pool.folder = device->backend->options->cache;
  tn_status status =
      tn_cuda_compiler_open(env, &device->backend->libraries, device->limits.arch, &m->pool.compiler);
  if (status != TN_OK) {
    tn_delete(env, m);
    return status;
  }
  modules_find_ahead(env, m);
  tn_cuda_pool_init(&m->pool);
  *modules = m;
  return TN_OK;
}

static void module_destroy(tn_env *env, const tn_cuda_device *device, tn_cuda_module *m) {
  if (m->module != NULL) (void)device->backend->libraries.driver.cuModuleUnload(m->module);
  free(m->job.image.bytes);
  tn_delete(env, m->title);
  tn_delete(env, m->text);
  tn_delete(env, m);
}

void tn_cuda_modules_destroy(tn_env *env, tn_cuda_modules *modules) {
  if (modules == NULL) return;
  tn_cuda_pool_free(&modules->pool);
  for (int32_t i = 0; i < BUCKETS; i++)
    for (tn_cuda_module *m = modules->buckets[i], *next; m != NULL; m = next) {
      next = m->next;
      module_destroy(env, modules->device, m);
    }
  tn_delete(env, modules);
}

/* ---- finding ---- */

static char *module_copy_text(tn_env *env, const char *text) {
  char *copy = tn_new(env, strlen(text) + 1);
  if (copy != NULL) strcpy(copy, text);
  return copy;
}

/* Compiled code is kept in a folder that only the user can write to; without one it is compiled anew. */
static void modules_make_folder(tn_env *env, tn_cuda_modules *modules) {
  if (modules->folder_made || *modules->pool.folder == '\0') return;
  modules->folder_made = true;
  if (tn_make_folder(env, modules->pool.folder) == TN_OK) return;
  const char *why = errno != 0 ? strerror(errno) : "it is not a folder of this user alone";
  tn_env_log(env, TN_LOG_WARN, "cuda: compiled kernels are not kept: %s: %s", modules->pool.folder, why);
  modules->pool.folder = "";
}

static tn_status module_create(tn_env *env, tn_cuda_modules *modules, const tn_cuda_text *from,
                               const char *file, const char key[TN_CUDA_KEY], tn_cuda_module **module) {
  tn_cuda_module *m = tn_new(env, sizeof *m);
  *module = NULL;
  if (m == NULL) return TN_ENOMEM;
  m->title = module_copy_text(env, from->path);
  m->text = module_copy_text(env, from->text);
  if (m->title == NULL || m->text == NULL) {
    module_destroy(env, modules->device, m);
    return TN_ENOMEM;
  }
  m->job.title = m->title;
  m->job.text = m->text;
  m->job.file = modules->refused ? NULL : file;
  memcpy(m->job.key, key, TN_CUDA_KEY);
  modules_make_folder(env, modules);
  tn_cuda_pool_add(&modules->pool, &m->job);
  *module = m;
  return TN_OK;
}

static tn_status modules_find(tn_env *env, tn_cuda_modules *modules, const tn_cuda_text *from,
                              const char *file, tn_cuda_module **module) {
  char key[TN_CUDA_KEY];
  tn_cuda_image_key(&modules->pool.compiler, from->text, key);
  tn_cuda_module **bucket = &modules->buckets[strtoul((char[]){key[0], key[1], 0}, NULL, 16) % BUCKETS];
  for (tn_cuda_module *m = *bucket; m != NULL; m = m->next)
    if (memcmp(m->job.key, key, TN_CUDA_KEY) == 0 && strcmp(m->text, from->text) == 0) {
      *module = m;
      return TN_OK;
    }
  TN_TRY(module_create(env, modules, from, file, key, module));
  (*module)->next = *bucket;
  *bucket = *module;
  return TN_OK;
}

tn_cuda_pool *tn_cuda_modules_pool(tn_env *env, tn_cuda_modules *modules) {
  modules_make_folder(env, modules);
  return &modules->pool;
}

/* ---- requests ---- */

/* `file`: the name under which nvcc's image may be found, kept by the caller, or NULL. */
static tn_status modules_request(tn_prepare *p, tn_cuda_function *function, const tn_cuda_text *from,
                                 const char *file, const char *name) {
  tn_cuda_device *d = tn_cuda_device_of(p);
  memset(function, 0, sizeof *function);
  TN_TRY(modules_find(&p->env, d->modules, from, file, &function->module));
  function->device = d;
  function->use = p->use;
  snprintf(function->name, sizeof function->name, "%s", name);
  function->next = d->modules->requested;
  d->modules->requested = function;
  return TN_OK;
}

tn_status tn_cuda_request_text(tn_prepare *p, tn_cuda_function *function, const char *title, const char *text,
                               const char *name) {
  return modules_request(p, function, &(tn_cuda_text){title, text}, NULL, name);
}

tn_status tn_cuda_request(tn_prepare *p, tn_cuda_function *function, const char *file, const char *name,
                          ...) {
  char full[TN_CUDA_FUNCTION_NAME];
  va_list arguments;
  va_start(arguments, name);
  vsnprintf(full, sizeof full, name, arguments);
  va_end(arguments);
  for (const tn_cuda_text *t = tn_cuda_texts; t->path != NULL; t++)
    if (strcmp(strrchr(t->path, '/') + 1, file) == 0)
      return modules_request(p, function, t, strrchr(t->path, '/') + 1, full);
  return tn_fail(p, TN_EINTERNAL, NULL, "cuda: no device code in %s", file);
}

void tn_cuda_withdraw(tn_cuda_function *function) {
  if (function->device == NULL || function->function != NULL) return;
  tn_cuda_function **at = &function->device->modules->requested;
  while (*at != NULL && *at != function) at = &(*at)->next;
  if (*at != NULL) *at = function->next;
}

void tn_cuda_release_function(tn_env *env, void *made) {
  tn_cuda_withdraw(made);
  tn_delete(env, made);
}

/* ---- loading ---- */

static void module_log_cache(tn_env *env, const tn_cuda_modules *modules, const tn_cuda_module *m) {
  if (m->job.damaged)
    tn_env_log(env, TN_LOG_WARN, "cuda: the code of %s in %s is damaged, so NVRTC compiled it", m->title,
               modules->ahead.path);
  if (m->job.corrupt)
    tn_env_log(env, TN_LOG_WARN, "cuda: %s/%s.cubin is damaged; %s was compiled again", modules->pool.folder,
               m->job.key, m->title);
  if (*m->job.unsaved)
    tn_env_log(env, TN_LOG_WARN, "cuda: the code of %s was not kept: %s", m->title, m->job.unsaved);
}

static void module_drop_image(tn_cuda_module *m) {
  free(m->job.image.bytes);
  m->job.image = (tn_cuda_image){NULL, 0};
}

/* Codes for an image that this driver or this device does not run. */
static bool module_is_refused(CUresult code) {
  return code == CUDA_ERROR_NO_BINARY_FOR_GPU || code == CUDA_ERROR_INVALID_IMAGE ||
         code == CUDA_ERROR_INVALID_SOURCE || code == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

/* The module, and all later ones, are compiled by NVRTC. */
static void module_compile_instead(tn_env *env, tn_cuda_modules *modules, tn_cuda_module *m, CUresult code) {
  const char *name = NULL;
  (void)modules->device->backend->libraries.driver.cuGetErrorName(code, &name);
  if (!modules->refused)
    tn_env_log(env, TN_LOG_INFO, "cuda: the driver refuses the code in %s (%s), so NVRTC compiles it",
               modules->ahead.path, name != NULL ? name : "unknown code");
  modules->refused = true;
  module_drop_image(m);
  m->job.file = NULL;
  m->job.done = false;
  tn_cuda_pool_add(&modules->pool, &m->job);
}

static tn_status module_stop(tn_env *env, const tn_cuda_module *m) {
  return tn_fail(env, TN_ESTOPPED, NULL, "stopped while %s was compiled; nothing was saved", m->title);
}

/* Loads an image that nvcc made. After the first that the driver refuses, no other is tried. */
static tn_status module_load_ahead(tn_env *env, tn_cuda_modules *modules, tn_cuda_module *m) {
  const tn_cuda_libraries *l = &modules->device->backend->libraries;
  if (m->module != NULL) return TN_OK;
  if (!tn_cuda_pool_await(env, &modules->pool, &m->job)) return module_stop(env, m);
  if (!m->job.ahead) return TN_OK;
  CUresult code = CUDA_ERROR_NO_BINARY_FOR_GPU;
  if (!modules->refused) code = l->driver.cuModuleLoadData(&m->module, m->job.image.bytes);
  if (code == CUDA_SUCCESS) module_drop_image(m);
  if (!module_is_refused(code)) return tn_cuda_check(env, l, code, "cuModuleLoadData");
  module_compile_instead(env, modules, m, code);
  return TN_OK;
}

/* Another kernel may take the place of one whose code does not compile. */
static tn_status module_fail(tn_env *env, const tn_cuda_modules *modules, const tn_cuda_module *m) {
  const char *error = m->job.error;
  int line = (int)strcspn(error, "\n");
  if (error[line] != '\0')
    tn_env_log(env, TN_LOG_DEBUG, "cuda: NVRTC about %s: %s", m->title, error + line + 1);
  return tn_fail(env, m->job.refused ? TN_EUNSUPPORTED : TN_EDEVICE, NULL,
                 "cuda: %s does not compile for %s: %.*s", m->title, modules->pool.compiler.arch, line,
                 error);
}

/* Loads an image that NVRTC made. */
static tn_status module_load(tn_env *env, tn_cuda_modules *modules, tn_cuda_module *m) {
  const tn_cuda_device *d = modules->device;
  if (m->module != NULL) return TN_OK;
  if (!tn_cuda_pool_await(env, &modules->pool, &m->job)) return module_stop(env, m);
  module_log_cache(env, modules, m);
  if (!m->job.compiled) return module_fail(env, modules, m);
  tn_status status = TN_CU(env, &d->backend->libraries, cuModuleLoadData, &m->module, m->job.image.bytes);
  if (status == TN_OK) module_drop_image(m);
  return status;
}

/* Known when the code is loaded, since the compiler decides on registers. */
static tn_status function_count_blocks(tn_env *env, const tn_cuda_libraries *l, tn_cuda_function *f) {
  int blocks = 0;
  tn_status status = TN_CU(env, l, cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, f->function,
                           (int)f->counted_threads, f->shared_bytes);
  f->blocks_at_once = blocks;
  return status;
}

/* Of shared memory a block has 48 KiB, its static part included, unless more is allowed for its function. */
static tn_status function_find(tn_env *env, tn_cuda_modules *modules, tn_cuda_function *f) {
  const tn_cuda_libraries *l = &modules->device->backend->libraries;
  tn_status status = module_load(env, modules, f->module);
  if (status == TN_OK) status = TN_CU(env, l, cuModuleGetFunction, &f->function, f->module->module, f->name);
  if (status == TN_OK && f->shared_bytes > 0)
    status = TN_CU(env, l, cuFuncSetAttribute, f->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                   (int)f->shared_bytes);
  return status == TN_OK && f->counted_threads > 0 ? function_count_blocks(env, l, f) : status;
}

tn_status tn_cuda_finish_functions(tn_env *env, tn_cuda_device *d, int32_t *declined) {
  tn_status status = d->modules->requested != NULL ? tn_cuda_enter(env, d) : TN_OK;
  for (tn_cuda_function *f = d->modules->requested; f != NULL && status == TN_OK; f = f->next)
    status = module_load_ahead(env, d->modules, f->module);
  while (status == TN_OK && d->modules->requested != NULL) {
    tn_cuda_function *f = d->modules->requested;
    status = function_find(env, d->modules, f);
    if (status == TN_EUNSUPPORTED) *declined = f->use;
    if (status == TN_OK || status == TN_EUNSUPPORTED) d->modules->requested = f->next;
  }
  return status;
}
