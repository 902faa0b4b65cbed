/* backends/cuda/kernels/kernels.h: the kernels of the family "cuda", by the file that defines them.
 *
 * A kernel is `const tn_kernel tn_cuda_NAME`. To add one, define it and add NAME to the list of its file; its
 * device code is a file of device/, named in ../meson.build. */
#ifndef TN_BACKENDS_CUDA_KERNELS_KERNELS_H
#define TN_BACKENDS_CUDA_KERNELS_KERNELS_H

#include "tenon/plugin/kernel.h"

/* reorder.c */
#define TN_CUDA_REORDER_KERNELS(X) X(copy) X(reorder)
/* matmul.c */
#define TN_CUDA_PRODUCT_KERNELS(X)                                                                           \
  X(matmul)                                                                                                  \
  X(matmul_relu)                                                                                             \
  X(matmul_gelu)                                                                                             \
  X(matmul_kept_gelu)                                                                                        \
  X(matmul_add)                                                                                              \
  X(matmul_gelu_grad)                                                                                        \
  X(matmul_bias_grad) X(matmul_cast) X(matmul_cast_add) X(matmul_cast_add_add) X(matmul_cast_bias_grad)
/* pointwise.c */
#define TN_CUDA_POINTWISE_KERNELS(X) X(pointwise) X(random_uniform) X(random_normal)
/* reduce.c, reduce_joined.c, all_finite.c */
#define TN_CUDA_REDUCE_KERNELS(X)                                                                            \
  X(reduce_sum)                                                                                              \
  X(reduce_max)                                                                                              \
  X(reduce_min)                                                                                              \
  X(argmax)                                                                                                  \
  X(moments)                                                                                                 \
  X(norm_grad_sums)                                                                                          \
  X(reduce_sum_epilogue)                                                                                     \
  X(reduce_sum_prologue)                                                                                     \
  X(reduce_sum_prologue_epilogue)                                                                            \
  X(moments_epilogue)                                                                                        \
  X(moments_prologue)                                                                                        \
  X(moments_prologue_epilogue)                                                                               \
  X(norm_grad_sums_epilogue) X(norm_grad_sums_prologue) X(norm_grad_sums_prologue_epilogue) X(all_finite)
/* softmax.c, layer_norm.c, cross_entropy.c, embedding.c */
#define TN_CUDA_ROW_KERNELS(X)                                                                               \
  X(softmax)                                                                                                 \
  X(log_softmax)                                                                                             \
  X(cross_entropy)                                                                                           \
  X(layer_norm)                                                                                              \
  X(layer_norm_grad)                                                                                         \
  X(layer_norm_grad_add)                                                                                     \
  X(layer_norm_cast)                                                                                         \
  X(layer_norm_grad_of_cast)                                                                                 \
  X(layer_norm_grad_add_of_cast)                                                                             \
  X(layer_norm_grad_cast)                                                                                    \
  X(layer_norm_grad_add_cast)                                                                                \
  X(layer_norm_grad_cast_sum) X(layer_norm_grad_add_cast_sum) X(embedding) X(embedding_grad)
/* attention.c, cached_attention.c */
#define TN_CUDA_ATTENTION_KERNELS(X)                                                                         \
  X(attention)                                                                                               \
  X(attention_split)                                                                                         \
  X(attention_grad)                                                                                          \
  X(attention_grad_joined) X(attention_grad_split) X(cached_attention) X(cached_attention_split)
/* conv2d.c, pool.c, pool_prologue.c */
#define TN_CUDA_WINDOW_KERNELS(X)                                                                            \
  X(conv2d)                                                                                                  \
  X(conv2d_grad_input)                                                                                       \
  X(conv2d_grad_weight)                                                                                      \
  X(max_pool2d)                                                                                              \
  X(max_pool2d_grad) X(avg_pool2d) X(avg_pool2d_grad) X(max_pool2d_prologue) X(max_pool2d_grad_prologue)
/* movement.c, crop.c */
#define TN_CUDA_MOVEMENT_KERNELS(X) X(transpose) X(slice) X(pad) X(concat) X(pack) X(crop)

#ifdef TN_CUDA_CUDNN
/* ../cudnn/attention.c */
#define TN_CUDNN_ATTENTION_KERNELS(X)                                                                        \
  X(cudnn_attention)                                                                                         \
  X(cudnn_attention_split)                                                                                   \
  X(cudnn_attention_grad) X(cudnn_attention_grad_joined) X(cudnn_attention_grad_split)
/* ../cudnn: conv2d.c, conv2d_moments.c, conv2d_norm_grad.c, conv2d_prologue.c,
 * conv2d_inference.c */
#define TN_CUDNN_KERNELS(X)                                                                                  \
  X(cudnn_conv2d)                                                                                            \
  X(cudnn_conv2d_grad_input)                                                                                 \
  X(cudnn_conv2d_grad_weight)                                                                                \
  X(cudnn_conv2d_moments)                                                                                    \
  X(cudnn_conv2d_moments_epilogue)                                                                           \
  X(cudnn_conv2d_norm_grad)                                                                                  \
  X(cudnn_conv2d_norm_grad_epilogue) X(cudnn_norm_relu_conv2d) X(cudnn_norm_relu_conv2d_epilogue)            \
      X(cudnn_norm_relu_grad_weight) X(cudnn_conv2d_relu) X(cudnn_conv2d_norm) X(cudnn_conv2d_norm_relu)     \
          X(cudnn_conv2d_norm_add_relu)
#else
#define TN_CUDNN_ATTENTION_KERNELS(X)
#define TN_CUDNN_KERNELS(X)
#endif

#define TN_CUDA_KERNELS(X)                                                                                   \
  TN_CUDA_REORDER_KERNELS(X)                                                                                 \
  TN_CUDA_PRODUCT_KERNELS(X)                                                                                 \
  TN_CUDA_POINTWISE_KERNELS(X)                                                                               \
  TN_CUDA_REDUCE_KERNELS(X)                                                                                  \
  TN_CUDA_ROW_KERNELS(X)                                                                                     \
  TN_CUDA_ATTENTION_KERNELS(X)                                                                               \
  TN_CUDA_WINDOW_KERNELS(X)                                                                                  \
  TN_CUDA_MOVEMENT_KERNELS(X)                                                                                \
  TN_CUDNN_ATTENTION_KERNELS(X)                                                                              \
  TN_CUDNN_KERNELS(X)

#define TN_CUDA_DECLARE(name) extern const tn_kernel tn_cuda_##name;
TN_CUDA_KERNELS(TN_CUDA_DECLARE)
#undef TN_CUDA_DECLARE

#endif
