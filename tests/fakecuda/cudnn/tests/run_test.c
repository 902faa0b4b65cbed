/* tests/fakecuda/cudnn/tests/run_test.c: what the double computes, against sums in f64 by the definition of
 * each operation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tests/fakecuda/cudnn/tests/patterns.h"

#define FORWARD CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
#define FILTER  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR
#define DATA    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR

static rig_graph *begin(void) { return rig_new(rig_double(), rig_handle()); }

static void check(const rig_graph *g) {
  if (g->status != CUDNN_STATUS_SUCCESS)
    fail_msg("status %d, line %d of rig.c: %s", (int)g->status, g->line, g->dnn->fakecudnn_why());
}

static void run(rig_graph *g, int mode, int number) {
  check(g);
  rig_execute(g, mode, number);
  check(g);
}

static void end(rig_graph *g) {
  rig_free_memory();
  rig_free(g);
}

static double tolerance(int type) {
  return type == CUDNN_DATA_HALF ? 1e-3 : type == CUDNN_DATA_BFLOAT16 ? 8e-3 : 1e-5;
}

/* Differences are allowed up to a part of the largest value, or of 1. */
static void compare_to(const rig_graph *g, int tensor, const double *expected, double part) {
  double *got = rig_read(g, tensor), most = 0;
  for (int64_t i = 0; i < rig_elements(g, tensor); i++) {
    if (fabs(expected[i]) > most) most = fabs(expected[i]);
  }
  double allowed = part * (most > 1 ? most : 1);
  for (int64_t i = 0; i < rig_elements(g, tensor); i++) {
    if (!(fabs(got[i] - expected[i]) <= allowed))
      fail_msg("tensor %d, element %lld: %g, expected %g", tensor, (long long)i, got[i], expected[i]);
  }
  free(got);
}

static void compare(const rig_graph *g, int tensor, const double *expected) {
  compare_to(g, tensor, expected, tolerance(g->tensors[tensor].type));
}

/* ---- convolutions ---- */

typedef struct window {
  int64_t n, c, h, w, k, r, groups, stride, padding, dilation;
} window;

static int64_t out_of(const window *v, int64_t in) {
  return (in + 2 * v->padding - v->dilation * (v->r - 1) - 1) / v->stride + 1;
}

/* Calls `term` for each product: offsets in x, w, y, row-major. */
static void each_product(const window *v, void (*term)(double *const of[3], const int64_t at[3]),
                         double *const of[3]) {
  int64_t p = out_of(v, v->h), q = out_of(v, v->w), cg = v->c / v->groups, kg = v->k / v->groups;
  for (int64_t i = 0; i < v->n * v->k * p * q; i++) {
    int64_t n = i / (v->k * p * q), k = i / (p * q) % v->k, y = i / q % p, x = i % q;
    for (int64_t j = 0; j < cg * v->r * v->r; j++) {
      int64_t c = j / (v->r * v->r), r = j / v->r % v->r, s = j % v->r;
      int64_t in_y = y * v->stride - v->padding + r * v->dilation,
              in_x = x * v->stride - v->padding + s * v->dilation;
      if (in_y < 0 || in_y >= v->h || in_x < 0 || in_x >= v->w) continue;
      term(of, (const int64_t[]){((n * v->c + k / kg * cg + c) * v->h + in_y) * v->w + in_x,
                                 k * cg * v->r * v->r + j, i});
    }
  }
}

static void forward_term(double *const of[3], const int64_t at[3]) {
  of[2][at[2]] += of[0][at[0]] * of[1][at[1]];
}
static void filter_term(double *const of[3], const int64_t at[3]) {
  of[1][at[1]] += of[0][at[0]] * of[2][at[2]];
}
static void data_term(double *const of[3], const int64_t at[3]) {
  of[0][at[0]] += of[1][at[1]] * of[2][at[2]];
}

static void check_convolution(int kind, int type, const window *v, int mode, int number) {
  rig_graph *g = begin();
  int t[3] = {rig_image(g, type, RIG_MEMORY, v->n, v->c, v->h, v->w),
              rig_image(g, type, RIG_MEMORY, v->k, v->c / v->groups, v->r, v->r),
              rig_image(g, type, RIG_MEMORY, v->n, v->k, out_of(v, v->h), out_of(v, v->w))};
  int out = kind == FORWARD ? 2 : kind == FILTER ? 1 : 0;
  rig_convolve(g, kind, t[0], t[1], t[2], v->stride, v->padding, v->dilation);
  rig_close(g);
  rig_fill(g, 7);
  double *of[3];
  for (int i = 0; i < 3; i++) of[i] = rig_read(g, t[i]);
  for (int64_t i = 0; i < rig_elements(g, t[out]); i++) of[out][i] = 0;
  each_product(v, out == 2 ? forward_term : out == 1 ? filter_term : data_term, of);
  run(g, mode, number);
  /* Of float, the engines of mode A round operands to TF32. */
  bool tf32 = type == CUDNN_DATA_FLOAT && mode == CUDNN_HEUR_MODE_A;
  compare_to(g, t[out], of[out], tf32 ? 1e-3 : tolerance(type));
  for (int i = 0; i < 3; i++) free(of[i]);
  end(g);
}

static void convolutions(void **state) {
  (void)state;
  static const window windows[] = {
      {2, 8, 7, 6, 16, 3, 1, 1, 1, 1}, {1, 5, 9, 9, 7, 3, 1, 2, 1, 1},  {3, 8, 5, 5, 8, 1, 1, 1, 0, 1},
      {2, 6, 8, 8, 9, 3, 3, 1, 0, 1},  {2, 4, 9, 11, 4, 3, 4, 2, 2, 2}, {1, 24, 12, 12, 40, 5, 1, 3, 2, 1},
  };
  static const int types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
  for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
    for (int type = 0; type < 3; type++) {
      for (int kind = FORWARD; kind <= DATA; kind++) {
        check_convolution(kind, types[type], &windows[i], CUDNN_HEUR_MODE_A, 0);
        check_convolution(kind, types[type], &windows[i], CUDNN_HEUR_MODE_A, 1);
        check_convolution(kind, types[type], &windows[i], CUDNN_HEUR_MODE_FALLBACK, 0);
      }
    }
  }
}

/* ---- fusions of convolutions ---- */

static const rig_window same = {2, 8, 6, 16, 3, 1, 1};

/* The convolution of x, row-major, with weight tensor w of g. */
static double *convolved(const rig_graph *g, const double *x, int w, const rig_window *v, int64_t elements) {
  const window shape = {v->n, v->c, v->size, v->size, v->k, v->filter, 1, v->stride, v->padding, 1};
  double *weights = rig_read(g, w), *y = calloc((size_t)elements, sizeof *y);
  if (!y) abort();
  each_product(&shape, forward_term, (double *const[]){(double *)(uintptr_t)x, weights, y});
  free(weights);
  return y;
}

static double relu(double x) { return x > 0 ? x : 0; }

/* Sums and sums of squares of the channels of tensor y. */
static void check_sums(const rig_graph *g, int y, int sum, int squares) {
  double sums[2][64] = {{0}}, *values = rig_read(g, y);
  const int64_t *d = g->tensors[y].dims;
  for (int64_t i = 0; i < rig_elements(g, y); i++) {
    int64_t c = i / (d[2] * d[3]) % d[1];
    sums[0][c] += values[i], sums[1][c] += values[i] * values[i];
  }
  compare(g, sum, sums[0]);
  compare(g, squares, sums[1]);
  free(values);
}

static void convolution_with_neighbours(void **state) {
  (void)state;
  enum { X, SCALE, BIAS, W = 6, Y, SUM, SQUARES };
  rig_graph *g = begin();
  pattern_scaled_forward(g, CUDNN_DATA_HALF, &same, true);
  rig_close(g);
  rig_fill(g, 11);
  double *x = rig_read(g, X), *scale = rig_read(g, SCALE), *bias = rig_read(g, BIAS);
  for (int64_t i = 0; i < rig_elements(g, X); i++) x[i] = relu(x[i] * scale[i / 36 % 8] + bias[i / 36 % 8]);
  double *y = convolved(g, x, W, &same, rig_elements(g, Y));
  run(g, CUDNN_HEUR_MODE_A, 0);
  compare_to(g, Y, y, 2e-3);
  check_sums(g, Y, SUM, SQUARES);
  free(x), free(scale), free(bias), free(y);
  end(g);
}

static void bias_and_residual(void **state) {
  (void)state;
  enum { X, W, BIAS = 3, OTHER = 5, Z = 7 };
  rig_graph *g = begin();
  pattern_bias_relu(g, CUDNN_DATA_BFLOAT16, &same, true);
  rig_close(g);
  rig_fill(g, 12);
  double *x = rig_read(g, X), *bias = rig_read(g, BIAS), *other = rig_read(g, OTHER);
  double *y = convolved(g, x, W, &same, rig_elements(g, Z));
  for (int64_t i = 0; i < rig_elements(g, Z); i++) y[i] = relu(y[i] + bias[i / 36 % 16] + other[i]);
  run(g, CUDNN_HEUR_MODE_A, 0);
  compare(g, Z, y);
  free(x), free(bias), free(other), free(y);
  end(g);
}

/* The gradients of scale and bias, and what the coefficients make of dy and x: the gradient of a batch norm,
 * whose sum and whose product with the normalized operand vanish where the statistics are those of x. */
static void data_gradient_and_norm(void **state) {
  (void)state;
  enum { DY, W, X = 3, MEAN, DEVIATION, SCALE, BIAS, THROUGH = 12, DSCALE, DBIAS, EQ_DY, EQ_X, EQ_BIAS };
  rig_graph *g = begin();
  pattern_data_norm(g, CUDNN_DATA_HALF, &same);
  rig_close(g);
  rig_fill(g, 13);
  double *x = rig_read(g, X), mean[8] = {0}, deviation[8] = {0}, dbias[8] = {0}, dscale[8] = {0};
  for (int64_t i = 0; i < rig_elements(g, X); i++) mean[i / 36 % 8] += x[i] / 72;
  for (int64_t i = 0; i < rig_elements(g, X); i++)
    deviation[i / 36 % 8] += (x[i] - mean[i / 36 % 8]) * (x[i] - mean[i / 36 % 8]) / 72;
  for (int c = 0; c < 8; c++) deviation[c] = 1 / sqrt(deviation[c]);
  rig_write(g, MEAN, mean);
  rig_write(g, DEVIATION, deviation);
  run(g, CUDNN_HEUR_MODE_A, 0);
  double *scale = rig_read(g, SCALE), *bias = rig_read(g, BIAS), *through = rig_read(g, THROUGH);
  double *of_dy = rig_read(g, EQ_DY), *of_x = rig_read(g, EQ_X), *rest = rig_read(g, EQ_BIAS), sums[8] = {0},
         products[8] = {0};
  for (int64_t i = 0; i < rig_elements(g, X); i++) {
    int64_t c = i / 36 % 8;
    double normal = (x[i] - mean[c]) * deviation[c], dx = of_dy[c] * through[i] + of_x[c] * x[i] + rest[c];
    if (normal * scale[c] + bias[c] < -1e-3) assert_true(through[i] == 0);
    dbias[c] += through[i], dscale[c] += through[i] * normal;
    sums[c] += dx, products[c] += dx * normal;
  }
  compare_to(g, DBIAS, dbias, 1e-4);
  compare_to(g, DSCALE, dscale, 1e-4);
  for (int c = 0; c < 8; c++) assert_true(fabs(sums[c]) < 1e-2 && fabs(products[c]) < 1e-2);
  free(x), free(scale), free(bias), free(through), free(of_dy), free(of_x), free(rest);
  end(g);
}

static void statistics_finalized(void **state) {
  (void)state;
  enum {
    SUM,
    SQUARES,
    SCALE,
    BIAS,
    MEAN_BEFORE,
    VARIANCE_BEFORE,
    MEAN_AFTER,
    VARIANCE_AFTER,
    MEAN,
    INVERSE,
    EQ_SCALE,
    EQ_BIAS
  };
  rig_graph *g = begin();
  pattern_bn_finalize(g, 4);
  rig_close(g);
  rig_fill(g, 14);
  const double sum[4] = {64, -32, 0, 6.4}, squares[4] = {128, 64, 16, 640};
  rig_write(g, SUM, sum);
  rig_write(g, SQUARES, squares);
  double *scale = rig_read(g, SCALE), *bias = rig_read(g, BIAS), *before = rig_read(g, VARIANCE_BEFORE);
  double *mean_before = rig_read(g, MEAN_BEFORE), of[6][4];
  for (int c = 0; c < 4; c++) {
    double mean = sum[c] / 64, variance = squares[c] / 64 - mean * mean, inverse = 1 / sqrt(variance + 1e-5);
    of[0][c] = 0.75 * mean_before[c] + 0.25 * mean, of[1][c] = 0.75 * before[c] + 0.25 * variance * 64 / 63;
    of[2][c] = mean, of[3][c] = inverse, of[4][c] = scale[c] * inverse, of[5][c] = bias[c] - mean * of[4][c];
  }
  run(g, CUDNN_HEUR_MODE_A, 0);
  for (int i = 0; i < 6; i++) compare(g, MEAN_AFTER + i, of[i]);
  free(scale), free(bias), free(before), free(mean_before);
  end(g);
}

/* ---- attention ---- */

enum { B = 2, H = 3, S = 5, D = 8, MATRICES = B * H };

typedef struct attended {
  double p[S][S], o[S][D], lse[S];
} attended;

/* q, k, v: [S][D]. */
static attended attend(const double *q, const double *k, const double *v) {
  attended a = {{{0}}, {{0}}, {0}};
  for (int i = 0; i < S; i++) {
    double sum = 0;
    for (int j = 0; j <= i; j++) {
      for (int c = 0; c < D; c++) a.p[i][j] += q[i * D + c] * k[j * D + c] / sqrt(D);
      sum += a.p[i][j] = exp(a.p[i][j]);
    }
    a.lse[i] = log(sum);
    for (int j = 0; j <= i; j++) {
      a.p[i][j] /= sum;
      for (int c = 0; c < D; c++) a.o[i][c] += a.p[i][j] * v[j * D + c];
    }
  }
  return a;
}

/* Element (row, column) of matrix m of a tensor that has its last two dimensions exchanged. */
static double *turned_back(double *x) {
  double *y = malloc((size_t)(MATRICES * S * D) * sizeof *y);
  if (!y) abort();
  for (int64_t i = 0; i < MATRICES * S * D; i++) y[i] = x[i / (S * D) * S * D + i % D * S + i / D % S];
  free(x);
  return y;
}

static void attention(void **state) {
  (void)state;
  rig_graph *g = begin();
  int o = pattern_attention(g, CUDNN_DATA_HALF, &(rig_attention){B, H, S, D, true});
  rig_close(g);
  rig_fill(g, 15);
  double *q = rig_read(g, 0), *k = turned_back(rig_read(g, 1)), *v = rig_read(g, 2);
  double expected[MATRICES][S][D], lse[MATRICES][S];
  for (int m = 0; m < MATRICES; m++) {
    attended a = attend(q + m * S * D, k + m * S * D, v + m * S * D);
    memcpy(expected[m], a.o, sizeof a.o);
    memcpy(lse[m], a.lse, sizeof a.lse);
  }
  run(g, CUDNN_HEUR_MODE_A, 0);
  compare_to(g, o, &expected[0][0][0], 2e-3);
  compare(g, o - 1, &lse[0][0]);
  free(q), free(k), free(v);
  end(g);
}

/* Gradients of Q, K, V of one matrix. */
static void attend_back(const attended *a, const double *q, const double *k, const double *v,
                        const double *grad, double *dq, double *dk, double *dv) {
  for (int i = 0; i < S; i++) {
    double row = 0;
    for (int c = 0; c < D; c++) row += grad[i * D + c] * a->o[i][c];
    for (int j = 0; j <= i; j++) {
      double dp = 0;
      for (int c = 0; c < D; c++) dp += grad[i * D + c] * v[j * D + c];
      double ds = a->p[i][j] * (dp - row) / sqrt(D);
      for (int c = 0; c < D; c++) {
        dq[i * D + c] += ds * k[j * D + c];
        dk[j * D + c] += ds * q[i * D + c];
        dv[j * D + c] += a->p[i][j] * grad[i * D + c];
      }
    }
  }
}

static void attention_grad(void **state) {
  (void)state;
  enum { Q, K, V, GRAD, O, LSE, K_TURNED, N = MATRICES * S * D };
  rig_graph *g = begin();
  int dq = pattern_attention_grad(g, CUDNN_DATA_HALF, &(rig_attention){B, H, S, D, true});
  rig_close(g);
  rig_fill(g, 16);
  double *q = rig_read(g, Q), *k = rig_read(g, K), *v = turned_back(rig_read(g, V)),
         *grad = rig_read(g, GRAD);
  double o[N], lse[MATRICES * S], k_turned[N], of[3][N] = {{0}};
  for (int m = 0; m < MATRICES; m++) {
    int at = m * S * D;
    attended a = attend(q + at, k + at, v + at);
    memcpy(o + at, a.o, sizeof a.o);
    memcpy(lse + m * S, a.lse, sizeof a.lse);
    for (int i = 0; i < S * D; i++) k_turned[at + i % D * S + i / D] = k[at + i];
    attend_back(&a, q + at, k + at, v + at, grad + at, of[0] + at, of[1] + at, of[2] + at);
  }
  rig_write(g, O, o);
  rig_write(g, LSE, lse);
  rig_write(g, K_TURNED, k_turned);
  run(g, CUDNN_HEUR_MODE_A, 0);
  for (int i = 0; i < 3; i++) compare_to(g, dq + i, of[i], 4e-3);
  free(q), free(k), free(v), free(grad);
  end(g);
}

/* Each batch has lengths of its own; results behind them are 0. */
static void lengths(void **state) {
  (void)state;
  static const double rows[2] = {3, 4}, inner[2] = {6, 2};
  rig_graph *g = begin();
  int a = rig_matrix(g, CUDNN_DATA_HALF, RIG_MEMORY, 2, 1, 4, 6),
      b = rig_matrix(g, CUDNN_DATA_HALF, RIG_MEMORY, 2, 1, 6, 5);
  int c = rig_matrix(g, CUDNN_DATA_FLOAT, RIG_MEMORY, 2, 1, 4, 5);
  int m = rig_matrix(g, CUDNN_DATA_INT32, RIG_MEMORY, 2, 1, 1, 1),
      k = rig_matrix(g, CUDNN_DATA_INT32, RIG_MEMORY, 2, 1, 1, 1);
  rig_multiply_lengths(g, a, b, c, m, -1, k);
  rig_close(g);
  rig_fill(g, 19);
  rig_write(g, m, rows);
  rig_write(g, k, inner);
  double *of_a = rig_read(g, a), *of_b = rig_read(g, b), expected[40] = {0};
  for (int i = 0; i < 40; i++) {
    int batch = i / 20, row = i / 5 % 4;
    for (int j = 0; j < inner[batch] && row < rows[batch]; j++)
      expected[i] += of_a[(batch * 4 + row) * 6 + j] * of_b[(batch * 6 + j) * 5 + i % 5];
  }
  run(g, CUDNN_HEUR_MODE_A, 0);
  compare(g, c, expected);
  free(of_a), free(of_b);
  end(g);
}

/* ---- pointwise operations and reductions ---- */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* The modes by their definition; y: the second operand, or DY. */
static double value_of(int mode, double x, double y) {
  switch (mode) {
  case CUDNN_POINTWISE_ADD: return x + y;
  case CUDNN_POINTWISE_ADD_SQUARE: return x + y * y;
  case CUDNN_POINTWISE_DIV: return x / y;
  case CUDNN_POINTWISE_MAX: return x > y ? x : y;
  case CUDNN_POINTWISE_MIN: return x < y ? x : y;
  case CUDNN_POINTWISE_MUL: return x * y;
  case CUDNN_POINTWISE_SUB: return x - y;
  case CUDNN_POINTWISE_CMP_GT: return x > y;
  case CUDNN_POINTWISE_CMP_LE: return x <= y;
  case CUDNN_POINTWISE_LOGICAL_AND: return x != 0 && y != 0;
  case CUDNN_POINTWISE_ABS: return fabs(x);
  case CUDNN_POINTWISE_EXP: return exp(x);
  case CUDNN_POINTWISE_NEG: return -x;
  case CUDNN_POINTWISE_ERF: return erf(x);
  case CUDNN_POINTWISE_IDENTITY: return x;
  case CUDNN_POINTWISE_RECIPROCAL: return 1 / x;
  case CUDNN_POINTWISE_RELU_FWD: return relu(x);
  case CUDNN_POINTWISE_TANH_FWD: return tanh(x);
  case CUDNN_POINTWISE_SIGMOID_FWD: return sigmoid(x);
  case CUDNN_POINTWISE_GELU_FWD: return x * (1 + erf(x / sqrt(2))) / 2;
  case CUDNN_POINTWISE_SWISH_FWD: return x * sigmoid(x);
  case CUDNN_POINTWISE_RELU_BWD: return x > 0 ? y : 0;
  case CUDNN_POINTWISE_TANH_BWD: return y * (1 - tanh(x) * tanh(x));
  case CUDNN_POINTWISE_SIGMOID_BWD: return y * sigmoid(x) * (1 - sigmoid(x));
  default: return NAN;
  }
}

static void check_mode(int mode, bool binary) {
  rig_graph *g = begin();
  bool backward = mode >= CUDNN_POINTWISE_RELU_BWD && mode <= CUDNN_POINTWISE_GELU_APPROX_TANH_BWD;
  int x = rig_image(g, CUDNN_DATA_FLOAT, RIG_MEMORY, 2, 8, 5, 5);
  int y = rig_image(g, CUDNN_DATA_FLOAT, RIG_MEMORY, 2, 8, 5, 5);
  int b = !binary    ? -1
          : backward ? rig_image(g, CUDNN_DATA_FLOAT, RIG_MEMORY, 2, 8, 5, 5)
                     : rig_image(g, CUDNN_DATA_FLOAT, RIG_MEMORY, 1, 8, 1, 1);
  if (backward)
    rig_backward(g, mode, b, x, y);
  else
    rig_pointwise(g, mode, x, b, -1, y);
  rig_close(g);
  rig_fill(g, 17);
  double *of_x = rig_read(g, x), *of_b = binary ? rig_read(g, b) : NULL;
  for (int64_t i = 0; i < 400; i++)
    of_x[i] = value_of(mode, of_x[i], binary ? of_b[backward ? i : i / 25 % 8] : 0);
  run(g, CUDNN_HEUR_MODE_A, 0);
  compare(g, y, of_x);
  free(of_x), free(of_b);
  end(g);
}

static void modes(void **state) {
  (void)state;
  static const int binary[] = {
      CUDNN_POINTWISE_ADD,        CUDNN_POINTWISE_ADD_SQUARE,  CUDNN_POINTWISE_DIV,
      CUDNN_POINTWISE_MAX,        CUDNN_POINTWISE_MIN,         CUDNN_POINTWISE_MUL,
      CUDNN_POINTWISE_SUB,        CUDNN_POINTWISE_CMP_GT,      CUDNN_POINTWISE_CMP_LE,
      CUDNN_POINTWISE_RELU_BWD,   CUDNN_POINTWISE_LOGICAL_AND, CUDNN_POINTWISE_TANH_BWD,
      CUDNN_POINTWISE_SIGMOID_BWD};
  static const int unary[] = {CUDNN_POINTWISE_ABS,      CUDNN_POINTWISE_EXP,      CUDNN_POINTWISE_NEG,
                              CUDNN_POINTWISE_ERF,      CUDNN_POINTWISE_IDENTITY, CUDNN_POINTWISE_RECIPROCAL,
                              CUDNN_POINTWISE_RELU_FWD, CUDNN_POINTWISE_TANH_FWD, CUDNN_POINTWISE_SIGMOID_FWD,
                              CUDNN_POINTWISE_GELU_FWD, CUDNN_POINTWISE_SWISH_FWD};
  for (size_t i = 0; i < sizeof binary / sizeof *binary; i++) check_mode(binary[i], true);
  for (size_t i = 0; i < sizeof unary / sizeof *unary; i++) check_mode(unary[i], false);
}

static void reductions(void **state) {
  (void)state;
  static const int modes[] = {CUDNN_REDUCE_TENSOR_ADD,  CUDNN_REDUCE_TENSOR_MIN, CUDNN_REDUCE_TENSOR_MAX,
                              CUDNN_REDUCE_TENSOR_AMAX, CUDNN_REDUCE_TENSOR_AVG, CUDNN_REDUCE_TENSOR_NORM1,
                              CUDNN_REDUCE_TENSOR_NORM2};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    rig_graph *g = begin();
    int x = rig_image(g, CUDNN_DATA_FLOAT, RIG_MEMORY, 2, 4, 3, 5),
        y = rig_image(g, CUDNN_DATA_FLOAT, RIG_MEMORY, 1, 4, 1, 1);
    rig_reduce(g, modes[i], x, y);
    rig_close(g);
    rig_fill(g, 18);
    double *of_x = rig_read(g, x), of[7][4] = {{0}};
    for (int c = 0; c < 4; c++) of[1][c] = INFINITY, of[2][c] = -INFINITY;
    for (int j = 0; j < 120; j++) {
      int c = j / 15 % 4;
      double v = of_x[j];
      of[0][c] += v, of[1][c] = fmin(of[1][c], v), of[2][c] = fmax(of[2][c], v),
                     of[3][c] = fmax(of[3][c], fabs(v));
      of[4][c] += v / 30, of[5][c] += fabs(v), of[6][c] += v * v;
    }
    for (int c = 0; c < 4; c++) of[6][c] = sqrt(of[6][c]);
    run(g, CUDNN_HEUR_MODE_A, 0);
    compare(g, y, of[i]);
    free(of_x);
    end(g);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convolutions),
      cmocka_unit_test(convolution_with_neighbours),
      cmocka_unit_test(bias_and_residual),
      cmocka_unit_test(data_gradient_and_norm),
      cmocka_unit_test(statistics_finalized),
      cmocka_unit_test(attention),
      cmocka_unit_test(attention_grad),
      cmocka_unit_test(lengths),
      cmocka_unit_test(modes),
      cmocka_unit_test(reductions),
  };
  return cmocka_run_group_tests(tests, NULL, rig_leave);
}
