/* core/ops/ops.c: the plugin descriptor of the core ops. */
#include "core/ops/ops.h"

#include "core/ops/items.h"

const tn_plugin *tn_core_ops(void) {
  static const tn_item *const items[] = {ITEMS, NULL};
  static const tn_plugin plugin = {
      (uint32_t)sizeof(tn_plugin), TN_ABI_MAJOR, TN_ABI_MINOR, 0, "core", "0.1", "MIT", TN_BUILD_TEXT, items};
  return &plugin;
}
