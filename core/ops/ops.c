#include "core/ops/ops.h"

const tn_plugin *tn_core_ops(void) {
#define ITEM(name) &tn_op_##name.item,
  static const tn_item *const items[] = {TN_CORE_OPS(ITEM) NULL};
#undef ITEM
  static const tn_plugin plugin = {
      (uint32_t)sizeof(tn_plugin), TN_ABI_MAJOR, TN_ABI_MINOR, 0, "core", "0.1", "MIT", TN_BUILD_TEXT, items};
  return &plugin;
}
