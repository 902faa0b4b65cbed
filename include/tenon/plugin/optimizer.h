/* tenon/plugin/optimizer.h: how a parameter moves. An optimizer emits graph like a layer does;
 * unscaling, clipping and the skipping of non-finite steps are the host's.
 *
 * In update: tn_build_in(b, 0) is the parameter, tn_build_in(b, 1) its gradient, both f32; tn_build_state
 * makes slots (momentum) of the parameter's shape; tn_option_value gives scheduled options (lr,
 * weight_decay); tn_build_counter(b, TN_UPDATES) the number of this update. It commits its slots and yields
 * the new parameter as 0. Every commit is predicated by the host.
 *
 * Life cycle: update is a pure function, called on the compiling thread. */
#ifndef TENON_PLUGIN_OPTIMIZER_H
#define TENON_PLUGIN_OPTIMIZER_H

#include "tenon/ops.h"
#include "tenon/plugin/plugin.h"

TN_BEGIN_C

enum {
  /* Each element by itself: called once for all parameters, on flat regions of rank 1. In which order the
   * elements of a parameter lie there is the host's to choose. */
  TN_UPDATE_ELEMENTWISE = 0,
  /* Called for every parameter, with its shape. */
  TN_UPDATE_PER_PARAMETER = 1
};

typedef struct tn_optimizer {
  tn_item item;
  uint32_t granularity;
  tn_status (*update)(tn_build *b, const void *options);
} tn_optimizer;

TN_END_C
#endif
