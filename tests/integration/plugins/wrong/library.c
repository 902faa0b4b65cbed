/* Needs an undefined function, like a plugin whose vendor library is missing. */
#include "wrong.h"

WRONG_SCHEDULE(late);

int wrong_nowhere(void);
TN_EXPORT int wrong_somewhere(void);
TN_EXPORT int wrong_somewhere(void) { return wrong_nowhere(); }

TN_PLUGIN(library, "1.0", "MIT", &late.item)
