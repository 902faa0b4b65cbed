/* plugins/layers/plugin.c: the built-in layers. */
#include "tenon/plugin/layer.h"

#include "plugins/layers/items.h"

TN_PLUGIN(layers, "0.1.0", "MIT", ITEMS)
