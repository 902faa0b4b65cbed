/* Needs an undefined function, like a plugin whose vendor library is missing. */
#include "made.h"

MADE_LAYER(zeta);

int made_nowhere(void);
TN_EXPORT int made_somewhere(void);
TN_EXPORT int made_somewhere(void) { return made_nowhere(); }

TN_PLUGIN(unresolved, "1.0", "MIT", &zeta.item)
