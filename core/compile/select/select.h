/* core/compile/select/select.h: pass `select`: makes a cover of an assignment. */
#pragma once

#include "core/compile/select/assign.h"
#include "core/compile/select/cover.h"

/* Covers the nodes that fall back, and lists the groups of both sides in topological order. Takes the
 * contents of the assignment on success. */
tn_status tn_pass_select(tn_assignment *assignment, tn_cover **cover);
