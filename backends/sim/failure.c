/* backends/sim/failure.c: the first failure of a stream. */
#include <stdio.h>
#include <string.h>

#include "backends/sim/sim.h"

void tn_sim_failure_set(tn_sim_failure *failure, tn_status code, const char *text) {
  if (atomic_exchange(&failure->taken, true)) return;
  size_t n = strlen(text);
  if (n >= sizeof failure->text) n = sizeof failure->text - 1;
  memcpy(failure->text, text, n);
  failure->text[n] = '\0';
  atomic_store(&failure->code, code);
}
