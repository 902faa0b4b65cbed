/* A shared object without the entry. */
#include "wrong.h"

TN_EXPORT int wrong_nothing(void);
TN_EXPORT int wrong_nothing(void) { return 0; }
