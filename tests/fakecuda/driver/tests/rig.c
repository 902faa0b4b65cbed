/* tests/fakecuda/driver/tests/rig.c */
#include "tests/fakecuda/driver/tests/rig.h"

#include <dlfcn.h>
#include <nvrtc.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

rig_driver D;
void *rig_library;
static const char *driver_path, *image_path;
static char log_path[64];
static long log_read;
static const char *set[16];
static int n_set;

void rig_set(const char *name, const char *value) {
  setenv(name, value, 1);
  set[n_set++] = name;
}

#define RIG_TEXT2(name) #name
#define RIG_TEXT(name)  RIG_TEXT2(name)

void rig_load(void) {
  snprintf(log_path, sizeof log_path, "/tmp/fakecuda-log-%d", (int)getpid());
  unlink(log_path);
  log_read = 0;
  setenv("FAKECUDA_LOG", log_path, 1);
  signal(SIGSEGV, SIG_DFL); /* not the handler of cmocka, which would go on with the tests in a child */
  rig_library = dlopen(driver_path, RTLD_NOW | RTLD_LOCAL);
  if (rig_library == NULL) fprintf(stderr, "%s\n", dlerror());
  assert_non_null(rig_library);
#define FIND(name)                                                                                           \
  *(void **)(void *)&D.f_##name = dlsym(rig_library, RIG_TEXT(name));                                        \
  assert_non_null(D.f_##name);
  RIG_ENTRIES(FIND)
#undef FIND
  *(void **)(void *)&D.enqueue = dlsym(rig_library, "fakecuda_enqueue");
  *(void **)(void *)&D.is_device_memory = dlsym(rig_library, "fakecuda_is_device_memory");
  *(void **)(void *)&D.call = dlsym(rig_library, "fakecuda_call");
}

void rig_unload(void) {
  dlclose(rig_library);
  unlink(log_path);
  while (n_set > 0) unsetenv(set[--n_set]);
}

static char *rig_read_source(void) {
  static char text[1 << 14];
  FILE *file = fopen(image_path, "rb");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  return text;
}

const void *rig_image(void) {
  static char *image;
  if (image != NULL) return image;
  nvrtcProgram program;
  const char *options[] = {"--gpu-architecture=sm_90"};
  size_t bytes;
  IS(nvrtcCreateProgram(&program, rig_read_source(), "image.cu", 0, NULL, NULL), NVRTC_SUCCESS);
  IS(nvrtcCompileProgram(program, 1, options), NVRTC_SUCCESS);
  IS(nvrtcGetCUBINSize(program, &bytes), NVRTC_SUCCESS);
  assert_true(bytes > 0);
  image = malloc(bytes);
  assert_non_null(image);
  IS(nvrtcGetCUBIN(program, image), NVRTC_SUCCESS);
  IS(nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
  return image;
}

void rig_open(rig *r) {
  rig_load();
  OK(D.f_cuInit(0));
  OK(D.f_cuDevicePrimaryCtxRetain(&r->context, 0));
  OK(D.f_cuCtxSetCurrent(r->context));
  OK(D.f_cuStreamCreate(&r->a, CU_STREAM_NON_BLOCKING));
  OK(D.f_cuStreamCreate(&r->b, CU_STREAM_NON_BLOCKING));
  OK(D.f_cuModuleLoadData(&r->module, rig_image()));
  OK(D.f_cuModuleGetFunction(&r->add, r->module, "add"));
}

/* The calls return the fault of a context that has one, and free all the same. */
void rig_release(rig *r) {
  D.f_cuModuleUnload(r->module);
  D.f_cuStreamDestroy(r->a);
  D.f_cuStreamDestroy(r->b);
  OK(D.f_cuDevicePrimaryCtxRelease(0));
}

void rig_close(rig *r) {
  rig_release(r);
  QUIET();
  rig_unload();
}

const char *rig_log(void) {
  static char text[8192];
  FILE *file = fopen(log_path, "rb");
  assert_non_null(file);
  fseek(file, log_read, SEEK_SET);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  log_read = ftell(file);
  fclose(file);
  return text;
}

void rig_logged(const char *part, const char *file, int line) {
  const char *text = rig_log();
  if (strstr(text, part) != NULL) return;
  fprintf(stderr, "expected '%s' in the log, found '%s'\n", part, text);
  _fail(file, line);
}

CUdeviceptr rig_device(size_t floats) {
  CUdeviceptr x;
  CUstream s;
  OK(D.f_cuMemAlloc(&x, 4 * floats));
  OK(D.f_cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  OK(D.f_cuMemsetD32Async(x, 0, floats, s));
  OK(D.f_cuStreamSynchronize(s));
  OK(D.f_cuStreamDestroy(s));
  return x;
}

float *rig_pinned(size_t floats) {
  void *x;
  OK(D.f_cuMemHostAlloc(&x, 4 * floats, 0));
  return x;
}

CUresult rig_add(const rig *r, CUstream stream, CUdeviceptr x, int n, float value) {
  void *parameters[] = {&x, &n, &value};
  return D.f_cuLaunchKernel(r->add, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL);
}

float rig_first(const rig *r, CUdeviceptr x) {
  float *host = rig_pinned(1), value;
  OK(D.f_cuCtxSynchronize());
  OK(D.f_cuMemcpyDtoHAsync(host, x, sizeof *host, r->a));
  OK(D.f_cuStreamSynchronize(r->a));
  value = *host;
  OK(D.f_cuMemFreeHost(host));
  return value;
}

int rig_main(int argc, char **argv, const struct CMUnitTest *tests, size_t n) {
  if (argc < 3) return 2;
  driver_path = argv[1];
  image_path = argv[2];
  return _cmocka_run_group_tests("fakecuda", tests, n, NULL, NULL);
}
