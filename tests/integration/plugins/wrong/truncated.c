/* Its descriptor ends before the list of items. */
#include "wrong.h"

WRONG_SCHEDULE(late);

WRONG_PLUGIN(truncated, (uint32_t)offsetof(tn_plugin, items), TN_ABI_MAJOR, TN_ABI_MINOR, 0, TN_BUILD_TEXT,
             &late.item)
