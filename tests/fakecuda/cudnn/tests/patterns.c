/* tests/fakecuda/cudnn/tests/patterns.c: see patterns.h. */
#include <math.h>
#include "tests/fakecuda/cudnn/tests/patterns.h"

#define FORWARD CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
#define FILTER  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR
#define DATA    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
#define F32     CUDNN_DATA_FLOAT

int64_t rig_window_out(const rig_window *v) { return (v->size + 2 * v->padding - v->filter) / v->stride + 1; }

static int channels(rig_graph *g, int type, int64_t n) { return rig_image(g, type, RIG_MEMORY, 1, n, 1, 1); }

static int input(rig_graph *g, int type, int kind, const rig_window *v) {
  return rig_image(g, type, kind, v->n, v->c, v->size, v->size);
}

static int weight(rig_graph *g, int type, const rig_window *v) {
  return rig_image(g, type, RIG_MEMORY, v->k, v->c, v->filter, v->filter);
}

static int output(rig_graph *g, int type, int kind, const rig_window *v) {
  return rig_image(g, type, kind, v->n, v->k, rig_window_out(v), rig_window_out(v));
}

/* ---- convolutions ---- */

int pattern_forward(rig_graph *g, int type, const rig_window *v, int kind) {
  int x = input(g, type, RIG_MEMORY, v), w = weight(g, type, v);
  int y = output(g, kind == RIG_VIRTUAL ? F32 : type, kind, v);
  rig_convolve(g, FORWARD, x, w, y, v->stride, v->padding, 1);
  return y;
}

void pattern_forward_statistics(rig_graph *g, int type, const rig_window *v) {
  int y = pattern_forward(g, type, v, RIG_MEMORY);
  int sum = channels(g, F32, v->k), squares = channels(g, F32, v->k);
  rig_statistics(g, y, sum, squares);
}

/* A virtual image relu(scale x + bias). */
static int scaled(rig_graph *g, int type, const rig_window *v) {
  int x = input(g, type, RIG_MEMORY, v), scale = channels(g, type, v->c), bias = channels(g, type, v->c);
  int product = input(g, F32, RIG_VIRTUAL, v), sum = input(g, F32, RIG_VIRTUAL, v);
  int y = input(g, type, RIG_VIRTUAL, v);
  rig_pointwise(g, CUDNN_POINTWISE_MUL, x, scale, -1, product);
  rig_pointwise(g, CUDNN_POINTWISE_ADD, product, bias, -1, sum);
  rig_pointwise(g, CUDNN_POINTWISE_RELU_FWD, sum, -1, -1, y);
  return y;
}

void pattern_scaled_forward(rig_graph *g, int type, const rig_window *v, bool statistics) {
  int x = scaled(g, type, v), w = weight(g, type, v), y = output(g, type, RIG_MEMORY, v);
  rig_convolve(g, FORWARD, x, w, y, v->stride, v->padding, 1);
  if (!statistics) return;
  int sum = channels(g, F32, v->k), squares = channels(g, F32, v->k);
  rig_statistics(g, y, sum, squares);
}

void pattern_scaled_filter(rig_graph *g, int type, const rig_window *v) {
  int x = scaled(g, type, v), w = weight(g, type, v), y = output(g, type, RIG_MEMORY, v);
  rig_convolve(g, FILTER, x, w, y, v->stride, v->padding, 1);
}

void pattern_data_norm(rig_graph *g, int type, const rig_window *v) {
  int dy = output(g, type, RIG_MEMORY, v), w = weight(g, type, v), dx = input(g, F32, RIG_VIRTUAL, v);
  rig_convolve(g, DATA, dx, w, dy, v->stride, v->padding, 1);
  int x = input(g, type, RIG_MEMORY, v), mean = channels(g, F32, v->c), deviation = channels(g, F32, v->c);
  int scale = channels(g, F32, v->c), bias = channels(g, F32, v->c);
  int centered = input(g, F32, RIG_VIRTUAL, v), normal = input(g, F32, RIG_VIRTUAL, v);
  int product = input(g, F32, RIG_VIRTUAL, v), before = input(g, F32, RIG_VIRTUAL, v);
  rig_pointwise(g, CUDNN_POINTWISE_SUB, x, mean, -1, centered);
  rig_pointwise(g, CUDNN_POINTWISE_MUL, centered, deviation, -1, normal);
  rig_pointwise(g, CUDNN_POINTWISE_MUL, normal, scale, -1, product);
  rig_pointwise(g, CUDNN_POINTWISE_ADD, product, bias, -1, before);
  int through = input(g, type, RIG_MEMORY, v);
  rig_backward(g, CUDNN_POINTWISE_RELU_BWD, dx, before, through);
  int results[5];
  for (int i = 0; i < 5; i++) results[i] = channels(g, F32, v->c);
  rig_bn_backward(g, (const int[]){mean, deviation, scale, x, through, results[0], results[1], results[2],
                                   results[3], results[4]});
}

void pattern_bias_relu(rig_graph *g, int type, const rig_window *v, bool residual) {
  int y = pattern_forward(g, type, v, RIG_VIRTUAL), bias = channels(g, type, v->k);
  int sum = output(g, F32, RIG_VIRTUAL, v), other = residual ? output(g, type, RIG_MEMORY, v) : -1;
  int both = residual ? output(g, F32, RIG_VIRTUAL, v) : -1, z = output(g, type, RIG_MEMORY, v);
  rig_pointwise(g, CUDNN_POINTWISE_ADD, y, bias, -1, sum);
  if (residual) rig_pointwise(g, CUDNN_POINTWISE_ADD, sum, other, -1, both);
  rig_pointwise(g, CUDNN_POINTWISE_RELU_FWD, residual ? both : sum, -1, -1, z);
}

void pattern_bn_finalize(rig_graph *g, int64_t n) {
  int t[15];
  for (int i = 0; i < 12; i++) t[i] = channels(g, F32, n);
  t[12] = rig_count(g, 64);
  t[13] = rig_value(g, 1e-5f);
  t[14] = rig_value(g, 0.25f);
  rig_bn_finalize(g, t);
}

/* ---- attention ---- */

static int scores(rig_graph *g, int type, int kind, const rig_attention *a) {
  return rig_matrix(g, type, kind, a->b, a->h, a->s, a->s);
}

static int rows(rig_graph *g, int kind, const rig_attention *a) {
  return rig_matrix(g, F32, kind, a->b, a->h, a->s, 1);
}

static int heads(rig_graph *g, int type, int kind, const rig_attention *a) {
  return rig_matrix(g, type, kind, a->b, a->h, a->s, a->d);
}

/* The same memory as heads(), with the last two dimensions exchanged. */
static int turned(rig_graph *g, int type, const rig_attention *a) {
  const int64_t dims[] = {a->b, a->h, a->d, a->s}, strides[] = {a->h * a->s * a->d, a->s * a->d, 1, a->d};
  return rig_add(g, type, RIG_MEMORY, 4, dims, strides);
}

/* x where the key is not behind the query, otherwise a large negative number. */
static int masked(rig_graph *g, const rig_attention *a, int x) {
  if (!a->causal) return x;
  int row = scores(g, F32, RIG_VIRTUAL, a), column = scores(g, F32, RIG_VIRTUAL, a);
  int past = scores(g, CUDNN_DATA_BOOLEAN, RIG_VIRTUAL, a), y = scores(g, F32, RIG_VIRTUAL, a);
  int least = rig_value(g, -1e30f);
  rig_index(g, 2, x, row);
  rig_index(g, 3, x, column);
  rig_pointwise(g, CUDNN_POINTWISE_CMP_GE, row, column, -1, past);
  rig_pointwise(g, CUDNN_POINTWISE_BINARY_SELECT, x, least, past, y);
  return y;
}

int pattern_attention(rig_graph *g, int type, const rig_attention *a) {
  int q = heads(g, type, RIG_MEMORY, a), k = turned(g, type, a), v = heads(g, type, RIG_MEMORY, a);
  int s = scores(g, F32, RIG_VIRTUAL, a), scaled_s = scores(g, F32, RIG_VIRTUAL, a);
  int scale = rig_value(g, 1 / sqrtf((float)a->d));
  rig_multiply(g, q, k, s);
  rig_pointwise(g, CUDNN_POINTWISE_MUL, s, scale, -1, scaled_s);
  int z = masked(g, a, scaled_s), most = rows(g, RIG_VIRTUAL, a), less = scores(g, F32, RIG_VIRTUAL, a);
  int e = scores(g, F32, RIG_VIRTUAL, a), sum = rows(g, RIG_VIRTUAL, a), log = rows(g, RIG_VIRTUAL, a);
  int p = scores(g, type, RIG_VIRTUAL, a), lse = rows(g, RIG_MEMORY, a), o = heads(g, type, RIG_MEMORY, a);
  rig_reduce(g, CUDNN_REDUCE_TENSOR_MAX, z, most);
  rig_pointwise(g, CUDNN_POINTWISE_SUB, z, most, -1, less);
  rig_pointwise(g, CUDNN_POINTWISE_EXP, less, -1, -1, e);
  rig_reduce(g, CUDNN_REDUCE_TENSOR_ADD, e, sum);
  rig_pointwise(g, CUDNN_POINTWISE_LOG, sum, -1, -1, log);
  rig_pointwise(g, CUDNN_POINTWISE_ADD, most, log, -1, lse);
  rig_pointwise(g, CUDNN_POINTWISE_DIV, e, sum, -1, p);
  rig_multiply(g, p, v, o);
  return o;
}

/* The transpose of a virtual matrix. */
static int turn(rig_graph *g, int type, const rig_attention *a, int x) {
  const int64_t dims[] = {a->b, a->h, a->s, a->s}, strides[] = {a->h * a->s * a->s, a->s * a->s, 1, a->s};
  int y = rig_add(g, type, RIG_VIRTUAL, 4, dims, strides);
  rig_reshape(g, x, y);
  return y;
}

int pattern_attention_grad(rig_graph *g, int type, const rig_attention *a) {
  int q = heads(g, type, RIG_MEMORY, a), k = heads(g, type, RIG_MEMORY, a), v = turned(g, type, a);
  int grad = heads(g, type, RIG_MEMORY, a), o = heads(g, type, RIG_MEMORY, a), lse = rows(g, RIG_MEMORY, a);
  int k_turned = turned(g, type, a), scale = rig_value(g, 1 / sqrtf((float)a->d));
  int both = heads(g, F32, RIG_VIRTUAL, a), row = rows(g, RIG_MEMORY, a);
  rig_pointwise(g, CUDNN_POINTWISE_MUL, grad, o, -1, both);
  rig_reduce(g, CUDNN_REDUCE_TENSOR_ADD, both, row);
  int s = scores(g, F32, RIG_VIRTUAL, a), scaled_s = scores(g, F32, RIG_VIRTUAL, a);
  rig_multiply(g, q, k_turned, s);
  rig_pointwise(g, CUDNN_POINTWISE_MUL, s, scale, -1, scaled_s);
  int z = masked(g, a, scaled_s), less = scores(g, F32, RIG_VIRTUAL, a), p = scores(g, type, RIG_VIRTUAL, a);
  rig_pointwise(g, CUDNN_POINTWISE_SUB, z, lse, -1, less);
  rig_pointwise(g, CUDNN_POINTWISE_EXP, less, -1, -1, p);
  int dp = scores(g, F32, RIG_VIRTUAL, a), centered = scores(g, F32, RIG_VIRTUAL, a);
  int product = scores(g, F32, RIG_VIRTUAL, a), ds = scores(g, type, RIG_VIRTUAL, a);
  rig_multiply(g, grad, v, dp);
  rig_pointwise(g, CUDNN_POINTWISE_SUB, dp, row, -1, centered);
  rig_pointwise(g, CUDNN_POINTWISE_MUL, p, centered, -1, product);
  rig_pointwise(g, CUDNN_POINTWISE_MUL, product, scale, -1, ds);
  int p_turned = turn(g, type, a, p), ds_turned = turn(g, type, a, ds);
  int dq = heads(g, type, RIG_MEMORY, a), dk = heads(g, type, RIG_MEMORY, a),
      dv = heads(g, type, RIG_MEMORY, a);
  rig_multiply(g, ds, k, dq);
  rig_multiply(g, ds_turned, q, dk);
  rig_multiply(g, p_turned, grad, dv);
  return dq;
}

/* ---- single operations, and shapes of convolutions ---- */

static void add_gradient(rig_graph *g, int kind, int type, const rig_window *v) {
  int x = input(g, type, RIG_MEMORY, v), w = weight(g, type, v), y = output(g, type, RIG_MEMORY, v);
  rig_convolve(g, kind, x, w, y, v->stride, v->padding, 1);
}

static void add_single(rig_graph *g, int kind, int type) {
  int x = rig_image(g, type, RIG_MEMORY, 8, 64, 28, 28), y = rig_image(g, type, RIG_MEMORY, 8, 64, 28, 28);
  if (kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) {
    rig_pointwise(g, CUDNN_POINTWISE_RELU_FWD, x, -1, -1, y);
    return;
  }
  int sum = channels(g, F32, 64);
  if (kind == CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR)
    rig_statistics(g, x, sum, channels(g, F32, 64));
  else
    rig_reduce(g, CUDNN_REDUCE_TENSOR_ADD, x, sum);
}

static int add_matrix(rig_graph *g, int type, int kind, int64_t batch, int64_t rows, int64_t columns) {
  const int64_t dims[] = {batch, rows, columns};
  return rig_add(g, type, kind, 3, dims, NULL);
}

static void add_product(rig_graph *g, int type, bool bias) {
  int a = add_matrix(g, type, RIG_MEMORY, 4, 64, 128), b = add_matrix(g, type, RIG_MEMORY, 4, 128, 256);
  int c = add_matrix(g, bias ? F32 : type, bias ? RIG_VIRTUAL : RIG_MEMORY, 4, 64, 256);
  rig_multiply(g, a, b, c);
  if (!bias) return;
  int rest = add_matrix(g, type, RIG_MEMORY, 1, 1, 256), sum = add_matrix(g, F32, RIG_VIRTUAL, 4, 64, 256);
  rig_pointwise(g, CUDNN_POINTWISE_ADD, c, rest, -1, sum);
  rig_pointwise(g, CUDNN_POINTWISE_RELU_FWD, sum, -1, -1, add_matrix(g, type, RIG_MEMORY, 4, 64, 256));
}

/* Row-major images, or groups of one channel. */
static void add_other_layout(rig_graph *g, int type, bool groups) {
  const int64_t image[] = {8, 64, 28, 28}, filter[] = {64, 64, 3, 3};
  int x =
      groups ? rig_image(g, type, RIG_MEMORY, 8, 64, 28, 28) : rig_add(g, type, RIG_MEMORY, 4, image, NULL);
  int w =
      groups ? rig_image(g, type, RIG_MEMORY, 64, 1, 3, 3) : rig_add(g, type, RIG_MEMORY, 4, filter, NULL);
  int y =
      groups ? rig_image(g, type, RIG_MEMORY, 8, 64, 28, 28) : rig_add(g, type, RIG_MEMORY, 4, image, NULL);
  rig_convolve(g, FORWARD, x, w, y, 1, 1, 1);
}

static void add_data_relu(rig_graph *g, int type, const rig_window *v) {
  int dy = output(g, type, RIG_MEMORY, v), w = weight(g, type, v), dx = input(g, F32, RIG_VIRTUAL, v);
  rig_convolve(g, DATA, dx, w, dy, v->stride, v->padding, 1);
  int x = input(g, type, RIG_MEMORY, v), through = input(g, type, RIG_MEMORY, v);
  rig_backward(g, CUDNN_POINTWISE_RELU_BWD, dx, x, through);
}

/* ---- by number ---- */

const char *pattern_add(rig_graph *g, int number, int type) {
  static const rig_window same = {8, 64, 28, 64, 3, 1, 1}, half = {8, 64, 28, 128, 3, 2, 1},
                          three = {8, 3, 32, 64, 3, 1, 1};
  static const rig_window stem = {8, 8, 56, 64, 7, 2, 3}, short_cut = {8, 64, 28, 128, 1, 2, 0};
  static const rig_window five = {8, 64, 28, 64, 5, 1, 2}, seven = {8, 64, 28, 64, 7, 1, 3};
  static const rig_window eight = {8, 8, 28, 64, 3, 1, 1};
  static const rig_attention heads_of_64 = {2, 4, 128, 64, true};
  switch (number) {
  case 0: pattern_forward(g, type, &same, RIG_MEMORY); return "convolution";
  case 1: pattern_forward_statistics(g, type, &same); return "convolution, statistics";
  case 2: pattern_scaled_forward(g, type, &same, true); return "scale, bias, relu, convolution, statistics";
  case 3:
    pattern_scaled_forward(g, type, &half, true);
    return "scale, bias, relu, convolution of stride 2, statistics";
  case 4: pattern_scaled_forward(g, type, &same, false); return "scale, bias, relu, convolution";
  case 5: pattern_scaled_filter(g, type, &same); return "scale, bias, relu, weight gradient";
  case 6: pattern_data_norm(g, type, &same); return "data gradient, relu, batch norm";
  case 7: pattern_data_norm(g, type, &half); return "data gradient of stride 2, relu, batch norm";
  case 8: pattern_bias_relu(g, type, &same, false); return "convolution, bias, relu";
  case 9: pattern_bias_relu(g, type, &same, true); return "convolution, bias, residual, relu";
  case 10: pattern_attention(g, type, &heads_of_64); return "attention";
  case 11: pattern_attention_grad(g, type, &heads_of_64); return "attention's gradient";
  case 12: pattern_bn_finalize(g, 64); return "statistics finalized";
  case 13: add_gradient(g, FILTER, type, &same); return "weight gradient";
  case 14: add_gradient(g, DATA, type, &same); return "data gradient";
  case 15: add_single(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, type); return "relu";
  case 16: add_single(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, type); return "sum";
  case 17: add_single(g, CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR, type); return "statistics";
  case 18: add_product(g, type, false); return "product";
  case 19: add_product(g, type, true); return "product, bias, relu";
  case 20: add_other_layout(g, type, false); return "convolution of row-major images";
  case 21: add_other_layout(g, type, true); return "convolution with groups of one channel";
  case 22: pattern_forward(g, type, &three, RIG_MEMORY); return "convolution of 3 channels";
  case 23: add_data_relu(g, type, &same); return "data gradient, relu";
  case 24: pattern_forward_statistics(g, type, &stem); return "convolution of 7 x 7, statistics";
  case 25:
    pattern_forward_statistics(g, type, &short_cut);
    return "convolution of 1 x 1 of stride 2, statistics";
  case 26: add_gradient(g, FILTER, type, &three); return "weight gradient of 3 channels";
  case 27: pattern_forward_statistics(g, type, &three); return "convolution of 3 channels, statistics";
  case 28: pattern_bias_relu(g, type, &three, false); return "convolution of 3 channels, bias, relu";
  case 29: pattern_bias_relu(g, type, &three, true); return "convolution of 3 channels, bias, residual, relu";
  case 30: pattern_forward_statistics(g, type, &five); return "convolution of 5 x 5, statistics";
  case 31: pattern_scaled_filter(g, type, &five); return "scale, bias, relu, weight gradient of 5 x 5";
  case 32: pattern_data_norm(g, type, &five); return "data gradient of 5 x 5, relu, batch norm";
  case 33:
    pattern_forward_statistics(g, type, &seven);
    return "convolution of 7 x 7 of 64 channels, statistics";
  case 34: pattern_forward_statistics(g, type, &eight); return "convolution of 8 channels, statistics";
  default: return NULL;
  }
}
