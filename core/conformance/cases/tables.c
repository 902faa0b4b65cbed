/* core/conformance/cases/tables.c: the tables of all cases. */
#include <string.h>

#include "core/conformance/cases/cases.h"

const tn_case *const tn_case_tables[] = {
    tn_pointwise_cases, tn_fill_cases,  tn_reduce_cases, tn_product_cases,    tn_norm_cases, tn_loss_cases,
    tn_movement_cases,  tn_index_cases, tn_mixed_cases,  tn_recurrence_cases, NULL};

const tn_case *tn_case_find(const char *op) {
  for (int32_t i = 0; tn_case_tables[i] != NULL; i++)
    for (const tn_case *c = tn_case_tables[i]; c->op != NULL; c++)
      if (strcmp(c->op, op) == 0) return c;
  return NULL;
}
