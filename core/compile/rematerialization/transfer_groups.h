/* core/compile/rematerialization/transfer_groups.h: groups that copy offloaded values. */
#pragma once

#include "core/compile/kernels/transfer_kernel.h"
#include "core/compile/select/cover.h"

/* Adds a node that copies `value`, with its layout, and makes a group of it, which the caller inserts. *copy
 * is the result. `layer`: of messages and reports. */
tn_status tn_make_transfer_group(tn_cover *cover, int32_t transfer, tn_val value, const char *layer,
                                 tn_group *group, tn_val *copy);
