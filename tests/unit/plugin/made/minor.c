/* Built against headers of the next minor version. */
#include "made.h"

MADE_LAYER(epsilon);

TN_PLUGIN_ENTRY(minor);
TN_PLUGIN_ENTRY(minor) {
  static const tn_item *const items[] = {&epsilon.item, NULL};
  static const tn_plugin plugin = {(uint32_t)sizeof(tn_plugin),
                                   TN_ABI_MAJOR,
                                   TN_ABI_MINOR + 1,
                                   0,
                                   "minor",
                                   "1.0",
                                   "MIT",
                                   TN_BUILD_TEXT,
                                   items};
  return &plugin;
}
