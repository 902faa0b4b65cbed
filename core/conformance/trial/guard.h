/* core/conformance/trial/guard.h: canaries. The bytes of arena and outputs are filled with a pattern before a
 * run; after it, the bytes outside all buffers and workspaces must still hold the pattern. Results that
 * differ between two patterns depend on bytes that no launch has written: a kernel reads beyond an operand,
 * or a workspace that it has not filled. */
#pragma once

#include "core/exec/executor.h"

/* Patterns: a small number, and a NaN, of every float dtype. */
enum { TN_GUARD_NUMBER = 0xA5, TN_GUARD_NAN = 0xFF };

/* Fills arena and outputs, whose contents are lost. */
tn_status tn_guard_fill(tn_executor *executor, int32_t pattern);
/* The pattern must be TN_GUARD_NUMBER. *broken: the offset, in the arena or among the outputs, of the first
 * changed byte outside all buffers; -1: all are intact. *launch: the name of the launch whose result is next
 * before it. */
tn_status tn_guard_check(tn_executor *executor, const tn_program *program, int64_t *broken,
                         const char **launch);
