/* plugins/transforms/plugin.c: the descriptor. */
#include "plugins/transforms/transforms.h"

#include "plugins/transforms/items.h"

TN_PLUGIN(transforms, "0.1.0", "MIT", ITEMS)
