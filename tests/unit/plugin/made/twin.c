/* Brings a layer that `first` has, too. */
#include "made.h"

MADE_LAYER(delta);
MADE_LAYER(alpha);

TN_PLUGIN(twin, "1.0", "MIT", &delta.item, &alpha.item)
