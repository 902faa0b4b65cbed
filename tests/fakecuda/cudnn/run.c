/* tests/fakecuda/cudnn/run.c: see run.h. Operands are converted to f32; each operation's results are rounded
 * to their tensor's type, also where the tensor is virtual. */
#include <stdlib.h>
#include <string.h>
#include "backends/shared/half.h"
#include "tests/fakecuda/cudnn/run.h"
#include "tests/fakecuda/cudnn/support.h"
#include "tests/fakecuda/cudnn/walk.h"

const fakednn_tensor *fakednn_in_slot(const fakednn_node *node, const fakednn_values *values, int slot) {
  return node->tensor[slot] < 0 ? NULL : &values->plan->program->tensors[node->tensor[slot]];
}

float *fakednn_data(const fakednn_node *node, const fakednn_values *values, int slot) {
  return node->tensor[slot] < 0 ? NULL : values->of[node->tensor[slot]];
}

/* ---- conversion ---- */

#define EACH(expression)                                                                                     \
  for (int64_t i = 0; i < n; i++) expression

static void load(int32_t type, const void *from, int64_t n, float *to) {
  switch (type) {
  case CUDNN_DATA_HALF: EACH(to[i] = tn_f32_of_f16(((const uint16_t *)from)[i])); break;
  case CUDNN_DATA_BFLOAT16: EACH(to[i] = tn_f32_of_bf16(((const uint16_t *)from)[i])); break;
  case CUDNN_DATA_INT32: EACH(to[i] = (float)((const int32_t *)from)[i]); break;
  case CUDNN_DATA_INT64: EACH(to[i] = (float)((const int64_t *)from)[i]); break;
  case CUDNN_DATA_INT8: EACH(to[i] = (float)((const int8_t *)from)[i]); break;
  case CUDNN_DATA_UINT8: EACH(to[i] = (float)((const uint8_t *)from)[i]); break;
  case CUDNN_DATA_BOOLEAN: EACH(to[i] = ((const uint8_t *)from)[i] != 0); break;
  default: memcpy(to, from, (size_t)n * sizeof(float)); break;
  }
}

static void round_values(int32_t type, float *x, int64_t n) {
  switch (type) {
  case CUDNN_DATA_HALF: EACH(x[i] = tn_f32_of_f16(tn_f16_of_f32(x[i]))); break;
  case CUDNN_DATA_BFLOAT16: EACH(x[i] = tn_f32_of_bf16(tn_bf16_of_f32(x[i]))); break;
  case CUDNN_DATA_BOOLEAN: EACH(x[i] = x[i] != 0); break;
  default: break;
  }
}

static void store_row(int32_t type, const float *x, void *to, int64_t step, int64_t n) {
  switch (type) {
  case CUDNN_DATA_HALF: EACH(((uint16_t *)to)[i * step] = tn_f16_of_f32(x[i * step])); break;
  case CUDNN_DATA_BFLOAT16: EACH(((uint16_t *)to)[i * step] = tn_bf16_of_f32(x[i * step])); break;
  case CUDNN_DATA_INT32: EACH(((int32_t *)to)[i * step] = (int32_t)x[i * step]); break;
  case CUDNN_DATA_INT64: EACH(((int64_t *)to)[i * step] = (int64_t)x[i * step]); break;
  case CUDNN_DATA_INT8: EACH(((int8_t *)to)[i * step] = (int8_t)x[i * step]); break;
  case CUDNN_DATA_UINT8:
  case CUDNN_DATA_BOOLEAN: EACH(((uint8_t *)to)[i * step] = (uint8_t)x[i * step]); break;
  default: EACH(((float *)to)[i * step] = x[i * step]); break;
  }
}

/* Gaps between the elements of a tensor are not written. */
static void store(const fakednn_tensor *t, const float *x, void *memory) {
  int64_t size = fakednn_data_size(t->type);
  fakednn_walk w;
  fakednn_walk_begin(&w, t, &t, 1);
  do store_row(t->type, x + w.offset[0], (char *)memory + w.offset[0] * size, w.step[0], w.length);
  while (fakednn_walk_next(&w));
}

/* ---- programs ---- */

static bool reserve_values(const fakednn_task *task, fakednn_values *values) {
  const fakednn_program *program = task->plan->program;
  for (int32_t i = 0; i < program->n_tensors; i++) {
    const fakednn_tensor *t = &program->tensors[i];
    int64_t n = fakednn_span(t);
    if (!(values->of[i] = calloc((size_t)n, sizeof(float)))) return false;
    if (t->by_value)
      *values->of[i] = (float)task->tensor[i].value;
    else if (!t->is_virtual)
      load(t->type, task->tensor[i].memory, n, values->of[i]);
  }
  return true;
}

/* The elements in the order of the memory of the one are those of the other. */
static bool run_reshape(const fakednn_node *node, const fakednn_values *values) {
  int64_t x = fakednn_span(fakednn_in_slot(node, values, 0)),
          y = fakednn_span(fakednn_in_slot(node, values, 1));
  memcpy(fakednn_data(node, values, 1), fakednn_data(node, values, 0),
         (size_t)(x < y ? x : y) * sizeof(float));
  return true;
}

static bool run_node(const fakednn_node *node, const fakednn_values *values) {
  switch (node->kind) {
  case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: return fakednn_run_pointwise(node, values);
  case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: return fakednn_run_matmul(node, values);
  case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: return fakednn_run_reduction(node, values);
  case CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR: return fakednn_run_statistics(node, values);
  case CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR:
    return fakednn_run_bn_finalize(node, values);
  case CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR: return fakednn_run_bn_backward(node, values);
  case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR: return run_reshape(node, values);
  default: return fakednn_run_convolution(node, values);
  }
}

static void round_results(const fakednn_node *node, const fakednn_values *values) {
  int n;
  const fakednn_slot *slots = fakednn_slots(node->kind, &n);
  for (int i = 0; i < n; i++) {
    const fakednn_tensor *t = slots[i].output ? fakednn_in_slot(node, values, i) : NULL;
    if (t) round_values(t->type, fakednn_data(node, values, i), fakednn_span(t));
  }
}

static bool run_program(const fakednn_task *task, fakednn_values *values) {
  const fakednn_program *program = task->plan->program;
  if (!reserve_values(task, values)) return false;
  for (int32_t i = 0; i < program->n_nodes; i++) {
    if (!run_node(&program->nodes[i], values)) return false;
    round_results(&program->nodes[i], values);
  }
  for (int32_t i = 0; i < program->n_tensors; i++) {
    const fakednn_tensor *t = &program->tensors[i];
    if (!t->is_virtual && !t->by_value && t->writer >= 0) store(t, values->of[i], task->tensor[i].memory);
  }
  return true;
}

int fakednn_run(void *argument) {
  const fakednn_task *task = argument;
  if (atomic_load(&task->plan->destroyed)) return 1;
  fakednn_values values = {.plan = task->plan, .run = atomic_fetch_add(&task->plan->runs, 1)};
  values.tf32 = fakednn_main_type(task->plan->program) == CUDNN_DATA_FLOAT &&
                fakednn_uses_tensor_cores(task->plan->program, task->plan->engine);
  /* The workspace loses its contents, as on a device. */
  if (task->plan->workspace) memset(task->workspace, 0xc5, (size_t)task->plan->workspace);
  bool done = run_program(task, &values);
  for (int32_t i = 0; i < task->plan->program->n_tensors; i++) free(values.of[i]);
  return done ? 0 : 2;
}
