/* A name that cannot stand in an INI file. */
#include "wrong.h"

static const tn_schedule late = {.item = TN_ITEM_PLAIN(tn_schedule, TN_SCHEDULE, "too late", "a schedule"),
                                 .factor = wrong_factor};

TN_PLUGIN(name, "1.0", "MIT", &late.item)
