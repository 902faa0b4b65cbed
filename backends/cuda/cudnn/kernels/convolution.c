/* backends/cuda/cudnn/kernels/convolution.c: see convolution.h. */
#include "backends/cuda/cudnn/kernels/convolution.h"

#include <string.h>

#include "backends/cuda/kernels/image_layouts.h"

tn_cudnn_conv tn_cudnn_conv_of(const tn_node *node) {
  const tn_type *y = &node->out[0];
  tn_cudnn_conv c = {TN_CUDNN_CONV_FORWARD, node->attributes, node->in[0], node->in[1], y};
  if (strcmp(node->op, "conv2d_grad_input") == 0)
    c = (tn_cudnn_conv){TN_CUDNN_CONV_GRAD_INPUT, node->attributes, y, node->in[1], node->in[0]};
  if (strcmp(node->op, "conv2d_grad_weight") == 0)
    c = (tn_cudnn_conv){TN_CUDNN_CONV_GRAD_WEIGHT, node->attributes, node->in[0], y, node->in[1]};
  return c;
}

tn_cudnn_window tn_cudnn_window_of(const tn_conv2d_attributes *attributes) {
  tn_cudnn_window w;
  for (int32_t i = 0; i < 2; i++) {
    w.stride[i] = attributes->stride.v[i];
    w.dilation[i] = attributes->dilation.v[i];
    w.before[i] = attributes->padding.v[i];
    w.after[i] = attributes->padding.v[attributes->padding.n > 2 ? 2 + i : i];
  }
  return w;
}

tn_status tn_cudnn_conv_check(tn_query *q, const tn_cudnn_conv *c) {
  int32_t dtype = c->x->dtype;
  if (dtype != TN_F16 && dtype != TN_BF16 && dtype != TN_F32)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "elements are %s, expected f16, bf16 or f32",
                   tn_dtype_name(dtype));
  if (tn_type_count(c->x) == 0 || tn_type_count(c->w) == 0 || tn_type_count(c->y) == 0)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "an operand or the result is empty");
  return TN_OK;
}

bool tn_cudnn_conv_is_exact(const tn_cudnn_conv *c) {
  return c->x->dtype == TN_F32 && c->attributes->math != TN_MATH_TF32;
}

double tn_cudnn_conv_flops(const tn_cudnn_conv *c) {
  return 2.0 * (double)tn_type_count(c->y) * (double)c->w->dims[1] * (double)c->w->dims[2] *
         (double)c->w->dims[3];
}

bool tn_cudnn_reduces_to_channels(const tn_reduce_attributes *attributes, int32_t rank) {
  for (int64_t i = 0; i < attributes->axes.n; i++)
    if (attributes->axes.v[i] == 1 || attributes->axes.v[i] + rank == 1) return false;
  return attributes->axes.n == rank - 1;
}

int64_t tn_cudnn_row_bytes(int32_t dtype, int64_t channels) {
  return ((int64_t)tn_dtype_size(dtype) * channels + 15) / 16 * 16;
}

tn_operand_layout tn_cudnn_channels_last(void) { return tn_cuda_image_layout(TN_CUDA_CHANNELS_LAST); }
