/* tests/fakecuda/cudnn/tests/rig.c: see rig.h. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backends/shared/half.h"
#include "tests/fakecuda/cudnn/tests/rig.h"

/* ---- libraries ---- */

const char *rig_open(const char *path, rig_library *found) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return dlerror();
#define FIND(name)                                                                                           \
  if (!(found->name = (__typeof__(found->name))dlsym(library, #name))) return #name;
  RIG_ENTRIES(FIND)
#undef FIND
  found->fakecudnn_why = (__typeof__(found->fakecudnn_why))dlsym(library, "fakecudnn_why");
  found->fakecudnn_live = (__typeof__(found->fakecudnn_live))dlsym(library, "fakecudnn_live");
  return NULL;
}

const rig_library *rig_double(void) {
  static rig_library library;
  const char *missing = library.cudnnCreate ? NULL : rig_open(FAKECUDNN_PATH, &library);
  if (missing) fprintf(stderr, "%s: %s\n", FAKECUDNN_PATH, missing), abort();
  return &library;
}

/* ---- the driver's double ---- */

#define CUDA_OK(call)                                                                                        \
  do {                                                                                                       \
    CUresult result_ = (call);                                                                               \
    if (result_ != CUDA_SUCCESS) fprintf(stderr, "%s: CUresult %d\n", #call, (int)result_), abort();         \
  } while (0)

static void open_driver(rig_driver *d) {
  void *library = dlopen(FAKECUDA_DRIVER_PATH, RTLD_NOW | RTLD_GLOBAL);
  if (!library) fprintf(stderr, "%s\n", dlerror()), abort();
#define FIND(name)                                                                                           \
  if (!(d->name = (__typeof__(d->name))dlsym(library, #name))) fprintf(stderr, "%s\n", #name), abort();
  RIG_DRIVER(FIND)
#undef FIND
  CUDA_OK(d->cuInit(0));
  CUDA_OK(d->cuDevicePrimaryCtxRetain(&d->context, 0));
  CUDA_OK(d->cuCtxSetCurrent(d->context));
  CUDA_OK(d->cuStreamCreate(&d->stream, CU_STREAM_NON_BLOCKING));
}

static rig_driver driver;
static cudnnHandle_t own_handle;

const rig_driver *rig_cuda(void) {
  if (!driver.cuInit) open_driver(&driver);
  return &driver;
}

cudnnHandle_t rig_handle(void) {
  rig_cuda();
  if (!own_handle && rig_double()->cudnnCreate(&own_handle) != CUDNN_STATUS_SUCCESS) abort();
  return own_handle;
}

int rig_leave(void **state) {
  (void)state;
  if (own_handle) rig_double()->cudnnDestroy(own_handle);
  if (driver.cuInit) {
    CUDA_OK(driver.cuStreamDestroy_v2(driver.stream));
    CUDA_OK(driver.cuDevicePrimaryCtxRelease_v2(0));
  }
  return (int)rig_double()->fakecudnn_live();
}

enum { BLOCKS = 512 };
static void *blocks[BLOCKS];
static int n_blocks;

void *rig_memory(int64_t bytes) {
  CUdeviceptr address;
  if (n_blocks == BLOCKS) abort();
  CUDA_OK(rig_cuda()->cuMemAlloc_v2(&address, (size_t)bytes));
  return blocks[n_blocks++] = (void *)(uintptr_t)address;
}

void rig_free_memory(void) {
  CUDA_OK(rig_cuda()->cuCtxSynchronize());
  while (n_blocks > 0) CUDA_OK(rig_cuda()->cuMemFree_v2((CUdeviceptr)(uintptr_t)blocks[--n_blocks]));
}

void rig_upload(void *to, const void *from, int64_t bytes) {
  const rig_driver *d = rig_cuda();
  CUDA_OK(d->cuMemcpyHtoDAsync_v2((CUdeviceptr)(uintptr_t)to, from, (size_t)bytes, d->stream));
  CUDA_OK(d->cuStreamSynchronize(d->stream));
}

void rig_download(void *to, const void *from, int64_t bytes) {
  const rig_driver *d = rig_cuda();
  CUDA_OK(d->cuMemcpyDtoHAsync_v2(to, (CUdeviceptr)(uintptr_t)from, (size_t)bytes, d->stream));
  CUDA_OK(d->cuStreamSynchronize(d->stream));
}

/* ---- descriptors ---- */

rig_graph *rig_new(const rig_library *dnn, cudnnHandle_t handle) {
  rig_graph *g = calloc(1, sizeof *g);
  if (!g) abort();
  g->dnn = dnn;
  g->handle = handle;
  return g;
}

void rig_free(rig_graph *g) {
  while (g->n_owned > 0) g->dnn->cudnnBackendDestroyDescriptor(g->owned[--g->n_owned]);
  free(g);
}

static void keep(rig_graph *g, cudnnStatus_t status, int line) {
  if (g->status != CUDNN_STATUS_SUCCESS) return;
  g->status = status;
  g->line = line;
}

#define DO(call)                                                                                             \
  do {                                                                                                       \
    if (g->status == CUDNN_STATUS_SUCCESS) keep(g, g->dnn->call, __LINE__);                                  \
  } while (0)

cudnnBackendDescriptor_t rig_create(rig_graph *g, int type) {
  cudnnBackendDescriptor_t d = NULL;
  if (g->n_owned == RIG_OWNED) abort();
  DO(cudnnBackendCreateDescriptor((cudnnBackendDescriptorType_t)type, &d));
  if (d) g->owned[g->n_owned++] = d;
  return d;
}

void rig_set(rig_graph *g, cudnnBackendDescriptor_t d, int name, int type, int64_t n, const void *values) {
  DO(cudnnBackendSetAttribute(d, (cudnnBackendAttributeName_t)name, (cudnnBackendAttributeType_t)type, n,
                              values));
}

void rig_set_int(rig_graph *g, cudnnBackendDescriptor_t d, int name, int64_t value) {
  rig_set(g, d, name, CUDNN_TYPE_INT64, 1, &value);
}

void rig_set_enum(rig_graph *g, cudnnBackendDescriptor_t d, int name, int type, int value) {
  rig_set(g, d, name, type, 1, &value);
}

void rig_set_part(rig_graph *g, cudnnBackendDescriptor_t d, int name, cudnnBackendDescriptor_t part) {
  rig_set(g, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part);
}

void rig_finalize(rig_graph *g, cudnnBackendDescriptor_t d) { DO(cudnnBackendFinalize(d)); }

/* ---- tensors ---- */

int rig_add(rig_graph *g, int type, int kind, int rank, const int64_t *dims, const int64_t *strides) {
  if (g->n_tensors == RIG_TENSORS) abort();
  rig_tensor *t = &g->tensors[g->n_tensors];
  bool yes = true;
  *t = (rig_tensor){.type = type, .kind = kind, .rank = rank, .uid = g->n_tensors + 1};
  int64_t step = 1;
  for (int i = rank - 1; i >= 0; step *= dims[i--])
    t->dims[i] = dims[i], t->strides[i] = strides ? strides[i] : step;
  cudnnBackendDescriptor_t d = t->descriptor = rig_create(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  rig_set_int(g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, t->uid);
  rig_set_enum(g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  rig_set(g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, t->dims);
  rig_set(g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, t->strides);
  rig_set_int(g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kind == RIG_VALUE ? 8 : 16);
  if (kind == RIG_VIRTUAL) rig_set(g, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
  if (kind == RIG_VALUE) rig_set(g, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
  rig_finalize(g, d);
  return g->n_tensors++;
}

int rig_image(rig_graph *g, int type, int kind, int64_t n, int64_t c, int64_t h, int64_t w) {
  const int64_t dims[] = {n, c, h, w}, strides[] = {c * h * w, 1, c * w, c};
  return rig_add(g, type, kind, 4, dims, strides);
}

int rig_matrix(rig_graph *g, int type, int kind, int64_t b, int64_t h, int64_t m, int64_t n) {
  const int64_t dims[] = {b, h, m, n};
  return rig_add(g, type, kind, 4, dims, NULL);
}

int rig_value(rig_graph *g, float value) {
  const int64_t dims[] = {1, 1, 1, 1};
  int number = rig_add(g, CUDNN_DATA_FLOAT, RIG_VALUE, 4, dims, NULL);
  g->tensors[number].value = value;
  g->tensors[number].memory = &g->tensors[number].value;
  return number;
}

int rig_count(rig_graph *g, int64_t count) {
  const int64_t dims[] = {1, 1, 1, 1};
  int number = rig_add(g, CUDNN_DATA_INT64, RIG_VALUE, 4, dims, NULL);
  g->tensors[number].count = count;
  g->tensors[number].memory = &g->tensors[number].count;
  return number;
}

/* ---- operations ---- */

static void set_tensor(rig_graph *g, cudnnBackendDescriptor_t d, int name, int tensor) {
  if (tensor >= 0) rig_set_part(g, d, name, g->tensors[tensor].descriptor);
}

static void add_operation(rig_graph *g, cudnnBackendDescriptor_t d) {
  rig_finalize(g, d);
  if (g->n_operations == RIG_OPERATIONS) abort();
  g->operations[g->n_operations++] = d;
}

static cudnnBackendDescriptor_t describe_window(rig_graph *g, int64_t stride, int64_t padding,
                                                int64_t dilation) {
  const int64_t strides[] = {stride, stride}, paddings[] = {padding, padding},
                dilations[] = {dilation, dilation};
  cudnnBackendDescriptor_t c = rig_create(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  rig_set_enum(g, c, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  rig_set_enum(g, c, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  rig_set_int(g, c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
  rig_set(g, c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides);
  rig_set(g, c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, paddings);
  rig_set(g, c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, paddings);
  rig_set(g, c, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilations);
  rig_finalize(g, c);
  return c;
}

void rig_convolve(rig_graph *g, int kind, int x, int w, int y, int64_t stride, int64_t padding,
                  int64_t dilation) {
  static const int names[3][6] = {
      {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
      {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
      {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA}};
  const int *name = names[kind - CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR];
  const float one = 1, zero = 0;
  cudnnBackendDescriptor_t window = describe_window(g, stride, padding, dilation), d = rig_create(g, kind);
  set_tensor(g, d, name[0], x);
  set_tensor(g, d, name[1], w);
  set_tensor(g, d, name[2], y);
  rig_set_part(g, d, name[3], window);
  rig_set(g, d, name[4], CUDNN_TYPE_FLOAT, 1, &one);
  rig_set(g, d, name[5], CUDNN_TYPE_FLOAT, 1, &zero);
  add_operation(g, d);
}

static cudnnBackendDescriptor_t describe_mode(rig_graph *g, int mode, int64_t axis) {
  cudnnBackendDescriptor_t p = rig_create(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  rig_set_enum(g, p, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  rig_set_enum(g, p, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  if (axis >= 0) rig_set_int(g, p, CUDNN_ATTR_POINTWISE_AXIS, axis);
  rig_finalize(g, p);
  return p;
}

static void add_pointwise(rig_graph *g, cudnnBackendDescriptor_t mode, const int tensors[6]) {
  static const int names[] = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,  CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                              CUDNN_ATTR_OPERATION_POINTWISE_TDESC,  CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
                              CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC};
  cudnnBackendDescriptor_t d = rig_create(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  rig_set_part(g, d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode);
  for (int i = 0; i < 6; i++) set_tensor(g, d, names[i], tensors[i]);
  add_operation(g, d);
}

void rig_pointwise(rig_graph *g, int mode, int x, int b, int t, int y) {
  add_pointwise(g, describe_mode(g, mode, -1), (const int[]){x, b, t, y, -1, -1});
}

void rig_index(rig_graph *g, int64_t axis, int x, int y) {
  add_pointwise(g, describe_mode(g, CUDNN_POINTWISE_GEN_INDEX, axis), (const int[]){x, -1, -1, y, -1, -1});
}

void rig_backward(rig_graph *g, int mode, int dy, int x, int dx) {
  add_pointwise(g, describe_mode(g, mode, -1), (const int[]){x, -1, -1, -1, dy, dx});
}

static void add_tensors(rig_graph *g, cudnnBackendDescriptor_t d, const int *names, const int *tensors,
                        int n) {
  for (int i = 0; i < n; i++) set_tensor(g, d, names[i], tensors[i]);
  add_operation(g, d);
}

void rig_statistics(rig_graph *g, int x, int sum, int squares) {
  static const int names[] = {CUDNN_ATTR_OPERATION_GENSTATS_XDESC, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC,
                              CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC};
  cudnnBackendDescriptor_t d = rig_create(g, CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  rig_set_enum(g, d, CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM);
  rig_set_enum(g, d, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  add_tensors(g, d, names, (const int[]){x, sum, squares}, 3);
}

void rig_reduce(rig_graph *g, int mode, int x, int y) {
  static const int names[] = {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_ATTR_OPERATION_REDUCTION_YDESC};
  cudnnBackendDescriptor_t r = rig_create(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  rig_set_enum(g, r, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, mode);
  rig_set_enum(g, r, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  rig_finalize(g, r);
  cudnnBackendDescriptor_t d = rig_create(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  rig_set_part(g, d, CUDNN_ATTR_OPERATION_REDUCTION_DESC, r);
  add_tensors(g, d, names, (const int[]){x, y}, 2);
}

void rig_multiply_lengths(rig_graph *g, int a, int b, int c, int rows, int columns, int inner) {
  static const int names[] = {CUDNN_ATTR_OPERATION_MATMUL_ADESC,
                              CUDNN_ATTR_OPERATION_MATMUL_BDESC,
                              CUDNN_ATTR_OPERATION_MATMUL_CDESC,
                              CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC,
                              CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC,
                              CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC};
  cudnnBackendDescriptor_t m = rig_create(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  rig_set_enum(g, m, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  rig_finalize(g, m);
  cudnnBackendDescriptor_t d = rig_create(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  rig_set_part(g, d, CUDNN_ATTR_OPERATION_MATMUL_DESC, m);
  add_tensors(g, d, names, (const int[]){a, b, c, rows, columns, inner}, 6);
}

void rig_multiply(rig_graph *g, int a, int b, int c) { rig_multiply_lengths(g, a, b, c, -1, -1, -1); }

void rig_reshape(rig_graph *g, int x, int y) {
  static const int names[] = {CUDNN_ATTR_OPERATION_RESHAPE_XDESC, CUDNN_ATTR_OPERATION_RESHAPE_YDESC};
  add_tensors(g, rig_create(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR), names, (const int[]){x, y}, 2);
}

void rig_bn_finalize(rig_graph *g, const int tensors[15]) {
  int names[15];
  for (int i = 0; i < 15; i++) names[i] = CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SUM_DESC + i;
  cudnnBackendDescriptor_t d = rig_create(g, CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR);
  rig_set_enum(g, d, CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE, CUDNN_TYPE_BN_FINALIZE_STATS_MODE,
               CUDNN_BN_FINALIZE_STATISTICS_TRAINING);
  rig_set_enum(g, d, CUDNN_ATTR_OPERATION_BN_FINALIZE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  add_tensors(g, d, names, tensors, 15);
}

void rig_bn_backward(rig_graph *g, const int tensors[10]) {
  int names[10];
  for (int i = 0; i < 10; i++) names[i] = CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC + i;
  cudnnBackendDescriptor_t d = rig_create(g, CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR);
  rig_set_enum(g, d, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  add_tensors(g, d, names, tensors, 10);
}

/* ---- plans ---- */

void rig_close(rig_graph *g) {
  g->graph = rig_create(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (g->handle) rig_set(g, g->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle);
  rig_set(g, g->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->n_operations,
          g->operations);
  rig_finalize(g, g->graph);
}

const char *rig_device_json(int arch) {
  static char json[1024];
  snprintf(
      json, sizeof json,
      "{\"deviceVer\":%d,\"multiProcessorCount\":%d,\"deviceName\":\"%s\",\"maxGridSize\":[2147483647,65535,"
      "65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,\"warpSize\":32,"
      "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%d,"
      "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,"
      "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"cudaDeviceId\":0,"
      "\"isTccDriver\":0,\"supportCoopLaunch\":1,\"smClockRateKHz\":1980000,\"memClockRateKHz\":2619000,"
      "\"l2CacheSize\":52428800,\"totalGlobalMem\":85899345920,\"driverVer\":13000}",
      arch * 10, arch == 90 ? 132 : 108, arch == 90 ? "NVIDIA H200" : "NVIDIA A100-SXM4-80GB",
      arch == 90 ? 232448 : 166912);
  return json;
}

cudnnBackendDescriptor_t rig_device(rig_graph *g, int arch) {
  const char *json = rig_device_json(arch);
  cudnnBackendDescriptor_t d = rig_create(g, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  rig_set(g, d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)strlen(json) + 1, json);
  rig_finalize(g, d);
  return d;
}

int rig_ask(rig_graph *g, int mode, cudnnBackendDescriptor_t device,
            cudnnBackendDescriptor_t configs[RIG_CONFIGS]) {
  int64_t n = -1;
  cudnnBackendDescriptor_t h = rig_create(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  rig_set_part(g, h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, g->graph);
  rig_set_enum(g, h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (device) rig_set_part(g, h, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
  rig_finalize(g, h);
  for (int i = 0; i < RIG_CONFIGS; i++) configs[i] = rig_create(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  DO(cudnnBackendGetAttribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, RIG_CONFIGS,
                              &n, configs));
  return g->status == CUDNN_STATUS_SUCCESS ? (int)n : -1;
}

cudnnBackendDescriptor_t rig_plan(rig_graph *g, cudnnBackendDescriptor_t config,
                                  cudnnBackendDescriptor_t device) {
  cudnnBackendDescriptor_t p = rig_create(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  rig_set_part(g, p, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (device) rig_set_part(g, p, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
  if (!device && g->handle) rig_set(g, p, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle);
  rig_finalize(g, p);
  return p;
}

int64_t rig_workspace(rig_graph *g, cudnnBackendDescriptor_t plan) {
  int64_t bytes = 0, n;
  DO(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n,
                              &bytes));
  return bytes;
}

cudnnBackendDescriptor_t rig_pack(rig_graph *g, void *workspace) {
  int64_t uids[RIG_TENSORS], n = 0;
  void *pointers[RIG_TENSORS];
  for (int i = 0; i < g->n_tensors; i++) {
    if (g->tensors[i].kind == RIG_VIRTUAL) continue;
    uids[n] = g->tensors[i].uid;
    pointers[n++] = g->tensors[i].memory;
  }
  cudnnBackendDescriptor_t p = rig_create(g, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  rig_set(g, p, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, uids);
  rig_set(g, p, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, pointers);
  if (workspace) rig_set(g, p, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  rig_finalize(g, p);
  return p;
}

void rig_execute(rig_graph *g, int mode, int number) {
  cudnnBackendDescriptor_t configs[RIG_CONFIGS];
  int n = rig_ask(g, mode, NULL, configs);
  if (n <= number) keep(g, CUDNN_STATUS_NOT_SUPPORTED, __LINE__);
  cudnnBackendDescriptor_t plan = rig_plan(g, configs[number], NULL);
  int64_t bytes = rig_workspace(g, plan);
  cudnnBackendDescriptor_t pack = rig_pack(g, bytes ? rig_memory(bytes) : NULL);
  DO(cudnnSetStream(g->handle, (cudaStream_t)rig_cuda()->stream));
  DO(cudnnBackendExecute(g->handle, plan, pack));
  /* The plan must outlive its work. */
  if (g->status == CUDNN_STATUS_SUCCESS) CUDA_OK(rig_cuda()->cuStreamSynchronize(rig_cuda()->stream));
}

/* ---- values ---- */

static int64_t size_of(const rig_tensor *t) {
  switch (t->type) {
  case CUDNN_DATA_HALF:
  case CUDNN_DATA_BFLOAT16: return 2;
  case CUDNN_DATA_BOOLEAN: return 1;
  default: return 4;
  }
}

static int64_t span_of(const rig_tensor *t) {
  int64_t last = 0;
  for (int i = 0; i < t->rank; i++) last += (t->dims[i] - 1) * t->strides[i];
  return last + 1;
}

int64_t rig_elements(const rig_graph *g, int tensor) {
  int64_t n = 1;
  for (int i = 0; i < g->tensors[tensor].rank; i++) n *= g->tensors[tensor].dims[i];
  return n;
}

/* The offset of element `at` in row-major order. */
static int64_t offset_of(const rig_tensor *t, int64_t at) {
  int64_t offset = 0;
  for (int i = t->rank - 1; i >= 0; at /= t->dims[i--]) offset += at % t->dims[i] * t->strides[i];
  return offset;
}

static double get(const rig_tensor *t, const void *from, int64_t at) {
  switch (t->type) {
  case CUDNN_DATA_HALF: return (double)tn_f32_of_f16(((const uint16_t *)from)[at]);
  case CUDNN_DATA_BFLOAT16: return (double)tn_f32_of_bf16(((const uint16_t *)from)[at]);
  case CUDNN_DATA_BOOLEAN: return ((const uint8_t *)from)[at];
  case CUDNN_DATA_INT32: return ((const int32_t *)from)[at];
  default: return (double)((const float *)from)[at];
  }
}

static void put(const rig_tensor *t, void *to, int64_t at, double value) {
  switch (t->type) {
  case CUDNN_DATA_HALF: ((uint16_t *)to)[at] = tn_f16_of_f32((float)value); break;
  case CUDNN_DATA_BFLOAT16: ((uint16_t *)to)[at] = tn_bf16_of_f32((float)value); break;
  case CUDNN_DATA_BOOLEAN: ((uint8_t *)to)[at] = value != 0; break;
  case CUDNN_DATA_INT32: ((int32_t *)to)[at] = (int32_t)value; break;
  default: ((float *)to)[at] = (float)value; break;
  }
}

double *rig_read(const rig_graph *g, int tensor) {
  const rig_tensor *t = &g->tensors[tensor];
  int64_t n = rig_elements(g, tensor), bytes = span_of(t) * size_of(t);
  double *values = malloc((size_t)n * sizeof *values);
  void *copy = malloc((size_t)bytes);
  if (!values || !copy) abort();
  rig_download(copy, t->memory, bytes);
  for (int64_t i = 0; i < n; i++) values[i] = get(t, copy, offset_of(t, i));
  free(copy);
  return values;
}

void rig_write(const rig_graph *g, int tensor, const double *values) {
  const rig_tensor *t = &g->tensors[tensor];
  int64_t bytes = span_of(t) * size_of(t);
  void *copy = malloc((size_t)bytes);
  if (!copy) abort();
  memset(copy, 0x7e, (size_t)bytes);
  for (int64_t i = 0; i < rig_elements(g, tensor); i++) put(t, copy, offset_of(t, i), values[i]);
  rig_upload(t->memory, copy, bytes);
  free(copy);
}

void rig_fill(rig_graph *g, unsigned seed) {
  for (int i = 0; i < g->n_tensors; i++) {
    rig_tensor *t = &g->tensors[i];
    if (t->kind != RIG_MEMORY) continue;
    int64_t n = rig_elements(g, i);
    double *values = malloc((size_t)n * sizeof *values);
    if (!values) abort();
    for (int64_t j = 0; j < n; j++) values[j] = (double)(rand_r(&seed) % 2001 - 1000) / 1000;
    t->memory = rig_memory(span_of(t) * size_of(t));
    rig_write(g, i, values);
    free(values);
  }
}
