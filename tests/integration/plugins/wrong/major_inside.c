/* Says that it has another major version behind the entry of this one. */
#include "wrong.h"

WRONG_SCHEDULE(late);

WRONG_PLUGIN(major_inside, (uint32_t)sizeof(tn_plugin), 7, 0, 0, TN_BUILD_TEXT, &late.item)
