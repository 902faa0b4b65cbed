/* core/compile/output/print.h: the text forms of the compiler's intermediate results, for --dump-after. */
#pragma once

#include "core/compile/program.h"
#include "core/compile/select/assign.h"

/* The graph's text, with a comment line after each node that falls back: the fallback and the reason. */
tn_status tn_assignment_print(const tn_assignment *assignment, tn_text *text);

/* The graph's text, with a comment line after the last node of each group: kernel and variant. */
tn_status tn_cover_print(const tn_cover *cover, tn_text *text);

/* Inputs, outputs and one line a step: kernel, variant, results and operands. With locations it is the text
 * after pass `memory`, without them the text after `schedule`. */
tn_status tn_program_print(const tn_program *program, bool locations, tn_text *text);

/* "arena" for TN_BASE_ARENA, and so on. */
const char *tn_base_name(int32_t base);
