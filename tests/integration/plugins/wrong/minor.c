/* Built against the headers of a newer minor version. */
#include "wrong.h"

WRONG_SCHEDULE(late);

WRONG_PLUGIN(minor, (uint32_t)sizeof(tn_plugin), TN_ABI_MAJOR, TN_ABI_MINOR + 1, 0, TN_BUILD_TEXT, &late.item)
