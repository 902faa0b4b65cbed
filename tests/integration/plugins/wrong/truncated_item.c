/* A schedule that ends before its callback. */
#include "wrong.h"

static const tn_schedule late = {.item = {(uint32_t)sizeof(tn_item), TN_SCHEDULE, "late", "a schedule", NULL,
                                          (uint32_t)sizeof(tn_option), 0},
                                 .factor = wrong_factor};

TN_PLUGIN(truncated_item, "1.0", "MIT", &late.item)
