/* core/compile/rematerialization/recompute.h: pass `recompute`: regions that recompute a value in place of
 * keeping it. */
#pragma once

#include "core/compile/select/cover.h"

/* A node that is recomputed belongs to two groups; tn_gnode.group is the first of them. */
tn_status tn_pass_recompute(tn_cover *cover);
