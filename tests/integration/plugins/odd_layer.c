/* Layers that use the op of odd_op.c by its function: with every option given, and with the defaults of those
 * that may be left out. */
#include <tenon/plugin/layer.h>

#include "odd_ops.h"

static tn_status given(tn_build *b, const void *options) {
  static const int64_t axes[] = {1, 0};
  static const double weights[] = {0.25, 0.5};
  tn_val x = tn_build_in(b, 0), xs[] = {x, x};
  (void)options;
  tn_build_yield(b, 0,
                 tn_odd(b, x, x, 2, xs, tn_val_type(b, x), 1, 7, 0.5, "other", "/tmp", 2, 2, axes, 2, weights,
                        512, 2, "ones", "/usr"));
  return TN_OK;
}

static tn_status left_out(tn_build *b, const void *options) {
  tn_val x = tn_build_in(b, 0);
  (void)options;
  tn_build_yield(b, 0,
                 tn_odd(b, x, 0, 0, NULL, tn_val_type(b, x), 0, 3, 1, NULL, NULL, 0, 0, NULL, 0, NULL,
                        1 << 20, 1, NULL, NULL));
  return TN_OK;
}

static const tn_layer_kind odd_given = {.item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "odd_given", "all"),
                                        .min_in = 1,
                                        .max_in = 1,
                                        .build = given};
static const tn_layer_kind odd_left_out = {
    .item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "odd_left_out", "as little as may be"),
    .min_in = 1,
    .max_in = 1,
    .build = left_out};

TN_PLUGIN(odd_layers, "1.0", "MIT", &odd_given.item, &odd_left_out.item)
