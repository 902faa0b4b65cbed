/* Built for another machine. */
#include "wrong.h"

WRONG_SCHEDULE(late);

WRONG_PLUGIN(machine, (uint32_t)sizeof(tn_plugin), TN_ABI_MAJOR, TN_ABI_MINOR, 0,
             "ptr32 be asan=" TN_BUILD_ASAN, &late.item)
