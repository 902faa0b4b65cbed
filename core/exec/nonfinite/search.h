/* core/exec/nonfinite/search.h: programs run launch by launch, to find the first value that is not finite.
 *
 * Not every infinite value is a fault: masks are made of them. So all values of a run are looked at, and the
 * search goes back from what the program leaves behind, over what is not finite among the operands, to a
 * value whose own operands are. That takes a wait and a copy for each launch: it is for a run that has
 * failed. */
#ifndef TN_CORE_EXEC_NONFINITE_SEARCH_H
#define TN_CORE_EXEC_NONFINITE_SEARCH_H

#include "core/exec/executor.h"

typedef struct tn_finite tn_finite;

/* Where a value that is not finite comes from. */
enum { TN_FINITE_INPUT = 1, TN_FINITE_STATE = 2, TN_FINITE_DERIVED = 3, TN_FINITE_OP = 4 };

/* From now on every run of a program on the executor is looked at, until one leaves something behind that is
 * not finite, or until tn_finite_destroy. */
tn_status tn_finite_create(tn_executor *executor, tn_finite **finite);
void tn_finite_destroy(tn_finite *finite);

/* What was found: TN_FINITE_..., its name, place and values as a sentence without an end, and how late it was
 * made, to compare with what other ranks have found. 0: nothing. */
int32_t tn_finite_found(const tn_finite *finite, const char **text, int64_t *position);

#endif
