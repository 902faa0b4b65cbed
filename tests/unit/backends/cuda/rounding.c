/* A library whose constructor changes the floating-point environment, as that of -ffast-math does. */
#include <fenv.h>

__attribute__((constructor)) static void round_upwards(void) { fesetround(FE_UPWARD); }
