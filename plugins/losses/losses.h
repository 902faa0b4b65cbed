/* plugins/losses/losses.h: the metrics, for the descriptor. */
#ifndef TN_PLUGINS_LOSSES_H
#define TN_PLUGINS_LOSSES_H

#include "tenon/attributes.h"
#include "tenon/plugin/layer.h"

extern const tn_layer_kind metric_accuracy, metric_top_k; /* metrics.c */

#endif
