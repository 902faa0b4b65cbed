/* backends/onednn/kernels/kernels.h: every kernel of the family "onednn", by the file that defines it.
 *
 * A kernel is `const tn_kernel tn_onednn_NAME`, which its file defines and a list here names; plugin.c turns
 * the lists into the items of the plugin. The kernels of library/ need oneDNN, the others do not. */
#ifndef TN_BACKENDS_ONEDNN_KERNELS_KERNELS_H
#define TN_BACKENDS_ONEDNN_KERNELS_KERNELS_H

#include "tenon/plugin/kernel.h"

/* library/conv_training.c, library/conv_inference.c */
#define TN_ONEDNN_CONV_KERNELS(X)                                                                            \
  X(conv2d)                                                                                                  \
  X(conv2d_grad_input)                                                                                       \
  X(conv2d_grad_weight)                                                                                      \
  X(conv2d_folded)                                                                                           \
  X(conv2d_relu_folded)                                                                                      \
  X(conv2d_norm_folded)                                                                                      \
  X(conv2d_norm_relu_folded) X(conv2d_norm_add_folded) X(conv2d_norm_add_relu_folded)

#ifdef TN_HAVE_DNNL
#define TN_ONEDNN_LIBRARY_KERNELS(X) TN_ONEDNN_CONV_KERNELS(X)
#else
#define TN_ONEDNN_LIBRARY_KERNELS(X)
#endif

/* pool.c, reorder.c */
#define TN_ONEDNN_IMAGE_KERNELS(X)                                                                           \
  X(max_pool2d) X(max_pool2d_grad) X(avg_pool2d) X(avg_pool2d_grad) X(reorder)

/* norm.c, relu_grad.c */
#define TN_ONEDNN_NORM_KERNELS(X)                                                                            \
  X(layer_norm)                                                                                              \
  X(layer_norm_grad)                                                                                         \
  X(layer_norm_grad_add)                                                                                     \
  X(relu_norm_grad_sums)                                                                                     \
  X(add_relu_norm_grad_sums) X(norm_relu_grad_sums) X(cast_norm_relu_grad_sums)

/* movement.c */
#define TN_ONEDNN_MOVEMENT_KERNELS(X) X(transpose) X(slice) X(concat) X(beside_2) X(beside_3)

/* softmax.c */
#define TN_ONEDNN_SOFTMAX_KERNELS(X) X(softmax) X(log_softmax) X(cross_entropy)

/* reduce.c */
#define TN_ONEDNN_REDUCE_KERNELS(X) X(reduce_sum) X(reduce_max) X(reduce_min) X(moments) X(norm_grad_sums)

/* conv_small/conv_small.c */
#define TN_ONEDNN_CONV_SMALL_KERNELS(X)                                                                      \
  X(conv2d_small)                                                                                            \
  X(conv2d_small_relu) X(conv2d_small_grad_input) X(conv2d_small_grad_weight) X(conv2d_small_grad_bias)

/* matmul.c */
#define TN_ONEDNN_MATMUL_KERNELS(X)                                                                          \
  X(matmul)                                                                                                  \
  X(matmul_relu)                                                                                             \
  X(matmul_relu_grad)                                                                                        \
  X(matmul_add)                                                                                              \
  X(matmul_gelu)                                                                                             \
  X(matmul_kept_gelu) X(matmul_gelu_grad) X(matmul_bias_grad) X(matmul_split_2) X(matmul_split_3)

/* pointwise/kernel.c */
#define TN_ONEDNN_POINTWISE_KERNELS(X) X(pointwise)

/* attention.c */
#define TN_ONEDNN_ATTENTION_KERNELS(X) X(attention) X(attention_grad) X(attention_grad_joined)

#define TN_ONEDNN_TENON_KERNELS(X)                                                                           \
  TN_ONEDNN_ATTENTION_KERNELS(X)                                                                             \
  TN_ONEDNN_POINTWISE_KERNELS(X)                                                                             \
  TN_ONEDNN_CONV_SMALL_KERNELS(X)                                                                            \
  TN_ONEDNN_MATMUL_KERNELS(X)                                                                                \
  TN_ONEDNN_REDUCE_KERNELS(X)                                                                                \
  TN_ONEDNN_IMAGE_KERNELS(X)                                                                                 \
  TN_ONEDNN_NORM_KERNELS(X)                                                                                  \
  TN_ONEDNN_MOVEMENT_KERNELS(X)                                                                              \
  TN_ONEDNN_SOFTMAX_KERNELS(X)

#define TN_ONEDNN_KERNELS(X) TN_ONEDNN_LIBRARY_KERNELS(X) TN_ONEDNN_TENON_KERNELS(X)

#define TN_ONEDNN_DECLARE(name) extern const tn_kernel tn_onednn_##name;
TN_ONEDNN_KERNELS(TN_ONEDNN_DECLARE)
#undef TN_ONEDNN_DECLARE

#endif
