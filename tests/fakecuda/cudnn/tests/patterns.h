/* tests/fakecuda/cudnn/tests/patterns.h: the graphs of performance work: convolutions with the operations
 * that are fused to them, attention. Each function adds tensors and operations to a graph and does not close
 * it. */
#pragma once

#include "tests/fakecuda/cudnn/tests/rig.h"

/* A convolution's shape; the images are square. */
typedef struct rig_window {
  int64_t n, c, size, k, filter, stride, padding;
} rig_window;
int64_t rig_window_out(const rig_window *window);

/* Returns the image that the convolution writes. */
int pattern_forward(rig_graph *g, int type, const rig_window *window, int kind_of_result);
void pattern_forward_statistics(rig_graph *g, int type, const rig_window *window);
/* relu(scale x + bias) before the convolution, statistics behind it or not. */
void pattern_scaled_forward(rig_graph *g, int type, const rig_window *window, bool statistics);
void pattern_scaled_filter(rig_graph *g, int type, const rig_window *window);
/* Data gradient, gradient of relu(scale x + bias), gradients of the batch norm's weights. */
void pattern_data_norm(rig_graph *g, int type, const rig_window *window);
void pattern_bias_relu(rig_graph *g, int type, const rig_window *window, bool residual);
void pattern_bn_finalize(rig_graph *g, int64_t channels);

/* (batch, heads, rows, width); rows of queries and keys are equal. Tensors 0 to 2 are Q, K^T, V; returns O;
 * the log-sum-exp is the tensor before it. */
typedef struct rig_attention {
  int64_t b, h, s, d;
  bool causal;
} rig_attention;
int pattern_attention(rig_graph *g, int type, const rig_attention *shape);
/* Tensors 0 to 5 are Q, K, V^T, dO, O, log-sum-exp; returns dQ; dK, dV are the two tensors behind it. */
int pattern_attention_grad(rig_graph *g, int type, const rig_attention *shape);

/* All of them by number, with a name; NULL: no more. */
const char *pattern_add(rig_graph *g, int number, int type);
