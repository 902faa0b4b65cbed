/* Cannot do without a feature that no host has yet. */
#include "wrong.h"

WRONG_SCHEDULE(late);

WRONG_PLUGIN(feature, (uint32_t)sizeof(tn_plugin), TN_ABI_MAJOR, TN_ABI_MINOR, 0x10, TN_BUILD_TEXT,
             &late.item)
