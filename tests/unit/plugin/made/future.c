/* Built for an interface that is still to come: its entry has another name. */
#include "made.h"

TN_EXPORT const tn_plugin *tn_plugin_v3(void);
TN_EXPORT const tn_plugin *tn_plugin_v3(void) { return NULL; }
