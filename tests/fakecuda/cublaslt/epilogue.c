/* tests/fakecuda/cublaslt/epilogue.c: scaling, bias, activations and their gradients; results are rounded
 * once. */
#include <math.h>
#include "backends/shared/half.h"
#include "tests/fakecuda/cublaslt/product.h"

/* The sum that a pointwise epilogue begins with. C is not read where beta is 0. */
static float scaled_sum(const fakelt_tail *tail, int64_t index, int64_t place) {
  const fakelt_task *task = tail->task;
  float value = tail->alpha * tail->sums[index];
  if (tail->beta != 0) value += tail->beta * fakelt_load(task->problem.matrix[FAKELT_C].type, task->c, place);
  return task->problem.compute == CUBLAS_COMPUTE_16F ? tn_f32_of_f16(tn_f16_of_f32(value)) : value;
}

static float gelu_slope(float x) {
  const float scale = 0.7978845608f, cubic = 0.044715f;
  float t = tanhf(scale * (x + cubic * x * x * x));
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * scale * (1 + 3 * cubic * x * x);
}

static float gelu(float x) { return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x))); }

static bool test_bit(const uint8_t *mask, int64_t index) { return mask[index / 8] >> (index % 8) & 1; }

static void set_bit(uint8_t *mask, int64_t index, bool value) {
  mask[index / 8] = (uint8_t)((mask[index / 8] & ~(1u << (index % 8))) | (unsigned)value << (index % 8));
}

/* ReLU keeps NaN, and the mask has a bit for all but negative numbers: also for 0. */
static float apply_epilogue(const fakelt_problem *p, float x, int64_t aux_place) {
  switch (p->epilogue & ~(uint32_t)CUBLASLT_EPILOGUE_BIAS) {
  case CUBLASLT_EPILOGUE_RELU_AUX: set_bit(p->aux, aux_place, !(x < 0)); return x < 0 ? 0 : x;
  case CUBLASLT_EPILOGUE_RELU: return x < 0 ? 0 : x;
  case CUBLASLT_EPILOGUE_GELU_AUX:
    fakelt_store(p->matrix[FAKELT_D].type, p->aux, aux_place, x);
    return gelu(x);
  case CUBLASLT_EPILOGUE_GELU: return gelu(x);
  case CUBLASLT_EPILOGUE_DRELU:
  case CUBLASLT_EPILOGUE_DRELU_BGRAD: return test_bit(p->aux, aux_place) ? x : 0;
  case CUBLASLT_EPILOGUE_DGELU:
  case CUBLASLT_EPILOGUE_DGELU_BGRAD:
    return x * gelu_slope(fakelt_load(p->matrix[FAKELT_D].type, p->aux, aux_place));
  default: return x;
  }
}

static int64_t place_of(const fakelt_matrix *matrix, int64_t item, int64_t i, int64_t j) {
  return item * matrix->stride + (matrix->row_major ? i * matrix->ld + j : j * matrix->ld + i);
}

static void store_bias_gradient(const fakelt_tail *tail) {
  const fakelt_problem *p = &tail->task->problem;
  for (int64_t i = 0; i < p->m; i++) {
    fakelt_store(p->matrix[FAKELT_D].type, p->bias, tail->item * p->bias_stride + i, tail->bias_gradient[i]);
  }
}

void fakelt_finish(const fakelt_tail *tail) {
  const fakelt_problem *p = &tail->task->problem;
  const fakelt_matrix *c = &p->matrix[FAKELT_C], *d = &p->matrix[FAKELT_D];
  for (int64_t j = 0; j < p->n; j++) {
    for (int64_t i = 0; i < p->m; i++) {
      float x = scaled_sum(tail, j * p->m + i, place_of(c, tail->item, i, j));
      if (fakelt_reads_bias(p->epilogue)) x += fakelt_load(d->type, p->bias, tail->item * p->bias_stride + i);
      x = apply_epilogue(p, x, tail->item * p->aux_stride + j * p->aux_ld + i);
      tail->bias_gradient[i] += x;
      fakelt_store(d->type, tail->task->d, place_of(d, tail->item, i, j), x);
    }
  }
  if (p->epilogue == CUBLASLT_EPILOGUE_DRELU_BGRAD || p->epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD) {
    store_bias_gradient(tail);
  }
}
