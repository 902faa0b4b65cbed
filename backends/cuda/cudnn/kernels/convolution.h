/* backends/cuda/cudnn/kernels/convolution.h: what the kernels of convolutions share. */
#pragma once

#include "backends/cuda/cudnn/engines.h"
#include "tenon/attributes.h"

/* A conv2d, or one of its gradients. */
typedef struct tn_cudnn_conv {
  int32_t kind; /* TN_CUDNN_CONV_... */
  const tn_conv2d_attributes *attributes;
  const tn_type *x, *w, *y;
} tn_cudnn_conv;

/* The convolution of a node, by its op. */
tn_cudnn_conv tn_cudnn_conv_of(const tn_node *node);
tn_cudnn_window tn_cudnn_window_of(const tn_conv2d_attributes *attributes);
/* TN_EUNSUPPORTED: f64, or nothing to compute. */
tn_status tn_cudnn_conv_check(tn_query *q, const tn_cudnn_conv *c);
/* Whether products of f32 need full precision. */
bool tn_cudnn_conv_is_exact(const tn_cudnn_conv *c);
/* Multiplications and additions. */
double tn_cudnn_conv_flops(const tn_cudnn_conv *c);
/* Whether a reduction over an image leaves its channels. */
bool tn_cudnn_reduces_to_channels(const tn_reduce_attributes *attributes, int32_t rank);
/* Bytes of a row of numbers for each channel, so that the next begins at 16 bytes. */
int64_t tn_cudnn_row_bytes(int32_t dtype, int64_t channels);
/* Channels innermost. */
tn_operand_layout tn_cudnn_channels_last(void);
