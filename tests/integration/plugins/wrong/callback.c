/* A schedule that forgot its callback. */
#include "wrong.h"

static const tn_schedule late = {.item = TN_ITEM_PLAIN(tn_schedule, TN_SCHEDULE, "late", "a schedule")};

TN_PLUGIN(callback, "1.0", "MIT", &late.item)
