/* core/exec/nonfinite/search.h: runs programs launch by launch to find the first value that is not finite.
 *
 * An infinite value need not be a fault: attention masks are made of them. The search therefore scans all
 * values of a run and goes back from the ends of the program, along operands that are not finite, to a value
 * whose own operands are finite. Each launch costs a wait and a copy, so the search repeats a run that has
 * failed. */
#pragma once

#include "core/exec/executor.h"

typedef struct tn_nonfinite_search tn_nonfinite_search;

/* The origin of a value that is not finite. */
enum { TN_NONFINITE_INPUT = 1, TN_NONFINITE_STATE = 2, TN_NONFINITE_DERIVED = 3, TN_NONFINITE_OP = 4 };

/* Scans every run on the executor until a run leaves behind a value that is not finite. Runs are launched one
 * by one until tn_nonfinite_search_destroy on a device with a communicator, since the other ranks may not
 * have found a value, and otherwise until then. */
tn_status tn_nonfinite_search_create(tn_executor *executor, tn_nonfinite_search **finite);
void tn_nonfinite_search_destroy(tn_nonfinite_search *finite);

/* TN_NONFINITE_... of the value found; 0: nothing was found. *text: its name, position and values, a sentence
 * without a full stop. *position: its index in the order of execution, to compare with those of other ranks.
 */
int32_t tn_nonfinite_search_result(const tn_nonfinite_search *finite, const char **text, int64_t *position);
