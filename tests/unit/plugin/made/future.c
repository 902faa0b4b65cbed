/* Built for an interface that is still to come: its entry has another name. Its constructor leaves a trace.
 */
#include "made.h"

#include <stdlib.h>

TN_EXPORT const tn_plugin *tn_plugin_v3(void);
TN_EXPORT const tn_plugin *tn_plugin_v3(void) { return NULL; }

__attribute__((constructor)) static void future_leave_trace(void) {
  setenv("TENON_TEST_CONSTRUCTED", "future", 1);
}
