/* core/graph/build/emit_layer.h: the ops of a layer, whether that is a formula or a function. */
#pragma once

#include "core/graph/graph.h"
#include "tenon/plugin/layer.h"

/* Emits the layer in the top frame, whose values are its inputs, and yields its outputs. TN_EINVAL if inputs
 * of a formula have different shapes, or the formula has a mistake, with the column. */
tn_status tn_layer_emit_ops(tn_build *b, const tn_layer_kind *kind, const void *options);
