/* A shared object that is no plugin; its constructor leaves a trace. */
#include "made.h"

#include <stdlib.h>

TN_EXPORT int made_nothing(void);
TN_EXPORT int made_nothing(void) { return 0; }

__attribute__((constructor)) static void library_leave_trace(void) {
  setenv("TENON_TEST_CONSTRUCTED", "library", 1);
}
