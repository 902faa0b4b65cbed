/* plugins/observers/plugin.c: the built-in observers. */
#include "plugins/observers/observers.h"

#include "plugins/observers/items.h"

TN_PLUGIN(observers, "0.1.0", "MIT", ITEMS)
