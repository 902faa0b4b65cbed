/* backends/nccl/communicator.h: the item. */
#pragma once

#include "tenon/plugin/communicator.h"

extern const tn_communicator tn_nccl_communicator;
