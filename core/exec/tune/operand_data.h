/* core/exec/tune/operand_data.h: numbers for the operands of measured launches. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Fills `bytes` bytes with elements of a dtype, the same in every process. Floats have random signs and
 * magnitudes from 1/8 to 2: zeros take less power and, on some processors, less time. Integers are 0 or 1,
 * which are indices of most tables; bytes are of the whole range. */
void tn_operand_data(int32_t dtype, void *to, size_t bytes);
