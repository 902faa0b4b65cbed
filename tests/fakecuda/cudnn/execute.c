/* tests/fakecuda/cudnn/execute.c: see execute.h; cudnnBackendExecute: what its pointers are checked for, and
 * the task that it enqueues. */
#include <stdlib.h>
#include <string.h>
#include "tests/fakecuda/cudnn/descriptors.h"
#include "tests/fakecuda/cudnn/double.h"
#include "tests/fakecuda/cudnn/execute.h"
#include "tests/fakecuda/cudnn/run.h"

#define BAD CUDNN_STATUS_BAD_PARAM

enum { WORKSPACE_ALIGNMENT = 256 };

_Static_assert(sizeof(fakednn_task) <= 1024, "a task fits into that of the driver's double");

cudnnStatus_t fakednn_finalize_pack(const fakednn_body *body) {
  int64_t n = fakednn_count_of(body, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  FAKEDNN_REQUIRE(fakednn_count_of(body, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) == n, BAD,
                  "%lld pointers for %lld uids",
                  (long long)fakednn_count_of(body, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS), (long long)n);
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < i; j++) {
      int64_t uid = fakednn_integer(body, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i, 0);
      FAKEDNN_REQUIRE(uid != fakednn_integer(body, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, j, 0),
                      CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES, "the uid %lld is there twice",
                      (long long)uid);
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

/* ---- operands ---- */

static cudnnStatus_t find_pointer(const fakednn_body *pack, const fakednn_tensor *t, const void **pointer) {
  int64_t n = fakednn_count_of(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS), i = 0;
  while (i < n && fakednn_integer(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i, 0) != t->uid) i++;
  FAKEDNN_REQUIRE(i < n, BAD, "the variant pack lacks tensor %lld", (long long)t->uid);
  *pointer = fakednn_pointer(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i);
  FAKEDNN_REQUIRE(*pointer, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the pointer of tensor %lld is NULL",
                  (long long)t->uid);
  return CUDNN_STATUS_SUCCESS;
}

static int64_t bytes_of(const fakednn_tensor *t) { return fakednn_span(t) * fakednn_data_size(t->type); }

static cudnnStatus_t check_memory(const char *what, int64_t uid, const void *pointer, int64_t bytes,
                                  int64_t alignment) {
  FAKEDNN_REQUIRE((uintptr_t)pointer % (uintptr_t)alignment == 0, CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                  "%s %lld is not aligned to %lld bytes", what, (long long)uid, (long long)alignment);
  FAKEDNN_REQUIRE(fakednn_find_driver().is_device_memory(pointer, (size_t)bytes), BAD,
                  "%s %lld: %lld bytes are not in one allocation of device memory", what, (long long)uid,
                  (long long)bytes);
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t read_value(const fakednn_tensor *t, const void *from, double *value) {
  FAKEDNN_REQUIRE(!fakednn_find_driver().is_device_memory(from, 1), BAD,
                  "tensor %lld is a value of the host, and its pointer is one of device memory",
                  (long long)t->uid);
  float f;
  int32_t i;
  int64_t l;
  switch (t->type) {
  case CUDNN_DATA_FLOAT: memcpy(&f, from, sizeof f), *value = (double)f; break;
  case CUDNN_DATA_INT32: memcpy(&i, from, sizeof i), *value = i; break;
  case CUDNN_DATA_INT64: memcpy(&l, from, sizeof l), *value = (double)l; break;
  default: return fakednn_lacks("values of the host of the type %d", t->type);
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t find_operands(const fakednn_program *program, const fakednn_body *pack,
                                   fakednn_task *task) {
  for (int32_t i = 0; i < program->n_tensors; i++) {
    const fakednn_tensor *t = &program->tensors[i];
    const void *pointer;
    if (t->is_virtual) continue;
    FAKEDNN_TRY(find_pointer(pack, t, &pointer));
    if (t->by_value) {
      FAKEDNN_TRY(read_value(t, pointer, &task->tensor[i].value));
      continue;
    }
    FAKEDNN_TRY(check_memory("tensor", t->uid, pointer, bytes_of(t), t->alignment));
    task->tensor[i].memory = (void *)pointer;
  }
  return CUDNN_STATUS_SUCCESS;
}

/* ---- overlaps ---- */

static bool ranges_meet(const void *x, int64_t x_bytes, const void *y, int64_t y_bytes) {
  return (uintptr_t)x < (uintptr_t)y + (uintptr_t)y_bytes && (uintptr_t)y < (uintptr_t)x + (uintptr_t)x_bytes;
}

/* Bytes before element number k. */
static int64_t offset_of(const fakednn_tensor *t, int64_t k) {
  int64_t offset = 0;
  for (int i = t->rank; i-- > 0; k /= t->dims[i]) offset += k % t->dims[i] * t->strides[i];
  return offset * fakednn_data_size(t->type);
}

/* Whether two tensors have a byte in common: the rows of one may lie between those of the other. */
static bool elements_meet(const fakednn_tensor *x, const char *a, const fakednn_tensor *y, const char *b) {
  if (!ranges_meet(a, bytes_of(x), b, bytes_of(y))) return false;
  const char *low = a < b ? a : b;
  int64_t from_a = a - low, from_b = b - low, n = fakednn_elements(x), m = fakednn_elements(y);
  int64_t end_a = from_a + bytes_of(x), end_b = from_b + bytes_of(y);
  size_t size_a = (size_t)fakednn_data_size(x->type), size_b = (size_t)fakednn_data_size(y->type);
  uint8_t *taken = calloc((size_t)(end_a > end_b ? end_a : end_b), 1);
  bool meet = !taken;
  for (int64_t k = 0; k < n && taken; k++) memset(taken + from_a + offset_of(x, k), 1, size_a);
  for (int64_t k = 0; k < m && !meet; k++) meet = memchr(taken + from_b + offset_of(y, k), 1, size_b) != NULL;
  free(taken);
  return meet;
}

static bool in_memory(const fakednn_tensor *t) { return !t->is_virtual && !t->by_value; }

/* An operand that pointwise operations alone read may be replaced by a result in the same place and layout.
 */
static bool may_replace(const fakednn_program *program, int32_t operand, int32_t result) {
  const fakednn_tensor *a = &program->tensors[operand], *b = &program->tensors[result];
  for (int32_t i = 0; i < program->n_nodes; i++) {
    const fakednn_node *node = &program->nodes[i];
    for (int j = 0; j < FAKEDNN_SLOTS; j++) {
      if (node->tensor[j] == operand && node->kind != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
        return false;
    }
  }
  return a->writer < 0 && a->type == b->type && a->rank == b->rank &&
         memcmp(a->dims, b->dims, sizeof a->dims) == 0 &&
         memcmp(a->strides, b->strides, sizeof a->strides) == 0;
}

static cudnnStatus_t check_overlaps(const fakednn_program *program, const fakednn_task *task) {
  for (int32_t i = 0; i < program->n_tensors; i++) {
    const fakednn_tensor *out = &program->tensors[i];
    if (out->writer < 0 || !in_memory(out)) continue;
    for (int32_t j = 0; j < program->n_tensors; j++) {
      const fakednn_tensor *other = &program->tensors[j];
      const void *a = task->tensor[i].memory, *b = task->tensor[j].memory;
      if (i == j || !in_memory(other) || !elements_meet(out, a, other, b)) continue;
      FAKEDNN_REQUIRE(a == b && may_replace(program, j, i), BAD,
                      "tensor %lld, which is written, overlaps tensor %lld", (long long)out->uid,
                      (long long)other->uid);
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_workspace(const fakednn_task *task) {
  const fakednn_program *program = task->plan->program;
  int64_t bytes = task->plan->workspace;
  if (!bytes) return CUDNN_STATUS_SUCCESS;
  FAKEDNN_REQUIRE(task->workspace, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no workspace of %lld bytes",
                  (long long)bytes);
  FAKEDNN_TRY(check_memory("workspace", 0, task->workspace, bytes, WORKSPACE_ALIGNMENT));
  for (int32_t i = 0; i < program->n_tensors; i++) {
    const fakednn_tensor *t = &program->tensors[i];
    FAKEDNN_REQUIRE(!in_memory(t) ||
                        !ranges_meet(task->workspace, bytes, task->tensor[i].memory, bytes_of(t)),
                    BAD, "the workspace overlaps tensor %lld", (long long)t->uid);
  }
  return CUDNN_STATUS_SUCCESS;
}

/* ---- the entry point ---- */

static cudnnStatus_t check_context(cudnnHandle_t handle, const fakednn_plan *plan) {
  CUcontext current = NULL;
  fakednn_find_driver().current(&current);
  FAKEDNN_REQUIRE(current == handle->context, BAD, "the handle was created in another context");
  FAKEDNN_REQUIRE(plan->arch == handle->arch, CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH,
                  "the plan is for sm_%d, the device is sm_%d", plan->arch, handle->arch);
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t execute(cudnnHandle_t handle, const fakednn_body *plan, const fakednn_body *pack) {
  fakednn_task task;
  memset(&task, 0, sizeof task);
  task.plan = (fakednn_plan *)plan->made;
  task.workspace = (void *)fakednn_pointer(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 0);
  FAKEDNN_TRY(check_context(handle, task.plan));
  FAKEDNN_TRY(find_operands(task.plan->program, pack, &task));
  FAKEDNN_TRY(check_overlaps(task.plan->program, &task));
  FAKEDNN_TRY(check_workspace(&task));
  CUresult result =
      fakednn_find_driver().enqueue(handle->stream, "cudnnBackendExecute", fakednn_run, &task, sizeof task);
  FAKEDNN_REQUIRE(result == CUDA_SUCCESS, CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER,
                  "the stream refused the work: CUresult %d", (int)result);
  return CUDNN_STATUS_SUCCESS;
}

FAKEDNN_EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                                 cudnnBackendDescriptor_t pack) {
  fakednn_body *plan_body, *pack_body;
  FAKEDNN_TRY(fakednn_enter("cudnnBackendExecute"));
  FAKEDNN_TRY(fakednn_check_handle(handle));
  FAKEDNN_TRY(fakednn_finalized_of(plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "plan", &plan_body));
  cudnnStatus_t status =
      fakednn_finalized_of(pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack", &pack_body);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = execute(handle, plan_body, pack_body);
    fakednn_body_drop(pack_body);
  }
  fakednn_body_drop(plan_body);
  return status;
}
