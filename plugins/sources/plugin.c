/* plugins/sources/plugin.c: the descriptor. */
#include "plugins/sources/sources.h"

#include "plugins/sources/items.h"

TN_PLUGIN(sources, "0.1.0", "MIT", ITEMS)
