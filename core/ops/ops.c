/* core/ops/ops.c: the plugin descriptor of the core ops. */
#include "core/ops/ops.h"

const tn_plugin *tn_core_ops(void) {
#define CORE_OP_ITEM(name) &tn_op_##name.item,
  static const tn_item *const items[] = {TN_CORE_OPS(CORE_OP_ITEM) NULL};
#undef CORE_OP_ITEM
  static const tn_plugin plugin = {
      (uint32_t)sizeof(tn_plugin), TN_ABI_MAJOR, TN_ABI_MINOR, 0, "core", "0.1", "MIT", TN_BUILD_TEXT, items};
  return &plugin;
}
