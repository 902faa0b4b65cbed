/* tenon/plugin/optimizer.h: an optimizer: the update of a parameter. It emits ops as a layer does; the host
 * unscales and clips gradients and skips updates that are not finite.
 *
 * In update: tn_build_in(b, 0) is the parameter, tn_build_in(b, 1) its gradient, both f32; tn_build_state
 * makes optimizer state (momentum) of the parameter's shape; tn_build_option_value reads scheduled options
 * (lr, weight_decay); tn_build_counter(b, TN_UPDATES) is the number of this update. It commits its state and
 * yields the new parameter as output 0. The host applies commits only where the update is not skipped.
 *
 * Life cycle: update is a pure function, called on the compiling thread. */
#ifndef TENON_PLUGIN_OPTIMIZER_H
#define TENON_PLUGIN_OPTIMIZER_H

#include "tenon/ops.h"
#include "tenon/plugin/plugin.h"

TN_BEGIN_C

enum {
  /* Elements are independent: called once for all parameters, on flat regions of rank 1. The host chooses the
   * order of elements within a region. */
  TN_UPDATE_ELEMENTWISE = 0,
  /* Called once for each parameter, with its shape. */
  TN_UPDATE_PER_PARAMETER = 1
};

typedef struct tn_optimizer {
  tn_item item;
  uint32_t granularity;
  tn_status (*update)(tn_build *b, const void *options);
} tn_optimizer;

TN_END_C
#endif
