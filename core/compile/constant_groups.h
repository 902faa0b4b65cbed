/* core/compile/constant_groups.h: pass `constants`: launches that every run would repeat with the same
 * result.
 *
 * A group whose operands, as far as they go back, depend on no input, no state and no collective moves from
 * tn_cover.groups to tn_cover.constants. A program launches these groups once, before its first run, and
 * keeps their results. The pass follows `recompute`, so a constant that its readers compute themselves has no
 * group and stays in their launches. */
#pragma once

#include "core/compile/select/cover.h"

/* Limits of the memory that constants keep: of one value, and of a program. Groups beyond them stay. */
#define TN_CONSTANT_VALUE_BYTES   (INT64_C(1) << 20)
#define TN_CONSTANT_PROGRAM_BYTES (INT64_C(16) << 20)

/* fixed_states: the states of the graph do not change either, as in the body of a loop. Groups that depend on
 * them alone are launched once in front of the first step, without a limit of their memory. */
tn_status tn_pass_constants(tn_cover *cover, bool fixed_states);
