/* plugins/precision: fp32, everything as the graph has it. */
#include "tenon/plugin/precision.h"

static int32_t decide(const void *options, const tn_precision_site *site) {
  (void)options;
  return site->dtype;
}
static const tn_precision fp32 = {
    .item = TN_ITEM_PLAIN(tn_precision, TN_PRECISION, "fp32", "single precision throughout"),
    .decide = decide};

TN_PLUGIN(precision, "0.1.0", "MIT", &fp32.item)
