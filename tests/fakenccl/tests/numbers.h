/* tests/fakenccl/tests/numbers.h: elements of all types of NCCL as doubles, and reductions by a plain loop.
 * The codes of small floats are searched for, so nothing is shared with the double's arithmetic. */
#pragma once

#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>

size_t numbers_size(int dtype);
bool numbers_is_float(int dtype);
/* Writes element i with the nearest value of the type; integers wrap. */
void numbers_set(void *x, int dtype, size_t i, double value);
double numbers_get(const void *x, int dtype, size_t i);
/* to[i] = from[0][i] op ... op from[n - 1][i]; op: also ncclNumOps, a PreMulSum by `factor`. */
void numbers_reduce(void *to, void *const *from, int n, size_t count, int dtype, int op, double factor);
/* Operand of a rank. */
void numbers_fill(void *x, size_t count, int dtype, int rank);
