/* tests/fakecuda/cublaslt/rig.c: see rig.h. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backends/shared/half.h"
#include "tests/fakecuda/cublaslt/double.h"
#include "tests/fakecuda/cublaslt/rig.h"
#include "tests/fakecuda/driver/task.h"

enum { DEVICE_BYTES = 1 << 26, COUNTERS = 32 };

static const char *const entry_names[] = {
#define NAME(name) #name,
    RIG_ENTRIES(NAME)
#undef NAME
};
static _Alignas(256) char device[DEVICE_BYTES];
static int64_t device_used;
static int calls[COUNTERS];
static const char *failing;
static int next_result;

static int find_entry(const char *name) {
  for (int i = 0; i < (int)(sizeof entry_names / sizeof *entry_names); i++) {
    if (strcmp(entry_names[i], name) == 0) return i;
  }
  fprintf(stderr, "%s is not in RIG_ENTRIES\n", name);
  abort();
}

/* ---- the stand-in of the driver
 * ---------------------------------------------------------------------------- */

FAKELT_EXPORT int fakecuda_call(const char *name) {
  calls[find_entry(name)]++;
  if (!failing || strcmp(failing, name) != 0) return 0;
  failing = NULL;
  return 1;
}

FAKELT_EXPORT int fakecuda_is_device_memory(const void *from, size_t bytes) {
  uintptr_t start = (uintptr_t)device, at = (uintptr_t)from;
  return at >= start && at - start <= (uintptr_t)device_used &&
         bytes <= (uintptr_t)device_used - (at - start);
}

FAKELT_EXPORT CUresult fakecuda_enqueue(CUstream stream, const char *name, int (*body)(void *arg),
                                        const void *arg, size_t bytes) {
  (void)stream, (void)name;
  _Alignas(16) char copy[1024];
  CUresult result = (CUresult)next_result;
  next_result = CUDA_SUCCESS;
  if (bytes > sizeof copy) return CUDA_ERROR_INVALID_VALUE;
  if (result != CUDA_SUCCESS) return result;
  memcpy(copy, arg, bytes);
  return body(copy) == 0 ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}

void *rig_device(int64_t bytes) {
  int64_t start = (device_used + 255) / 256 * 256;
  if (bytes > DEVICE_BYTES - start) abort();
  device_used = start + bytes;
  memset(device + start, 0xff, (size_t)bytes);
  return device + start;
}

void rig_reset(void) {
  device_used = 0;
  memset(calls, 0, sizeof calls);
  failing = NULL;
  next_result = CUDA_SUCCESS;
}

int rig_calls(const char *name) { return calls[find_entry(name)]; }
void rig_fail(const char *name) { failing = entry_names[find_entry(name)]; }
void rig_refuse_work(int result) { next_result = result; }

/* ---- libraries
 * --------------------------------------------------------------------------------------------- */

const char *rig_open(const char *path, rig_library *lt) {
  rig_library found = {0};
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return dlerror();
#define FIND(name)                                                                                           \
  if (!(found.name = (__typeof__(found.name))dlsym(library, #name))) return #name;
  RIG_ENTRIES(FIND)
#undef FIND
  found.fakecublaslt_why = (__typeof__(found.fakecublaslt_why))dlsym(library, "fakecublaslt_why");
  found.fakecublaslt_live = (__typeof__(found.fakecublaslt_live))dlsym(library, "fakecublaslt_live");
  if (lt) *lt = found;
  return NULL;
}

const rig_library *rig_double(void) {
  static rig_library lt;
  if (!lt.cublasLtCreate) {
    const char *missing = rig_open(FAKECUBLASLT_PATH, &lt);
    if (missing) fprintf(stderr, "%s: %s\n", FAKECUBLASLT_PATH, missing), abort();
  }
  return &lt;
}

cublasLtHandle_t rig_handle(void) {
  static cublasLtHandle_t handle;
  if (!handle && rig_double()->cublasLtCreate(&handle) != CUBLAS_STATUS_SUCCESS) abort();
  return handle;
}

/* ---- products
 * ---------------------------------------------------------------------------------------------- */

double rig_load(cudaDataType type, const void *base, int64_t index) {
  if (type == CUDA_R_32F) return ((const float *)base)[index];
  if (type == CUDA_R_64F) return ((const double *)base)[index];
  uint16_t bits = ((const uint16_t *)base)[index];
  return type == CUDA_R_16F ? tn_f32_of_f16(bits) : tn_f32_of_bf16(bits);
}

void rig_store(cudaDataType type, void *base, int64_t index, double value) {
  if (type == CUDA_R_32F)
    ((float *)base)[index] = (float)value;
  else if (type == CUDA_R_64F)
    ((double *)base)[index] = value;
  else
    ((uint16_t *)base)[index] =
        type == CUDA_R_16F ? tn_f16_of_f32((float)value) : tn_bf16_of_f32((float)value);
}

int64_t rig_place(const rig_matrix *matrix, int item, int row, int column) {
  return (int64_t)item * matrix->stride +
         (matrix->row_major ? (int64_t)row * matrix->ld + column : (int64_t)column * matrix->ld + row);
}

static int lines_of(const rig_matrix *matrix) { return matrix->row_major ? matrix->rows : matrix->columns; }

void rig_arrange(rig_product *p, cudaDataType inputs, cudaDataType outputs, bool row_major) {
  const int sizes[4][2] = {{p->transa ? p->k : p->m, p->transa ? p->m : p->k},
                           {p->transb ? p->n : p->k, p->transb ? p->k : p->n},
                           {p->m, p->n},
                           {p->m, p->n}};
  for (int i = 0; i < 4; i++) {
    rig_matrix *matrix = &p->matrix[i];
    int line = row_major ? sizes[i][1] : sizes[i][0];
    *matrix =
        (rig_matrix){i < 2 ? inputs : outputs, row_major, sizes[i][0], sizes[i][1], (line + 7) / 8 * 8, 0};
    matrix->stride = matrix->ld * lines_of(matrix);
  }
  p->aux_ld = (p->m + 127) / 128 * 128;
  p->aux_stride = p->aux_ld * p->n;
}

rig_product rig_plain(int m, int n, int k) {
  static const float one = 1, zero = 0;
  rig_product p = {.compute = CUBLAS_COMPUTE_32F,
                   .scale = CUDA_R_32F,
                   .m = m,
                   .n = n,
                   .k = k,
                   .batch = 1,
                   .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
                   .bias_type = -1,
                   .aux_type = -1,
                   .alpha = &one,
                   .beta = &zero,
                   .max_workspace = 1 << 24,
                   .workspace_bytes = 1 << 24,
                   .alignment = {256, 256, 256, 256},
                   .schemes = CUBLASLT_REDUCTION_SCHEME_MASK,
                   .flags = UINT64_MAX};
  rig_arrange(&p, CUDA_R_32F, CUDA_R_32F, false);
  return p;
}

static double draw(unsigned *seed) { return (double)(rand_r(seed) % 2001 - 1000) / 1000; }

static void fill_matrix(const rig_product *p, int i, unsigned *seed) {
  const rig_matrix *matrix = &p->matrix[i];
  for (int item = 0; item < p->batch; item++) {
    for (int row = 0; row < matrix->rows; row++) {
      for (int column = 0; column < matrix->columns; column++) {
        rig_store(matrix->type, p->pointer[i], rig_place(matrix, item, row, column), draw(seed));
      }
    }
  }
}

void rig_fill(rig_product *p, unsigned seed) {
  int length = p->m > p->n ? p->m : p->n;
  for (int i = 0; i < 4; i++) {
    const rig_matrix *matrix = &p->matrix[i];
    int64_t elements = (int64_t)matrix->stride * (p->batch - 1) + (int64_t)matrix->ld * lines_of(matrix);
    p->pointer[i] = rig_device(elements * (matrix->type == CUDA_R_64F   ? 8
                                           : matrix->type == CUDA_R_32F ? 4
                                                                        : 2));
    if (i < 3) fill_matrix(p, i, &seed);
  }
  if (p->batch > 1) p->bias_stride = length;
  p->bias = rig_device((int64_t)length * p->batch * 4);
  for (int i = 0; i < length * p->batch; i++) rig_store(p->matrix[3].type, p->bias, i, draw(&seed));
  p->aux = rig_device((p->aux_stride * (p->batch - 1) + p->aux_ld * p->n) * 4);
  p->workspace = rig_device((int64_t)p->workspace_bytes);
}

#define OK(call)                                                                                             \
  do {                                                                                                       \
    if ((call) != CUBLAS_STATUS_SUCCESS) fprintf(stderr, "%s\n", rig_double()->fakecublaslt_why()), abort(); \
  } while (0)
#define SET(kind, object, attribute, value)                                                                  \
  OK(lt->kind##SetAttribute(object, attribute, &(value), sizeof(value)))

static void describe_matrix(const rig_product *p, int i, cublasLtMatrixLayout_t *layout) {
  const rig_library *lt = rig_double();
  const rig_matrix *matrix = &p->matrix[i];
  int32_t order = matrix->row_major ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL, batch = p->batch;
  int64_t stride = matrix->stride;
  OK(lt->cublasLtMatrixLayoutCreate(layout, matrix->type, (uint64_t)matrix->rows, (uint64_t)matrix->columns,
                                    matrix->ld));
  SET(cublasLtMatrixLayout, *layout, CUBLASLT_MATRIX_LAYOUT_ORDER, order);
  SET(cublasLtMatrixLayout, *layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batch);
  SET(cublasLtMatrixLayout, *layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
}

static void describe_epilogue(rig_product *p) {
  const rig_library *lt = rig_double();
  SET(cublasLtMatmulDesc, p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, p->epilogue);
  SET(cublasLtMatmulDesc, p->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p->bias);
  SET(cublasLtMatmulDesc, p->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, p->bias_type);
  SET(cublasLtMatmulDesc, p->desc, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, p->bias_stride);
  SET(cublasLtMatmulDesc, p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p->aux);
  SET(cublasLtMatmulDesc, p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p->aux_ld);
  SET(cublasLtMatmulDesc, p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, p->aux_stride);
  SET(cublasLtMatmulDesc, p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, p->aux_type);
}

void rig_describe(rig_product *p) {
  const rig_library *lt = rig_double();
  int32_t operations[2] = {p->transa ? CUBLAS_OP_T : CUBLAS_OP_N, p->transb ? CUBLAS_OP_T : CUBLAS_OP_N};
  for (int i = 0; i < 4; i++) describe_matrix(p, i, &p->layout[i]);
  OK(lt->cublasLtMatmulDescCreate(&p->desc, p->compute, p->scale));
  SET(cublasLtMatmulDesc, p->desc, CUBLASLT_MATMUL_DESC_TRANSA, operations[0]);
  SET(cublasLtMatmulDesc, p->desc, CUBLASLT_MATMUL_DESC_TRANSB, operations[1]);
  SET(cublasLtMatmulDesc, p->desc, CUBLASLT_MATMUL_DESC_POINTER_MODE, p->pointer_mode);
  describe_epilogue(p);
  OK(lt->cublasLtMatmulPreferenceCreate(&p->preference));
  SET(cublasLtMatmulPreference, p->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, p->max_workspace);
  SET(cublasLtMatmulPreference, p->preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, p->schemes);
  SET(cublasLtMatmulPreference, p->preference, CUBLASLT_MATMUL_PREF_IMPL_MASK, p->flags);
  for (int i = 0; i < 4; i++) {
    SET(cublasLtMatmulPreference, p->preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + i,
        p->alignment[i]);
  }
}

void rig_close(rig_product *p) {
  const rig_library *lt = rig_double();
  for (int i = 0; i < 4; i++) OK(lt->cublasLtMatrixLayoutDestroy(p->layout[i]));
  OK(lt->cublasLtMatmulDescDestroy(p->desc));
  OK(lt->cublasLtMatmulPreferenceDestroy(p->preference));
}

cublasStatus_t rig_heuristic(rig_product *p, int requested, cublasLtMatmulHeuristicResult_t *results,
                             int *count) {
  return rig_double()->cublasLtMatmulAlgoGetHeuristic(rig_handle(), p->desc, p->layout[0], p->layout[1],
                                                      p->layout[2], p->layout[3], p->preference, requested,
                                                      results, count);
}

cublasStatus_t rig_multiply(rig_product *p, const cublasLtMatmulAlgo_t *algo) {
  return rig_double()->cublasLtMatmul(
      rig_handle(), p->desc, p->alpha, p->pointer[0], p->layout[0], p->pointer[1], p->layout[1], p->beta,
      p->pointer[2], p->layout[2], p->pointer[3], p->layout[3], algo, p->workspace, p->workspace_bytes, NULL);
}
