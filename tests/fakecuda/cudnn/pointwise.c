/* tests/fakecuda/cudnn/pointwise.c: see pointwise.h. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include "tests/fakecuda/cudnn/pointwise.h"
#include "tests/fakecuda/cudnn/run.h"
#include "tests/fakecuda/cudnn/walk.h"

enum {
  CHUNK = 256,
  X = 1 << FAKEDNN_PW_X,
  B = 1 << FAKEDNN_PW_B,
  T = 1 << FAKEDNN_PW_T,
  DY = 1 << FAKEDNN_PW_DY
};

unsigned fakednn_pointwise_inputs(int32_t mode) {
  switch (mode) {
  case CUDNN_POINTWISE_ADD_SQUARE:
  case CUDNN_POINTWISE_ATAN2:
  case CUDNN_POINTWISE_ADD:
  case CUDNN_POINTWISE_MUL:
  case CUDNN_POINTWISE_SUB:
  case CUDNN_POINTWISE_DIV:
  case CUDNN_POINTWISE_MIN:
  case CUDNN_POINTWISE_MAX:
  case CUDNN_POINTWISE_MOD:
  case CUDNN_POINTWISE_POW:
  case CUDNN_POINTWISE_LOGICAL_AND:
  case CUDNN_POINTWISE_LOGICAL_OR: return X | B;
  case CUDNN_POINTWISE_BINARY_SELECT: return X | B | T;
  default: break;
  }
  if (mode >= CUDNN_POINTWISE_CMP_EQ && mode <= CUDNN_POINTWISE_CMP_LE) return X | B;
  if (mode >= CUDNN_POINTWISE_RELU_BWD && mode <= CUDNN_POINTWISE_GELU_APPROX_TANH_BWD) return X | DY;
  bool unary = mode == CUDNN_POINTWISE_SQRT ||
               (mode >= CUDNN_POINTWISE_ABS && mode <= CUDNN_POINTWISE_RECIPROCAL) ||
               (mode >= CUDNN_POINTWISE_RELU_FWD && mode <= CUDNN_POINTWISE_GELU_APPROX_TANH_FWD) ||
               mode == CUDNN_POINTWISE_LOGICAL_NOT || mode == CUDNN_POINTWISE_GEN_INDEX;
  return unary ? X : 0;
}

/* ---- activations ---- */

static float sigmoid(float x) { return 1 / (1 + expf(-x)); }

/* With FAKECUDA_CUDNN_DROPS_NAN as max(x, lower) of the hardware, which is `lower` for NaN. */
static bool drops_nan(void) {
  static int drops = -1;
  if (drops < 0) drops = getenv("FAKECUDA_CUDNN_DROPS_NAN") != NULL;
  return drops;
}

static float relu(const fakednn_node *p, float x) {
  if (x != x && drops_nan()) return (float)p->lower;
  float low = (float)p->lower, high = (float)fmin(p->upper, 3.402823466e38);
  return x <= low ? low + (float)p->slope * (x - low) : x > high ? high : x;
}

static float relu_slope(const fakednn_node *p, float x) {
  return x <= (float)p->lower ? (float)p->slope : (double)x > p->upper ? 0 : 1;
}

static float gelu(float x) { return 0.5f * x * (1 + erff(x * 0.70710678f)); }
static float gelu_slope(float x) {
  return 0.5f * (1 + erff(x * 0.70710678f)) + x * 0.39894228f * expf(-0.5f * x * x);
}

static float inner_tanh(float x) { return tanhf(0.79788456f * (x + 0.044715f * x * x * x)); }
static float gelu_tanh(float x) { return 0.5f * x * (1 + inner_tanh(x)); }
static float gelu_tanh_slope(float x) {
  float t = inner_tanh(x);
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.79788456f * (1 + 3 * 0.044715f * x * x);
}

static float elu(const fakednn_node *p, float x) { return x > 0 ? x : (float)p->elu * expm1f(x); }
static float elu_slope(const fakednn_node *p, float x) { return x > 0 ? 1 : (float)p->elu * expf(x); }
static float softplus(const fakednn_node *p, float x) {
  float b = (float)p->softplus;
  return b * x > 30 ? x : log1pf(expf(b * x)) / b;
}
static float swish(const fakednn_node *p, float x) { return x * sigmoid((float)p->swish * x); }
static float swish_slope(const fakednn_node *p, float x) {
  float b = (float)p->swish, s = sigmoid(b * x);
  return s + b * x * s * (1 - s);
}

/* ---- rows ---- */

/* NaN in either operand is passed on. */
static float larger(float a, float b) { return a != a || a > b ? a : b; }
static float smaller(float a, float b) { return a != a || a < b ? a : b; }

#define EACH(mode, value)                                                                                    \
  case CUDNN_POINTWISE_##mode:                                                                               \
    for (int64_t i = 0; i < n; i++) o[i] = (value);                                                          \
    break

static void compute_activation(const fakednn_node *p, const float *x, const float *d, float *o, int64_t n) {
  switch (p->mode) {
    EACH(RELU_FWD, relu(p, x[i]));
    EACH(TANH_FWD, tanhf(x[i]));
    EACH(SIGMOID_FWD, sigmoid(x[i]));
    EACH(ELU_FWD, elu(p, x[i]));
    EACH(GELU_FWD, gelu(x[i]));
    EACH(SOFTPLUS_FWD, softplus(p, x[i]));
    EACH(SWISH_FWD, swish(p, x[i]));
    EACH(GELU_APPROX_TANH_FWD, gelu_tanh(x[i]));
    EACH(RELU_BWD, d[i] * relu_slope(p, x[i]));
    EACH(TANH_BWD, d[i] * (1 - tanhf(x[i]) * tanhf(x[i])));
    EACH(SIGMOID_BWD, d[i] * sigmoid(x[i]) * (1 - sigmoid(x[i])));
    EACH(ELU_BWD, d[i] * elu_slope(p, x[i]));
    EACH(GELU_BWD, d[i] * gelu_slope(x[i]));
    EACH(SOFTPLUS_BWD, d[i] * sigmoid((float)p->softplus * x[i]));
    EACH(SWISH_BWD, d[i] * swish_slope(p, x[i]));
    EACH(GELU_APPROX_TANH_BWD, d[i] * gelu_tanh_slope(x[i]));
  default: break;
  }
}

static void compute_unary(const fakednn_node *p, const float *x, float *o, int64_t n) {
  switch (p->mode) {
    EACH(SQRT, sqrtf(x[i]));
    EACH(ABS, fabsf(x[i]));
    EACH(CEIL, ceilf(x[i]));
    EACH(COS, cosf(x[i]));
    EACH(EXP, expf(x[i]));
    EACH(FLOOR, floorf(x[i]));
    EACH(LOG, logf(x[i]));
    EACH(NEG, -x[i]);
    EACH(RSQRT, 1 / sqrtf(x[i]));
    EACH(SIN, sinf(x[i]));
    EACH(TAN, tanf(x[i]));
    EACH(ERF, erff(x[i]));
    EACH(IDENTITY, x[i]);
    EACH(RECIPROCAL, 1 / x[i]);
    EACH(LOGICAL_NOT, x[i] == 0);
  default: break;
  }
}

static void compute_binary(const fakednn_node *p, const float *x, const float *b, const float *t, float *o,
                           int64_t n) {
  switch (p->mode) {
    EACH(ADD, x[i] + b[i]);
    EACH(ADD_SQUARE, x[i] + b[i] * b[i]);
    EACH(MUL, x[i] * b[i]);
    EACH(SUB, x[i] - b[i]);
    EACH(DIV, x[i] / b[i]);
    EACH(MIN, smaller(x[i], b[i]));
    EACH(MAX, larger(x[i], b[i]));
    EACH(MOD, fmodf(x[i], b[i]));
    EACH(POW, powf(x[i], b[i]));
    EACH(ATAN2, atan2f(x[i], b[i]));
    EACH(CMP_EQ, x[i] == b[i]);
    EACH(CMP_NEQ, x[i] != b[i]);
    EACH(CMP_GT, x[i] > b[i]);
    EACH(CMP_GE, x[i] >= b[i]);
    EACH(CMP_LT, x[i] < b[i]);
    EACH(CMP_LE, x[i] <= b[i]);
    EACH(LOGICAL_AND, x[i] != 0 && b[i] != 0);
    EACH(LOGICAL_OR, x[i] != 0 || b[i] != 0);
    EACH(BINARY_SELECT, t[i] != 0 ? x[i] : b[i]);
  default: break;
  }
}

static void gather(const float *from, int64_t step, float factor, int64_t n, float *to) {
  for (int64_t i = 0; i < n; i++) to[i] = factor * from[i * step];
}

void fakednn_pointwise_row(const fakednn_node *node, const float *const in[FAKEDNN_PW_INPUTS], float *out,
                           const int64_t step[FAKEDNN_PW_INPUTS + 1], int64_t n, const float index[2]) {
  const float factor[FAKEDNN_PW_INPUTS] = {(float)node->alpha, (float)node->beta, 1, 1};
  float of[FAKEDNN_PW_INPUTS][CHUNK], result[CHUNK];
  unsigned reads = fakednn_pointwise_inputs(node->mode);
  for (int64_t start = 0; start < n; start += CHUNK) {
    int64_t length = n - start < CHUNK ? n - start : CHUNK;
    for (int i = 0; i < FAKEDNN_PW_INPUTS; i++) {
      if (in[i]) gather(in[i] + start * step[i], step[i], factor[i], length, of[i]);
    }
    if (node->mode == CUDNN_POINTWISE_GEN_INDEX) {
      for (int64_t i = 0; i < length; i++) result[i] = index[0] + index[1] * (float)(start + i);
    } else if (reads & B) {
      compute_binary(node, of[FAKEDNN_PW_X], of[FAKEDNN_PW_B], of[FAKEDNN_PW_T], result, length);
    } else {
      compute_unary(node, of[FAKEDNN_PW_X], result, length);
      compute_activation(node, of[FAKEDNN_PW_X], of[FAKEDNN_PW_DY], result, length);
    }
    for (int64_t i = 0; i < length; i++) out[(start + i) * step[FAKEDNN_PW_INPUTS]] = result[i];
  }
}

bool fakednn_run_pointwise(const fakednn_node *node, const fakednn_values *values) {
  int slot = fakednn_pointwise_inputs(node->mode) & DY ? FAKEDNN_PW_DX : FAKEDNN_PW_Y;
  const fakednn_tensor *out = fakednn_in_slot(node, values, slot), *tensors[FAKEDNN_PW_INPUTS + 1] = {out};
  const float *data[FAKEDNN_PW_INPUTS];
  fakednn_walk w;
  for (int i = 0; i < FAKEDNN_PW_INPUTS; i++) {
    tensors[i + 1] = fakednn_in_slot(node, values, i);
    data[i] = fakednn_data(node, values, i);
  }
  fakednn_walk_begin(&w, out, tensors, FAKEDNN_PW_INPUTS + 1);
  int64_t steps[FAKEDNN_PW_INPUTS + 1] = {w.step[1], w.step[2], w.step[3], w.step[4], w.step[0]};
  do {
    const float *in[FAKEDNN_PW_INPUTS];
    for (int i = 0; i < FAKEDNN_PW_INPUTS; i++) in[i] = data[i] ? data[i] + w.offset[i + 1] : NULL;
    bool along = node->axis == w.row_axis;
    const float index[2] = {along ? 0 : (float)fakednn_walk_index(&w, node->axis), along ? 1 : 0};
    fakednn_pointwise_row(node, in, fakednn_data(node, values, slot) + w.offset[0], steps, w.length, index);
  } while (fakednn_walk_next(&w));
  return true;
}
