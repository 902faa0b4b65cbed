/* Built against the headers of another major version: its entry has another name. */
#include "wrong.h"

TN_EXPORT const tn_plugin *tn_plugin_v1(void);
TN_EXPORT const tn_plugin *tn_plugin_v1(void) { return NULL; }
