/* backends/nccl/communicator.h: the item. */
#ifndef TN_BACKENDS_NCCL_COMMUNICATOR_H
#define TN_BACKENDS_NCCL_COMMUNICATOR_H

#include "tenon/plugin/communicator.h"

extern const tn_communicator tn_nccl_communicator;

#endif
