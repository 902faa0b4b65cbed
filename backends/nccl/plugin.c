/* backends/nccl/plugin.c: the descriptor: the communicator `nccl`. */
#include "backends/nccl/communicator.h"

TN_PLUGIN(nccl, "0.1.0", "MIT", &tn_nccl_communicator.item)
