/* core/compile/kernels/target.c: rates of a target that are unknown; the backend of a family. */
#include "core/compile/kernels/target.h"

#include <string.h>

static void complete_rate(double *rate, double otherwise) {
  if (!(*rate > 0)) *rate = otherwise;
}

void tn_properties_complete(tn_device_properties *p) {
  complete_rate(&p->bytes_per_s, 1e10);
  complete_rate(&p->vector_flops_per_s, 2e10 * (p->threads > 1 ? p->threads : 1));
  for (size_t i = 0; i < sizeof p->matrix_flops_per_s / sizeof p->matrix_flops_per_s[0]; i++)
    complete_rate(&p->matrix_flops_per_s[i], p->vector_flops_per_s);
  complete_rate(&p->launch_s, 1e-6);
}

void *tn_target_self(const tn_target *target, const char *family) {
  for (int32_t i = 0; target->selves != NULL && i < target->n_families; i++)
    if (strcmp(target->families[i], family) == 0) return target->selves[i];
  return NULL;
}
