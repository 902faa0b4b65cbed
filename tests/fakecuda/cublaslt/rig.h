/* tests/fakecuda/cublaslt/rig.h: a stand-in for the double of the driver (work runs at once, device memory is
 * one block), and products described by a struct, for the tests of the double of cuBLASLt. The program
 * exports its symbols. */
#pragma once

#include <stdbool.h>
#include <cublasLt.h>

/* Every entry point of the double. */
#define RIG_ENTRIES(X)                                                                                       \
  X(cublasLtCreate)                                                                                          \
  X(cublasLtDestroy)                                                                                         \
  X(cublasLtGetVersion)                                                                                      \
  X(cublasLtGetCudartVersion)                                                                                \
  X(cublasLtGetStatusName)                                                                                   \
  X(cublasLtGetStatusString)                                                                                 \
  X(cublasLtMatmulDescInit_internal)                                                                         \
  X(cublasLtMatmulDescCreate)                                                                                \
  X(cublasLtMatmulDescDestroy)                                                                               \
  X(cublasLtMatmulDescSetAttribute)                                                                          \
  X(cublasLtMatmulDescGetAttribute)                                                                          \
  X(cublasLtMatrixLayoutInit_internal)                                                                       \
  X(cublasLtMatrixLayoutCreate)                                                                              \
  X(cublasLtMatrixLayoutDestroy)                                                                             \
  X(cublasLtMatrixLayoutSetAttribute)                                                                        \
  X(cublasLtMatrixLayoutGetAttribute)                                                                        \
  X(cublasLtMatmulPreferenceInit_internal)                                                                   \
  X(cublasLtMatmulPreferenceCreate)                                                                          \
  X(cublasLtMatmulPreferenceDestroy)                                                                         \
  X(cublasLtMatmulPreferenceSetAttribute)                                                                    \
  X(cublasLtMatmulPreferenceGetAttribute)                                                                    \
  X(cublasLtMatmulAlgoGetHeuristic)                                                                          \
  X(cublasLtMatmulAlgoConfigGetAttribute)                                                                    \
  X(cublasLtMatmulAlgoCheck)                                                                                 \
  X(cublasLtMatmul)

typedef struct rig_library {
#define MEMBER(name) __typeof__(&name) name;
  RIG_ENTRIES(MEMBER)
#undef MEMBER
  const char *(*fakecublaslt_why)(void);
  int64_t (*fakecublaslt_live)(void);
} rig_library;

/* Opens a library by dlopen. Returns the first entry point that it lacks, or NULL. `lt` may be NULL. */
const char *rig_open(const char *path, rig_library *lt);
/* The double, opened once: its path is that of the build. */
const rig_library *rig_double(void);

/* Device memory: `bytes` from a block, aligned to 256, filled with NaN. rig_reset takes all of it back. */
void *rig_device(int64_t bytes);
void rig_reset(void);
/* The calls of an entry point since rig_reset; the next call of `name` fails after rig_fail. */
int rig_calls(const char *name);
void rig_fail(const char *name);
/* The next fakecuda_enqueue returns `result`, and runs the work only where that is CUDA_SUCCESS. */
void rig_refuse_work(int result);

typedef struct rig_matrix {
  cudaDataType type;
  int row_major, rows, columns, ld, stride;
} rig_matrix;

/* A product with everything that it needs. Members may be changed between the calls below. */
typedef struct rig_product {
  cublasComputeType_t compute;
  cudaDataType scale;
  int transa, transb, m, n, k, batch;
  rig_matrix matrix[4]; /* A, B, C, D */
  uint32_t epilogue;
  int pointer_mode;
  int32_t bias_type, aux_type;
  int64_t bias_stride, aux_ld, aux_stride;
  void *pointer[4], *bias, *aux, *workspace;
  const void *alpha, *beta;
  uint64_t workspace_bytes, max_workspace;
  uint32_t alignment[4], schemes;
  uint64_t flags;
  cublasLtMatmulDesc_t desc;
  cublasLtMatrixLayout_t layout[4];
  cublasLtMatmulPreference_t preference;
} rig_product;

/* Column-major matrices without gaps, f32, alpha 1, beta 0, no memory yet. */
rig_product rig_plain(int m, int n, int k);
/* Sets type, order and strides of all matrices again. */
void rig_arrange(rig_product *product, cudaDataType inputs, cudaDataType outputs, bool row_major);
/* Device memory for matrices, bias, aux and workspace; random elements. */
void rig_fill(rig_product *product, unsigned seed);
/* Makes the descriptors of the members; rig_close destroys them. */
void rig_describe(rig_product *product);
void rig_close(rig_product *product);
/* Calls with the handle of the rig. */
cublasStatus_t rig_heuristic(rig_product *product, int requested, cublasLtMatmulHeuristicResult_t *results,
                             int *count);
cublasStatus_t rig_multiply(rig_product *product, const cublasLtMatmulAlgo_t *algo);
cublasLtHandle_t rig_handle(void);

/* Elements as double, and the place of one. */
double rig_load(cudaDataType type, const void *base, int64_t index);
void rig_store(cudaDataType type, void *base, int64_t index, double value);
int64_t rig_place(const rig_matrix *matrix, int item, int row, int column);
