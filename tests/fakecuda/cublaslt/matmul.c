/* tests/fakecuda/cublaslt/matmul.c: cublasLtMatmul: what its pointers are checked for, and the task that it
 * enqueues. */
#include <string.h>
#include "tests/fakecuda/cublaslt/double.h"
#include "tests/fakecuda/cublaslt/library.h"
#include "tests/fakecuda/cublaslt/product.h"

#define INVALID CUBLAS_STATUS_INVALID_VALUE

_Static_assert(sizeof(fakelt_task) <= 1024, "a task fits into that of the driver's double");

static cublasStatus_t check_device(const char *name, const void *pointer, int64_t bytes, int64_t alignment) {
  FAKELT_REQUIRE(pointer, INVALID, "%s is NULL", name);
  FAKELT_REQUIRE((uintptr_t)pointer % (uintptr_t)alignment == 0, INVALID, "%s is not aligned to %lld bytes",
                 name, (long long)alignment);
  FAKELT_REQUIRE(fakelt_find_driver().is_device_memory(pointer, (size_t)bytes), INVALID,
                 "%s: %lld bytes are not in one allocation of device memory", name, (long long)bytes);
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_operands(const fakelt_task *task) {
  const fakelt_problem *p = &task->problem;
  const void *pointers[] = {task->a, task->b, task->c, task->d};
  const char *names[] = {"A", "B", "C", "D"};
  for (int i = 0; i < FAKELT_OPERANDS; i++) {
    const fakelt_matrix *matrix = &p->matrix[i];
    FAKELT_TRY(check_device(names[i], pointers[i], fakelt_matrix_bytes(matrix, p->batch),
                            fakelt_alignment(&task->algorithm, matrix->type)));
  }
  return CUBLAS_STATUS_SUCCESS;
}

static bool is_dense(const fakelt_matrix *matrix, int64_t batch) {
  int64_t elements = matrix->rows * matrix->columns * batch;
  return fakelt_matrix_bytes(matrix, batch) == elements * fakelt_type_bytes(matrix->type);
}

static bool ranges_meet(const void *x, int64_t x_bytes, const void *y, int64_t y_bytes) {
  return (uintptr_t)x < (uintptr_t)y + (uintptr_t)y_bytes && (uintptr_t)y < (uintptr_t)x + (uintptr_t)x_bytes;
}

/* D may be C, in the same layout. Of matrices with gaps only those are compared that begin at the same
 * address: the elements of others may lie in each other's gaps. */
static cublasStatus_t check_aliases(const fakelt_task *task) {
  const fakelt_problem *p = &task->problem;
  const fakelt_matrix *d = &p->matrix[FAKELT_D];
  const void *pointers[] = {task->a, task->b, task->c};
  int64_t d_bytes = fakelt_matrix_bytes(d, p->batch);
  for (int i = 0; i < FAKELT_D; i++) {
    const fakelt_matrix *matrix = &p->matrix[i];
    bool same = pointers[i] == task->d;
    if (i == FAKELT_C && same && memcmp(matrix, d, sizeof *d) == 0) continue;
    bool dense = is_dense(matrix, p->batch) && is_dense(d, p->batch);
    bool meet = ranges_meet(pointers[i], fakelt_matrix_bytes(matrix, p->batch), task->d, d_bytes);
    FAKELT_REQUIRE(!same && !(dense && meet), INVALID, "D overlaps %c", "ABC"[i]);
  }
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_epilogue_memory(const fakelt_task *task) {
  const fakelt_problem *p = &task->problem;
  if (p->bias) {
    FAKELT_TRY(check_device("bias", p->bias, fakelt_bias_bytes(p),
                            fakelt_alignment(&task->algorithm, p->matrix[FAKELT_D].type)));
  }
  return p->aux ? check_device("aux", p->aux, fakelt_aux_bytes(p), fakelt_aux_alignment())
                : CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_workspace(const fakelt_task *task, uint64_t bytes) {
  uint64_t needed = fakelt_workspace(&task->algorithm, &task->problem);
  FAKELT_REQUIRE(bytes >= needed, INVALID, "a workspace of %llu bytes, the algorithm needs %llu",
                 (unsigned long long)bytes, (unsigned long long)needed);
  if (!task->workspace && needed == 0) return CUBLAS_STATUS_SUCCESS;
  return bytes ? check_device("workspace", task->workspace, (int64_t)bytes, FAKELT_WORKSPACE_ALIGNMENT)
               : CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t read_scalar_argument(const fakelt_problem *p, const char *name, const void *from,
                                           fakelt_scalar *scalar) {
  size_t bytes = (size_t)fakelt_type_bytes(p->scale);
  FAKELT_REQUIRE(from, INVALID, "%s is NULL", name);
  bool device = p->pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
  if (device) {
    scalar->device = from;
    return check_device(name, from, (int64_t)bytes, (int64_t)bytes);
  }
  FAKELT_REQUIRE(!fakelt_find_driver().is_device_memory(from, bytes), INVALID,
                 "%s is in device memory, and the pointer mode is that of the host", name);
  memcpy(&scalar->bits, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

/* Without an algorithm, the library asks its heuristic. */
static cublasStatus_t choose_algorithm(const cublasLtMatmulAlgo_t *algo, uint64_t workspace,
                                       fakelt_task *task) {
  const void *pointers[] = {task->a, task->b, task->c, task->d};
  int64_t alignment[FAKELT_OPERANDS];
  for (int i = 0; i < FAKELT_OPERANDS; i++) alignment[i] = fakelt_alignment_of(pointers[i]);
  const fakelt_algorithm *found = algo ? fakelt_bound_algorithm(algo, &task->problem)
                                       : fakelt_implicit_algorithm(&task->problem, alignment, workspace);
  if (!found && algo) return INVALID;
  FAKELT_REQUIRE(found, CUBLAS_STATUS_NOT_SUPPORTED, "no algorithm fits the workspace and the alignments");
  task->algorithm = *found;
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t enqueue(const fakelt_task *task, cudaStream_t stream) {
  CUresult result =
      fakelt_find_driver().enqueue((CUstream)stream, "cublasLtMatmul", fakelt_run, task, sizeof *task);
  FAKELT_REQUIRE(result == CUDA_SUCCESS, CUBLAS_STATUS_EXECUTION_FAILED,
                 "the stream refused the work: CUresult %d", (int)result);
  return CUBLAS_STATUS_SUCCESS;
}

FAKELT_EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                            const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,
                                            const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                                            const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                                            cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                                            void *workspace, size_t bytes, cudaStream_t stream) {
  FAKELT_TRY(fakelt_enter("cublasLtMatmul"));
  FAKELT_TRY(fakelt_check_handle(handle));
  fakelt_task task;
  memset(&task, 0, sizeof task);
  task.a = a, task.b = b, task.c = c, task.d = d, task.workspace = workspace;
  const fakelt_descriptors from = {desc, {a_layout, b_layout, c_layout, d_layout}};
  FAKELT_TRY(fakelt_read_problem(&from, &task.problem));
  FAKELT_TRY(read_scalar_argument(&task.problem, "alpha", alpha, &task.alpha));
  FAKELT_TRY(read_scalar_argument(&task.problem, "beta", beta, &task.beta));
  FAKELT_TRY(choose_algorithm(algo, bytes, &task));
  FAKELT_TRY(check_operands(&task));
  FAKELT_TRY(check_aliases(&task));
  FAKELT_TRY(check_epilogue_memory(&task));
  FAKELT_TRY(check_workspace(&task, bytes));
  return enqueue(&task, stream);
}
