/* tests/fakecuda/driver/libraries.c: the functions that the real cuDNN looks up, and calls while it finalizes
 * plans of engines that are compiled at run time, for the description of a device. Its kernels are images for
 * a GPU: they are accepted, and none is ever launched. It needs FAKECUDA_DEVICES=0: where cuInit finds a
 * device, cuDNN asks for more. */
#include "tests/fakecuda/driver/driver.h"

#undef cuCtxPopCurrent
#undef cuCtxPushCurrent
#undef cuLinkCreate
#undef cuLinkAddData

/* One handle stands for all. */
static char the_library, the_kernel, the_function;

static CUresult library_give(const fake_call *call, void *place, void *handle) {
  if (place == NULL) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no place for the handle");
  *(void **)place = handle;
  return CUDA_SUCCESS;
}

static CUresult library_check(const fake_call *call, const void *handle, const void *expected) {
  if (handle == expected) return CUDA_SUCCESS;
  return fake_refuse(call, CUDA_ERROR_INVALID_HANDLE, "%p is not what the double has given", handle);
}

FAKE_API CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options,
                                    void **values, unsigned n, CUlibraryOption *library_options,
                                    void **library_values, unsigned m) {
  (void)image, (void)options, (void)values, (void)n, (void)library_options, (void)library_values, (void)m;
  FAKE_CALL(0, library_give(&call, library, &the_library));
}

FAKE_API CUresult cuLibraryUnload(CUlibrary library) {
  FAKE_CALL(0, library_check(&call, library, &the_library));
}

static CUresult library_give_kernel(const fake_call *call, CUkernel *kernel, CUlibrary library) {
  CUresult code = library_check(call, library, &the_library);
  return code == CUDA_SUCCESS ? library_give(call, kernel, &the_kernel) : code;
}

FAKE_API CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
  (void)name;
  FAKE_CALL(0, library_give_kernel(&call, kernel, library));
}

static CUresult library_count(const fake_call *call, unsigned *n, CUlibrary library) {
  if (n == NULL) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no place for the count");
  *n = 1;
  return library_check(call, library, &the_library);
}

FAKE_API CUresult cuLibraryGetKernelCount(unsigned *n, CUlibrary library) {
  FAKE_CALL(0, library_count(&call, n, library));
}

FAKE_API CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned n, CUlibrary library) {
  FAKE_CALL(0, n == 0 ? CUDA_SUCCESS : library_give_kernel(&call, kernels, library));
}

static CUresult library_give_function(const fake_call *call, CUfunction *function, CUkernel kernel) {
  CUresult code = library_check(call, kernel, &the_kernel);
  return code == CUDA_SUCCESS ? library_give(call, function, &the_function) : code;
}

/* The function is that of the current context. A description of a device has none. */
static int library_needs_context(void) { return fake_settings_get()->devices > 0 ? FAKE_CURRENT : 0; }

FAKE_API CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
  FAKE_CALL(library_needs_context(), library_give_function(&call, function, kernel));
}

FAKE_API CUresult cuKernelSetAttribute(CUfunction_attribute which, int value, CUkernel kernel,
                                       CUdevice device) {
  (void)which, (void)value, (void)device;
  FAKE_CALL(0, library_check(&call, kernel, &the_kernel));
}

static CUresult library_attribute(const fake_call *call, int *value, CUkernel kernel) {
  if (value == NULL) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no place for the attribute");
  *value = 0;
  return library_check(call, kernel, &the_kernel);
}

FAKE_API CUresult cuKernelGetAttribute(int *value, CUfunction_attribute which, CUkernel kernel,
                                       CUdevice device) {
  (void)which, (void)device;
  FAKE_CALL(0, library_attribute(&call, value, kernel));
}

/* ---- looked up, not called ---- */

static CUresult library_lack(const fake_call *call) {
  return fake_refuse(call, CUDA_ERROR_NOT_SUPPORTED, "the double lacks this function");
}

#define LACKS(name, ...)                                                                                     \
  FAKE_API CUresult name(__VA_ARGS__);                                                                       \
  FAKE_API CUresult name(__VA_ARGS__) { FAKE_CALL(0, library_lack(&call)); }

#pragma GCC diagnostic ignored "-Wunused-parameter"
LACKS(cuCtxPopCurrent, CUcontext *context)
LACKS(cuCtxPushCurrent, CUcontext context)
LACKS(cuCtxGetLimit, size_t *value, CUlimit limit)
LACKS(cuLinkCreate, unsigned n, CUjit_option *options, void **values, CUlinkState *state)
LACKS(cuLinkAddData, CUlinkState state, CUjitInputType type, void *data, size_t bytes, const char *name,
      unsigned n, CUjit_option *options, void **values)
LACKS(cuLinkComplete, CUlinkState state, void **cubin, size_t *bytes)
LACKS(cuLinkDestroy, CUlinkState state)
LACKS(cuLibraryLoadFromFile, CUlibrary *library, const char *file, CUjit_option *options, void **values,
      unsigned n, CUlibraryOption *library_options, void **library_values, unsigned m)
LACKS(cuLaunchCooperativeKernel, CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, CUstream stream,
      void **arguments)
LACKS(cuLaunchKernelEx, const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra)
LACKS(cuOccupancyMaxPotentialClusterSize, int *size, CUfunction function, const CUlaunchConfig *config)
