/* tenon/plugin/layer.h: a layer: parameters, state and ops emitted from one line of a model.
 * Losses and metrics are layers that yield two outputs, value and weight, per element and never
 * reduced; the host forms sum(value * weight) / sum(weight) over elements, micro-batches and ranks.
 * Their weight may depend on targets only.
 *
 * Life cycle: build is a pure function, called on the compiling thread once per program (training,
 * evaluation, prediction) and use. tn_build_training(b) tells which. */
#ifndef TENON_PLUGIN_LAYER_H
#define TENON_PLUGIN_LAYER_H

#include "tenon/ops.h"
#include "tenon/plugin/plugin.h"

TN_BEGIN_C

enum { TN_LAYER_PLAIN = 0, TN_LAYER_LOSS = 1, TN_LAYER_METRIC = 2 };

typedef struct tn_layer_kind {
  tn_item item;
  uint32_t role;
  int32_t min_in, max_in; /* inputs; max_in -1: any number. Losses: values, then targets */
  /* Emits the layer: tn_build_in, tn_build_param, tn_build_state, ops, tn_build_yield. Errors that stuck in
   * the builder are reported by the host with the layer's line; return tn_fail(...) for those of its own. */
  tn_status (*build)(tn_build *b, const void *options);
} tn_layer_kind;

TN_END_C
#endif
