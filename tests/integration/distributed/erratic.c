/* A layer that emits a different op each time, so that no two ranks have the same plan. */
#include <stdatomic.h>
#include <tenon/ops.h>
#include <tenon/plugin/layer.h>

static atomic_int uses;

static tn_status build(tn_build *b, const void *options) {
  (void)options;
  tn_build_yield(b, 0, tn_affine(b, tn_build_in(b, 0), 1.0, 1e-6 * atomic_fetch_add(&uses, 1)));
  return TN_OK;
}

static const tn_layer_kind erratic = {
    .item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "erratic", "adds what it has never added before"),
    .min_in = 1,
    .max_in = 1,
    .build = build};

TN_PLUGIN(erratic, "1.0", "MIT", &erratic.item)
