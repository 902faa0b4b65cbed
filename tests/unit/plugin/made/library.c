/* A shared object that is no plugin. */
#include "made.h"

TN_EXPORT int made_nothing(void);
TN_EXPORT int made_nothing(void) { return 0; }
