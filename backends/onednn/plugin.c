/* backends/onednn/plugin.c: the descriptor: the extension `onednn` and its kernels. */
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/onednn.h"

#define ITEM(name) &tn_onednn_##name.item,

TN_PLUGIN(onednn, "0.1.0", "MIT", TN_ONEDNN_KERNELS(ITEM) & tn_onednn_backend.item)
