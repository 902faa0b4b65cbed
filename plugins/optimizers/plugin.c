/* plugins/optimizers/plugin.c: the descriptor. */
#include "plugins/optimizers/optimizers.h"

#include "plugins/optimizers/items.h"

TN_PLUGIN(optimizers, "0.1.0", "MIT", ITEMS)
