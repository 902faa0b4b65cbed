/* core/compile/kernels/target.c: finds the backend of a family. */
#include "core/compile/kernels/target.h"

#include <string.h>

void *tn_target_self(const tn_target *target, const char *family) {
  for (int32_t i = 0; target->selves != NULL && i < target->n_families; i++)
    if (strcmp(target->families[i], family) == 0) return target->selves[i];
  return NULL;
}
