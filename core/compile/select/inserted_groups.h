/* core/compile/select/inserted_groups.h: groups that later passes insert into a cover: copies, reorders,
 * zeros. */
#pragma once

#include "core/compile/select/cover.h"

/* Each adds a node at the end of the cover's graph and makes a group of it, which the caller inserts.
 * TN_EUNSUPPORTED if the target has no kernel for the op. */
tn_status tn_make_copy_group(tn_cover *cover, tn_val value, tn_group *group);
/* The same on the host: a placed group (tn_group.placed). */
tn_status tn_make_host_copy_group(tn_cover *cover, tn_val value, tn_group *group);
tn_status tn_make_reorder_group(tn_cover *cover, tn_val value, tn_group *group);
tn_status tn_make_zeros_group(tn_cover *cover, int32_t dtype, int64_t count, tn_group *group);
