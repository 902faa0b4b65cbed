/* tests/support/required_kernels.h: kernels that a device must have to be opened, for made-up backends whose
 * programs do not use them. */
#pragma once

#include "tenon/plugin/kernel.h"

static tn_status required_query(tn_query *q) { return tn_fail(q, TN_EUNSUPPORTED, NULL, "for tests"); }
static tn_status required_launch(tn_launch *l) { return tn_fail(l, TN_EUNSUPPORTED, NULL, "for tests"); }

#define REQUIRED_KERNEL(FAMILY, NAME, PATTERN)                                                               \
  {                                                                                                          \
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, NAME, "for tests"), .family = FAMILY, .pattern = PATTERN,    \
    .query = required_query, .launch = required_launch                                                       \
  }

/* Defines three kernels of a family; REQUIRED_ITEMS names them in a list of items. */
#define REQUIRED_KERNELS(FAMILY)                                                                             \
  static const tn_kernel required_kernels[] = {REQUIRED_KERNEL(FAMILY, "copy", "y = copy(x)"),               \
                                               REQUIRED_KERNEL(FAMILY, "reorder", "y = reorder(x)"),         \
                                               REQUIRED_KERNEL(FAMILY, "full", "y = full()")}
#define REQUIRED_ITEMS &required_kernels[0].item, &required_kernels[1].item, &required_kernels[2].item
