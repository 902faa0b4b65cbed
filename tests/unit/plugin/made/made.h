/* tests/unit/plugin/made/made.h: the smallest items that a registry accepts. */
#pragma once

#include "tenon/plugin/kernel.h"
#include "tenon/plugin/layer.h"
#include "tenon/plugin/schedule.h"

static inline tn_status made_build(tn_build *b, const void *options) {
  (void)options;
  return tn_fail(b, TN_EUNSUPPORTED, NULL, "made for tests");
}
static inline double made_factor(const void *options, const tn_schedule_at *at) {
  (void)options;
  (void)at;
  return 1;
}
static inline tn_status made_query(tn_query *q) {
  return tn_fail(q, TN_EUNSUPPORTED, NULL, "made for tests");
}
static inline tn_status made_launch(tn_launch *l) {
  (void)l;
  return TN_OK;
}

#define MADE_LAYER(id)                                                                                       \
  static const tn_layer_kind id = {                                                                          \
      .item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, #id, "a layer"), .max_in = 1, .build = made_build}
#define MADE_SCHEDULE(id)                                                                                    \
  static const tn_schedule id = {.item = TN_ITEM_PLAIN(tn_schedule, TN_SCHEDULE, #id, "a schedule"),         \
                                 .factor = made_factor}
#define MADE_KERNEL(id, name, of)                                                                            \
  static const tn_kernel id = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, name, "a kernel"),                \
                               .family = of,                                                                 \
                               .pattern = "y = relu(x)",                                                     \
                               .query = made_query,                                                          \
                               .launch = made_launch}
