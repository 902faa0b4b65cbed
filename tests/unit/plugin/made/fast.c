/* A plugin whose constructor changes the floating-point environment, as that of -ffast-math does. */
#include <fenv.h>

#include "made.h"

__attribute__((constructor)) static void round_upwards(void) { fesetround(FE_UPWARD); }

MADE_LAYER(hasty);

TN_PLUGIN(fast, "1.0", "MIT", &hasty.item)
