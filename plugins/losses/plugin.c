/* plugins/losses/plugin.c: the descriptor. A loss yields a value per element, and a weight where elements
 * differ. */
#include "plugins/losses/losses.h"

#include "plugins/losses/items.h"

TN_PLUGIN(losses, "0.1.0", "MIT", ITEMS)
