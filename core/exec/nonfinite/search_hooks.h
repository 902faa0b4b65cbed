/* core/exec/nonfinite/search_hooks.h: private to core/exec: what run.c tells a search (finite.h). */
#ifndef TN_CORE_EXEC_NONFINITE_SEARCH_HOOKS_H
#define TN_CORE_EXEC_NONFINITE_SEARCH_HOOKS_H

#include "core/exec/bound_program.h"
#include "core/exec/nonfinite/search.h"

/* Whether runs are looked at; then each goes begin, launched for every step, end. */
bool tn_finite_looks(const tn_executor *e);
/* Before anything is launched: inputs as they lie on the host, and state. Messages are in e->env. */
tn_status tn_finite_begin(tn_executor *e, const tn_bound_program *bound, int32_t slot);
/* A step was launched and has ended: its results. Messages are in the device's env. */
tn_status tn_finite_launched(tn_executor *e, const tn_bound_step *step);
/* The whole program was: goes back from what it leaves behind. Messages are in e->env. */
tn_status tn_finite_end(tn_executor *e, const tn_bound_program *bound);

#endif
