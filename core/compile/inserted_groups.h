/* core/compile/inserted_groups.h: groups that passes add to a cover: copies, changes of layout, zeros. */
#ifndef TN_CORE_COMPILE_INSERTED_GROUPS_H
#define TN_CORE_COMPILE_INSERTED_GROUPS_H

#include "core/compile/cover.h"

/* Each emits a node at the end of the cover's graph and makes a group for it that the caller puts
 * where it belongs. TN_EUNSUPPORTED when the target has no kernel for the op. */
tn_status tn_helper_copy(tn_cover *cover, tn_val value, tn_group *group);
tn_status tn_helper_reorder(tn_cover *cover, tn_val value, tn_group *group);
tn_status tn_helper_zeros(tn_cover *cover, int32_t dtype, int64_t count, tn_group *group);

#endif
