/* tests/fakecuda/cudnn/tests/rig.h: for the tests: a cuDNN (the double, or the library), the driver's double,
 * graphs in a few calls. A call that fails keeps its status in the graph, and the calls after it do nothing.
 */
#pragma once

#include <cuda.h>
#include <cudnn_graph.h>
#include <stdbool.h>
#include <stdint.h>
#include "tests/fakecuda/cudnn/double.h"

#define RIG_ENTRIES(X)                                                                                       \
  X(cudnnGetVersion)                                                                                         \
  X(cudnnGetCudartVersion)                                                                                   \
  X(cudnnGetProperty)                                                                                        \
  X(cudnnGetErrorString)                                                                                     \
  X(cudnnGetLastErrorString)                                                                                 \
  X(cudnnCreate)                                                                                             \
  X(cudnnDestroy)                                                                                            \
  X(cudnnSetStream)                                                                                          \
  X(cudnnGetStream)                                                                                          \
  X(cudnnBackendCreateDescriptor)                                                                            \
  X(cudnnBackendDestroyDescriptor)                                                                           \
  X(cudnnBackendSetAttribute)                                                                                \
  X(cudnnBackendGetAttribute)                                                                                \
  X(cudnnBackendFinalize)                                                                                    \
  X(cudnnBackendExecute)                                                                                     \
  X(cudnnBackendPopulateCudaGraph)                                                                           \
  X(cudnnBackendUpdateCudaGraph)

typedef struct rig_library {
#define MEMBER(name) __typeof__(&name) name;
  RIG_ENTRIES(MEMBER)
#undef MEMBER
  __typeof__(&fakecudnn_why) fakecudnn_why; /* of the double alone */
  __typeof__(&fakecudnn_live) fakecudnn_live;
} rig_library;

/* NULL, or the name of a missing function. */
const char *rig_open(const char *path, rig_library *library);
/* The double, opened at the first call. */
const rig_library *rig_double(void);

/* ---- the driver's double ---- */

#define RIG_DRIVER(X)                                                                                        \
  X(cuInit)                                                                                                  \
  X(cuDevicePrimaryCtxRetain)                                                                                \
  X(cuDevicePrimaryCtxRelease_v2)                                                                            \
  X(cuCtxSetCurrent)                                                                                         \
  X(cuCtxSynchronize)                                                                                        \
  X(cuMemAlloc_v2)                                                                                           \
  X(cuMemFree_v2)                                                                                            \
  X(cuMemcpyHtoDAsync_v2)                                                                                    \
  X(cuMemcpyDtoHAsync_v2)                                                                                    \
  X(cuStreamCreate)                                                                                          \
  X(cuStreamDestroy_v2)                                                                                      \
  X(cuStreamSynchronize)                                                                                     \
  X(cuStreamBeginCapture_v2)                                                                                 \
  X(cuStreamEndCapture)                                                                                      \
  X(cuGraphInstantiateWithFlags)                                                                             \
  X(cuGraphLaunch)                                                                                           \
  X(cuGraphExecDestroy)                                                                                      \
  X(cuGraphDestroy)

typedef struct rig_driver {
#define MEMBER(name) __typeof__(&name) name;
  RIG_DRIVER(MEMBER)
#undef MEMBER
  CUcontext context;
  CUstream stream;
} rig_driver;

/* Opens the driver's double with a current context and a stream at the first call. */
const rig_driver *rig_cuda(void);
/* A handle of the double, in that context, made at the first call. */
cudnnHandle_t rig_handle(void);
/* A teardown of cmocka's: destroys handle, stream and context; not 0: handles or descriptors are left. */
int rig_leave(void **state);
/* Device memory; freed by rig_free_memory. */
void *rig_memory(int64_t bytes);
void rig_free_memory(void);
void rig_upload(void *to, const void *from, int64_t bytes);
/* Waits for the stream first. */
void rig_download(void *to, const void *from, int64_t bytes);

/* ---- graphs ---- */

enum { RIG_OWNED = 400, RIG_TENSORS = 64, RIG_OPERATIONS = 40, RIG_RANK = 6, RIG_CONFIGS = 40 };
enum { RIG_MEMORY, RIG_VIRTUAL, RIG_VALUE };

typedef struct rig_tensor {
  cudnnBackendDescriptor_t descriptor;
  int type, kind, rank;
  int64_t uid, dims[RIG_RANK], strides[RIG_RANK];
  void *memory; /* of the device; RIG_VALUE: &value */
  union {
    float value;
    int64_t count;
  };
} rig_tensor;

typedef struct rig_graph {
  const rig_library *dnn;
  cudnnHandle_t handle; /* NULL: none */
  cudnnStatus_t status; /* of the first call that failed */
  int line;             /* which call that was; for the reader of a failed test */
  int n_owned, n_tensors, n_operations;
  cudnnBackendDescriptor_t owned[RIG_OWNED], operations[RIG_OPERATIONS], graph;
  rig_tensor tensors[RIG_TENSORS];
} rig_graph;

rig_graph *rig_new(const rig_library *dnn, cudnnHandle_t handle);
void rig_free(rig_graph *g);

cudnnBackendDescriptor_t rig_create(rig_graph *g, int type);
void rig_set(rig_graph *g, cudnnBackendDescriptor_t d, int name, int type, int64_t n, const void *values);
void rig_set_int(rig_graph *g, cudnnBackendDescriptor_t d, int name, int64_t value);
void rig_set_enum(rig_graph *g, cudnnBackendDescriptor_t d, int name, int type, int value);
void rig_set_part(rig_graph *g, cudnnBackendDescriptor_t d, int name, cudnnBackendDescriptor_t part);
void rig_finalize(rig_graph *g, cudnnBackendDescriptor_t d);

/* Each returns the tensor's number; its uid is the number plus 1. `strides` NULL: row-major. */
int rig_add(rig_graph *g, int type, int kind, int rank, const int64_t *dims, const int64_t *strides);
/* Channels innermost. */
int rig_image(rig_graph *g, int type, int kind, int64_t n, int64_t c, int64_t h, int64_t w);
int rig_matrix(rig_graph *g, int type, int kind, int64_t b, int64_t h, int64_t m, int64_t n);
int rig_value(rig_graph *g, float value);
int rig_count(rig_graph *g, int64_t count);

void rig_convolve(rig_graph *g, int kind, int x, int w, int y, int64_t stride, int64_t padding,
                  int64_t dilation);
/* b, t: -1 where the mode has none. */
void rig_pointwise(rig_graph *g, int mode, int x, int b, int t, int y);
void rig_index(rig_graph *g, int64_t axis, int x, int y);
void rig_backward(rig_graph *g, int mode, int dy, int x, int dx);
void rig_statistics(rig_graph *g, int x, int sum, int squares);
void rig_reduce(rig_graph *g, int mode, int x, int y);
void rig_multiply(rig_graph *g, int a, int b, int c);
/* The lengths are tensors of i32 (batch, 1, 1, 1), or -1. */
void rig_multiply_lengths(rig_graph *g, int a, int b, int c, int rows, int columns, int inner);
void rig_reshape(rig_graph *g, int x, int y);
/* The tensors in the order of the attributes' names: Y_SUM to EXP_AVERATE_FACTOR. */
void rig_bn_finalize(rig_graph *g, const int tensors[15]);
/* MEAN to EQ_BIAS. */
void rig_bn_backward(rig_graph *g, const int tensors[10]);

/* Finalizes the graph. */
void rig_close(rig_graph *g);
/* The JSON of a device. */
const char *rig_device_json(int arch);
cudnnBackendDescriptor_t rig_device(rig_graph *g, int arch);
/* Configurations of a mode; `device` may be NULL. The count; -1: the heuristics refuse, with g->status. */
int rig_ask(rig_graph *g, int mode, cudnnBackendDescriptor_t device,
            cudnnBackendDescriptor_t configs[RIG_CONFIGS]);
cudnnBackendDescriptor_t rig_plan(rig_graph *g, cudnnBackendDescriptor_t config,
                                  cudnnBackendDescriptor_t device);
int64_t rig_workspace(rig_graph *g, cudnnBackendDescriptor_t plan);
/* A pack of the memory and values of all tensors. */
cudnnBackendDescriptor_t rig_pack(rig_graph *g, void *workspace);
/* Executes configuration `number` of a mode of the heuristics on the rig's stream. */
void rig_execute(rig_graph *g, int mode, int number);

/* Memory for each tensor, filled with numbers between -1 and 1 from a seed. */
void rig_fill(rig_graph *g, unsigned seed);
/* The elements of a tensor, row-major, as f64. The caller frees them. */
double *rig_read(const rig_graph *g, int tensor);
void rig_write(const rig_graph *g, int tensor, const double *values);
int64_t rig_elements(const rig_graph *g, int tensor);
