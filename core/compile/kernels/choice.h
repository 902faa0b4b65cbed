/* core/compile/kernels/choice.h: copies of variants. */
#pragma once

#include "core/base/arena.h"
#include "core/compile/kernels/group.h"

/* A deep copy of a variant for a match, with unset layouts. */
tn_status tn_choice_copy(tn_arena *arena, const tn_match *match, const tn_choice *from, tn_choice *to);
