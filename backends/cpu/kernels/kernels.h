/* backends/cpu/kernels/kernels.h: the kernels of the family "cpu", by the file that defines them.
 *
 * A kernel is `const tn_kernel tn_cpu_NAME`. To add one, define it and add NAME to the list of its file.
 * plugin.c makes the plugin's items from the lists. */
#ifndef TN_BACKENDS_CPU_KERNELS_KERNELS_H
#define TN_BACKENDS_CPU_KERNELS_KERNELS_H

#include "tenon/plugin/kernel.h"

/* products: matmul.c, conv2d.c, conv2d_grad_weight.c */
#define TN_CPU_PRODUCT_KERNELS(X) X(matmul) X(conv2d) X(conv2d_grad_input) X(conv2d_grad_weight)
/* pool.c */
#define TN_CPU_POOL_KERNELS(X) X(max_pool2d) X(max_pool2d_grad) X(avg_pool2d) X(avg_pool2d_grad)

#define TN_CPU_POINTWISE_KERNELS(X) X(pointwise) X(random_uniform) X(random_normal)
/* reduce.c, argmax.c, all_finite.c */
#define TN_CPU_REDUCE_KERNELS(X)                                                                             \
  X(reduce_sum) X(reduce_max) X(reduce_min) X(moments) X(norm_grad_sums) X(argmax) X(all_finite)
#define TN_CPU_SOFTMAX_KERNELS(X)   X(softmax) X(log_softmax)
#define TN_CPU_NORM_KERNELS(X)      X(layer_norm)
#define TN_CPU_LOSS_KERNELS(X)      X(cross_entropy)
#define TN_CPU_ATTENTION_KERNELS(X) X(cached_attention)
#define TN_CPU_EMBEDDING_KERNELS(X) X(embedding) X(embedding_grad)
/* epilogue.c */
#define TN_CPU_EPILOGUE_KERNELS(X)                                                                           \
  X(reduce_sum_epilogue)                                                                                     \
  X(moments_epilogue)                                                                                        \
  X(norm_grad_sums_epilogue) X(conv2d_grad_input_epilogue) X(conv2d_grad_weight_epilogue)
/* movement.c, crop.c, reorder.c */
#define TN_CPU_MOVEMENT_KERNELS(X) X(transpose) X(slice) X(crop) X(pad) X(concat) X(pack) X(copy) X(reorder)

#define TN_CPU_KERNELS(X)                                                                                    \
  TN_CPU_PRODUCT_KERNELS(X)                                                                                  \
  TN_CPU_POOL_KERNELS(X)                                                                                     \
  TN_CPU_POINTWISE_KERNELS(X)                                                                                \
  TN_CPU_REDUCE_KERNELS(X)                                                                                   \
  TN_CPU_SOFTMAX_KERNELS(X)                                                                                  \
  TN_CPU_NORM_KERNELS(X)                                                                                     \
  TN_CPU_LOSS_KERNELS(X)                                                                                     \
  TN_CPU_ATTENTION_KERNELS(X)                                                                                \
  TN_CPU_EMBEDDING_KERNELS(X)                                                                                \
  TN_CPU_EPILOGUE_KERNELS(X)                                                                                 \
  TN_CPU_MOVEMENT_KERNELS(X)

#define TN_CPU_DECLARE(name) extern const tn_kernel tn_cpu_##name;
TN_CPU_KERNELS(TN_CPU_DECLARE)
#undef TN_CPU_DECLARE

#endif
