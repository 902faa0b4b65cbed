/* backends/onednn/plugin.c: the descriptor: the extension `onednn` and its kernels. */
#include "backends/onednn/onednn.h"

#include "backends/onednn/items.h"

TN_PLUGIN(onednn, "0.1.0", "MIT", ITEMS, &tn_onednn_backend.item)
