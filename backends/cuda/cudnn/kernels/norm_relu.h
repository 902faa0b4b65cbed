/* backends/cuda/cudnn/kernels/norm_relu.h: the batch norm and ReLU before a convolution, in mixed precision,
 * as the patterns of this folder name them: operands rstd, gamma, mean, beta, x and the ReLU's zero. */
#pragma once

#include "backends/cuda/cudnn/kernels/convolution.h"

/* Statements of a pattern; r is the ReLU's result. */
#define TN_CUDNN_NORM_RELU                                                                                   \
  "&u = mul(rstd, gamma); &m = reshape(mean); &w = reshape(u); &b = reshape(beta); &f = cast(x); "           \
  "&c = sub(f, m); &p = mul(c, w); &a = add(p, b); &n = cast(a); &r = maximum(n, z); "

/* The operands come first in the match; the convolution is the node behind those of the statements. */
enum {
  TN_CUDNN_NORM_RSTD = 0,
  TN_CUDNN_NORM_GAMMA,
  TN_CUDNN_NORM_MEAN,
  TN_CUDNN_NORM_BETA,
  TN_CUDNN_NORM_X,
  TN_CUDNN_NORM_ZERO,
  TN_CUDNN_NORM_OPERANDS,
  TN_CUDNN_NORM_NODES = 10
};

/* Whether statistics, gamma and beta are rows of f32, x has the type of the convolution's x, and the
 * activation is a ReLU. TN_EUNSUPPORTED with the reason. */
tn_status tn_cudnn_norm_relu_check(tn_query *q, const tn_cudnn_conv *c);
