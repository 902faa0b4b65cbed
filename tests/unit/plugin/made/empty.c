/* Its entry has nothing to give. */
#include "made.h"

TN_PLUGIN_ENTRY(empty);
TN_PLUGIN_ENTRY(empty) { return NULL; }
