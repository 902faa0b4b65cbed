/* backends/cuda/cudnn/kernels/attention_graph.h: attention and its gradient as graphs of cuDNN's operations.
 *
 * cuDNN 9.19 has no single operation of attention with a causal mask, nor one of its gradient on every
 * device, so the graphs consist of products, pointwise operations and reductions; cuDNN compiles one launch
 * from those of attention, and a few from those of the gradient. Scores and probabilities are virtual. */
#pragma once

#include "backends/cuda/cudnn/graph.h"
#include "backends/cuda/kernels/attention_operands.h"

/* The numbers of the tensors in memory. Attention has those up to LSE, the gradient all; ACCUMULATED only
 * where it is not in order. */
enum {
  TN_CUDNN_ATTENTION_Q = 0,
  TN_CUDNN_ATTENTION_K,
  TN_CUDNN_ATTENTION_V,
  TN_CUDNN_ATTENTION_Y,
  TN_CUDNN_ATTENTION_LSE,
  TN_CUDNN_ATTENTION_DY,
  TN_CUDNN_ATTENTION_DQ,
  TN_CUDNN_ATTENTION_DK,
  TN_CUDNN_ATTENTION_DV,
  TN_CUDNN_ATTENTION_SUMS,        /* of dy y along each row: f32 (batch, heads, queries) */
  TN_CUDNN_ATTENTION_ACCUMULATED, /* dq: f32 (batch, heads, queries, width); contents undefined before */
  TN_CUDNN_ATTENTION_TENSORS
};

/* y, lse = attention(q, k, v). */
void tn_cudnn_attention_graph(const tn_cuda_attention_use *a, tn_cudnn_graph *g);

/* dq, dk, dv = attention_grad(q, k, v, y, lse, dy). `ordered`: cuDNN keeps the gradients of the scores in its
 * workspace and sums dq in a fixed order; otherwise blocks add to ACCUMULATED in any order, so that the last
 * bits differ from run to run. */
void tn_cudnn_attention_grad_graph(const tn_cuda_attention_use *a, bool ordered, tn_cudnn_graph *g);
