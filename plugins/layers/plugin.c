/* plugins/layers/plugin.c: the built-in layers. */
#include "tenon/plugin/layer.h"

extern const tn_layer_kind layer_linear, layer_conv2d, layer_batch_norm, layer_layer_norm, layer_relu,
    layer_sigmoid, layer_tanh, layer_silu, layer_gelu, layer_leaky_relu, layer_softmax, layer_log_softmax,
    layer_max_pool, layer_avg_pool, layer_global_avg_pool, layer_identity, layer_flatten, layer_reshape,
    layer_add, layer_mul, layer_concat, layer_split, layer_embedding, layer_positions, layer_attention,
    layer_dropout;

TN_PLUGIN(layers, "0.1.0", "MIT", &layer_linear.item, &layer_conv2d.item, &layer_batch_norm.item,
          &layer_layer_norm.item, &layer_relu.item, &layer_sigmoid.item, &layer_tanh.item, &layer_silu.item,
          &layer_gelu.item, &layer_leaky_relu.item, &layer_softmax.item, &layer_log_softmax.item,
          &layer_max_pool.item, &layer_avg_pool.item, &layer_global_avg_pool.item, &layer_identity.item,
          &layer_flatten.item, &layer_reshape.item, &layer_add.item, &layer_mul.item, &layer_concat.item,
          &layer_split.item, &layer_embedding.item, &layer_positions.item, &layer_attention.item,
          &layer_dropout.item)
