/* tests/integration/cuda/ranges_tool.c: a tool of NVTX, as a profiler injects one. It appends a line to the
 * file $RANGES for each range of the domain "Tenon": "+name" and "-", indented by its depth, those of one
 * thread; and "stream name" for each named stream. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define NVTX_NO_IMPL
#include <cuda.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int depth;

static void write_line(const char *mark, const char *name) {
  const char *path = getenv("RANGES");
  pthread_mutex_lock(&lock);
  FILE *f = path != NULL ? fopen(path, "a") : NULL;
  if (f != NULL) fprintf(f, "%*s%s%s\n", 2 * depth, "", mark, name);
  if (f != NULL) fclose(f);
  pthread_mutex_unlock(&lock);
}

static nvtxDomainHandle_t NVTX_API create(const char *name) {
  write_line("domain ", name);
  return (nvtxDomainHandle_t)(void *)&lock;
}

static int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes) {
  write_line("+", domain == (nvtxDomainHandle_t)(void *)&lock ? attributes->message.ascii : "another domain");
  return depth++;
}

static int NVTX_API pop(nvtxDomainHandle_t domain) {
  depth--;
  write_line("-", domain == (nvtxDomainHandle_t)(void *)&lock ? "" : "another domain");
  return depth;
}

static void NVTX_API name_stream(CUstream stream, const char *name) {
  (void)stream;
  write_line("stream ", name);
}

static int replace(const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module, unsigned id,
                   NvtxFunctionPointer function) {
  NvtxFunctionTable table = NULL;
  unsigned n = 0;
  if (!callbacks->GetModuleFunctionTable(module, &table, &n) || id >= n) return 0;
  *table[id] = function;
  return 1;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
  const NvtxExportTableCallbacks *c = get(NVTX_ETID_CALLBACKS);
  return c != NULL &&
         replace(c, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA, (NvtxFunctionPointer)create) &&
         replace(c, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx, (NvtxFunctionPointer)push) &&
         replace(c, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePop, (NvtxFunctionPointer)pop) &&
         replace(c, NVTX_CB_MODULE_CUDA, NVTX_CBID_CUDA_NameCuStreamA, (NvtxFunctionPointer)name_stream);
}
