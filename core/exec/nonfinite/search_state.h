/* core/exec/nonfinite/search_state.h: private to core/exec/nonfinite: the state of a search. */
#pragma once

#include "core/exec/bound_program.h"
#include "core/exec/nonfinite/scan.h"
#include "core/exec/nonfinite/search.h"

struct tn_nonfinite_search {
  tn_executor *executor;
  tn_run_observer observer;  /* of the executor */
  const tn_program *program; /* under way; NULL: none */
  tn_scan *seen;             /* per value of its graph */
  char *bytes;               /* elements copied to the host */
  int64_t capacity;
  int64_t runs; /* programs observed so far */
  int32_t found;
  int64_t position;
  tn_text text;
};

/* A value without a memory of its own, such as a view, is made by a node that belongs to no group. */
static inline bool tn_nonfinite_is_launched(const tn_gnode *node) { return node->group >= 0; }

/* describe.c: writes the name, place and values of `v` to text, and its kind to found. step: the step that
 * computes it; -1: an input or state. */
void tn_nonfinite_describe(tn_nonfinite_search *f, tn_val v, int32_t step);
