/* plugins/schedules/plugin.c: the descriptor. */
#include "plugins/schedules/schedules.h"

#include "plugins/schedules/items.h"

TN_PLUGIN(schedules, "0.1.0", "MIT", ITEMS)
