/* tests/fakecuda/driver/modules.c: loading modules; functions and their attributes. */
#include "tests/fakecuda/driver/modules.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MACHINE_CUDA = 190 }; /* e_machine of a cubin */

static fake_loaded *modules; /* of all contexts, with those that are unloaded */

CUresult fake_kernel_find(const fake_call *call, CUfunction handle, fake_kernel **kernel) {
  *kernel = fake_handle_find(FAKE_FUNCTION, handle);
  if (*kernel == NULL)
    return fake_refuse(call, CUDA_ERROR_INVALID_HANDLE, "%p is no function of a live module", (void *)handle);
  if ((*kernel)->module->context == call->context) return CUDA_SUCCESS;
  return fake_refuse(call, CUDA_ERROR_INVALID_CONTEXT, "'%s' was loaded on device %d, the current one is %d",
                     (*kernel)->name, (*kernel)->module->context->device, call->context->device);
}

/* ---- loading, unloading ---- */

/* Code of nvcc for GPUs, in a fatbin or a cubin: a driver refuses it where it is of another architecture, so
 * it is no mistake of the caller. */
static bool module_is_for_gpu(const void *image) {
  const Elf64_Ehdr *header = image;
  uint32_t first;
  memcpy(&first, image, sizeof first);
  if (first == UINT32_C(0xBA55ED50) || first == UINT32_C(0x466243B1)) return true;
  return memcmp(image, ELFMAG, SELFMAG) == 0 && header->e_machine == MACHINE_CUDA;
}

static CUresult module_refuse_image(const fake_call *call, const void *image, const char *why) {
  if (module_is_for_gpu(image)) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  return fake_refuse(call, CUDA_ERROR_INVALID_IMAGE, "%s", why);
}

static CUresult module_load(const fake_call *call, CUmodule *handle, const void *image) {
  char why[FAKE_TEXT];
  if (handle == NULL || image == NULL)
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "image %p, place %p", image, (void *)handle);
  fake_module *loaded = fake_module_load(image, why);
  if (loaded == NULL) return module_refuse_image(call, image, why);
  fake_loaded *m = calloc(1, sizeof *m);
  if (m != NULL) m->handle = fake_handle_new(FAKE_MODULE, call->context, m);
  if (m == NULL || m->handle == NULL) {
    fake_module_unload(loaded);
    free(m);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  m->context = call->context;
  m->number = ++call->context->modules;
  atomic_store(&m->image, loaded);
  m->next = modules;
  modules = m;
  *handle = m->handle;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  FAKE_CALL(FAKE_CURRENT | FAKE_UNSAFE, module_load(&call, module, image));
}

static CUresult module_load_with(const fake_call *call, CUmodule *module, const void *image, unsigned n,
                                 const CUjit_option *options, void **values) {
  if (n > 0 && (options == NULL || values == NULL))
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "%u options at NULL", n);
  return module_load(call, module, image);
}

FAKE_API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n, CUjit_option *options,
                                     void **values) {
  FAKE_CALL(FAKE_CURRENT | FAKE_UNSAFE, module_load_with(&call, module, image, n, options, values));
}

static void module_unload(fake_loaded *m) {
  fake_module *image = atomic_exchange(&m->image, NULL);
  for (fake_kernel *k = m->kernels; k != NULL; k = k->next) fake_handle_drop(k->handle);
  fake_handle_drop(m->handle);
  fake_module_unload(image);
}

static CUresult module_delete(const fake_call *call, CUmodule handle) {
  fake_loaded *m = fake_handle_find(FAKE_MODULE, handle);
  if (m == NULL) return fake_refuse(call, CUDA_ERROR_INVALID_HANDLE, "%p is no live module", (void *)handle);
  if (fake_finish(m->context) && fake_handle_find(FAKE_MODULE, handle) == m) module_unload(m);
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuModuleUnload(CUmodule module) {
  FAKE_CALL(FAKE_CURRENT | FAKE_UNSAFE | FAKE_FREES, module_delete(&call, module));
}

static void module_free(fake_loaded *m) {
  for (fake_kernel *k = m->kernels, *next; k != NULL; k = next) {
    next = k->next;
    free(k);
  }
  free(m);
}

void fake_modules_close(fake_context *context) {
  for (fake_loaded **link = &modules, *m; (m = *link) != NULL;) {
    if (m->context != context) {
      link = &m->next;
      continue;
    }
    *link = m->next;
    if (atomic_load(&m->image) != NULL) {
      fake_leak(context, "module %llu", (unsigned long long)m->number);
      module_unload(m);
    }
    module_free(m);
  }
}

/* ---- functions ---- */

static fake_kernel *module_add_kernel(fake_loaded *m, const char *name, const fake_function *function) {
  fake_kernel *k = calloc(1, sizeof *k);
  if (k != NULL) k->handle = fake_handle_new(FAKE_FUNCTION, m->context, k);
  if (k == NULL || k->handle == NULL) return free(k), NULL;
  uint32_t own = fake_function_shared_bytes(function);
  k->module = m;
  k->function = function;
  k->most_dynamic = own < FAKE_SHARED ? FAKE_SHARED - own : 0;
  snprintf(k->name, sizeof k->name, "%s", name);
  k->next = m->kernels;
  return m->kernels = k;
}

static CUresult module_function(const fake_call *call, CUfunction *handle, CUmodule module,
                                const char *name) {
  if (handle == NULL || name == NULL)
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "name %p, place %p", (const void *)name,
                       (void *)handle);
  fake_loaded *m = fake_handle_find(FAKE_MODULE, module);
  if (m == NULL) return fake_refuse(call, CUDA_ERROR_INVALID_HANDLE, "%p is no live module", (void *)module);
  const fake_function *function = fake_module_function(atomic_load(&m->image), name);
  if (function == NULL) return CUDA_ERROR_NOT_FOUND;
  fake_kernel *k = m->kernels;
  while (k != NULL && k->function != function) k = k->next;
  if (k == NULL) k = module_add_kernel(m, name, function);
  if (k == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = k->handle;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  FAKE_CALL(FAKE_CURRENT, module_function(&call, function, module, name));
}

/* ---- attributes ---- */

static CUresult module_attribute(const fake_call *call, int *value, CUfunction_attribute which,
                                 CUfunction function) {
  fake_kernel *k;
  if (value == NULL) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no place for the attribute");
  CUresult code = fake_kernel_find(call, function, &k);
  if (code != CUDA_SUCCESS) return code;
  switch (which) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = (int)fake_function_max_threads(k->function); break;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = (int)fake_function_shared_bytes(k->function); break;
  case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = 0; break;
  case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 32; break;
  case CU_FUNC_ATTRIBUTE_PTX_VERSION:
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = fake_settings_get()->arch; break;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = (int)k->most_dynamic; break;
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = -1; break;
  default: return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "the double has no attribute %d", (int)which);
  }
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction function) {
  FAKE_CALL(FAKE_CURRENT, module_attribute(&call, value, which, function));
}

static CUresult module_set_dynamic(const fake_call *call, fake_kernel *k, int value) {
  int most = FAKE_SHARED_OPTIN - (int)fake_function_shared_bytes(k->function);
  if (value < 0 || value > most)
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE,
                       "'%s': %d bytes of dynamic shared memory, at most %d are left beside its own", k->name,
                       value, most);
  k->most_dynamic = (uint32_t)value;
  return CUDA_SUCCESS;
}

static CUresult module_set_attribute(const fake_call *call, CUfunction function, CUfunction_attribute which,
                                     int value) {
  fake_kernel *k;
  CUresult code = fake_kernel_find(call, function, &k);
  if (code != CUDA_SUCCESS) return code;
  if (which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return module_set_dynamic(call, k, value);
  bool carveout = which == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT && value >= -1 && value <= 100;
  if (carveout) return CUDA_SUCCESS; /* a hint */
  return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "attribute %d cannot be set to %d", (int)which, value);
}

FAKE_API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value) {
  FAKE_CALL(FAKE_CURRENT, module_set_attribute(&call, function, which, value));
}
