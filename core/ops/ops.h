/* core/ops/ops.h: the descriptors of Tenon's own ops: schemas, shapes, gradients, decompositions, costs.
 * There are no kernels here. Like the op of a plugin, they include only the tenon/ headers. */
#ifndef TN_CORE_OPS_OPS_H
#define TN_CORE_OPS_OPS_H

#include "tenon/plugin/op.h"

/* All ops, in the order of tenon/ops.h. */
/* clang-format off */
#define TN_CORE_OPS(X) \
  X(neg) X(abs) X(sign) X(exp) X(log) X(sqrt) X(rsqrt) X(reciprocal) X(tanh) X(sigmoid) X(erf) \
  X(sin) X(cos) X(floor) X(add) X(sub) X(mul) X(div) X(maximum) X(minimum) X(pow) X(eq) X(ne) \
  X(lt) X(le) X(gt) X(ge) X(and) X(or) X(not) X(is_finite) X(where) X(cast) X(affine) X(full) \
  X(iota) X(broadcast) X(spread) X(triangular_mask) X(random_uniform) X(random_normal) \
  X(dropout) X(relu) X(leaky_relu) X(silu) X(gelu) X(gelu_grad) X(reduce_sum) X(reduce_mean) X(reduce_max) \
  X(reduce_min) X(argmax) X(moments) X(norm_grad_sums) X(all_finite) X(matmul) X(conv2d) \
  X(conv2d_grad_input) X(conv2d_grad_weight) X(max_pool2d) X(max_pool2d_grad) X(avg_pool2d) \
  X(avg_pool2d_grad) X(global_avg_pool) X(batch_norm) X(batch_norm_apply) X(layer_norm) X(layer_norm_grad) \
  X(softmax) X(log_softmax) X(cross_entropy) X(attention) X(attention_grad) X(cached_attention) X(embedding) X(embedding_grad) \
  X(reshape) X(transpose) X(slice) X(crop) X(pad) X(concat) X(copy) X(reorder) X(pack) X(all_reduce) \
  X(reduce_scatter) X(all_gather) X(sgd_update) X(adamw_update)
/* clang-format on */

#define TN_CORE_OP_DECLARE(name) extern const tn_op tn_op_##name;
TN_CORE_OPS(TN_CORE_OP_DECLARE)
#undef TN_CORE_OP_DECLARE

/* The plugin that lists all ops, for the registry of every context. */
const tn_plugin *tn_core_ops(void);

#endif
