/* core/data/balance.h: an order of samples in which every class comes equally often.
 *
 * The draws of all epochs are numbered: draw g takes the class g mod classes, and of its samples, in an order
 * of their own, number g / classes. A class whose samples are used up begins a new round in another order. So
 * within an epoch the classes differ by one draw at most, and no sample comes twice before all others of its
 * class have come. A draw is found in constant time, as those of tn_permute. */
#pragma once

#include "core/base/env.h"
#include "tenon/plugin/source.h"

typedef struct tn_balance {
  int64_t classes;  /* that have samples */
  int64_t *first;   /* by class: its first entry of `samples`; classes + 1 entries */
  int64_t *samples; /* by class */
} tn_balance;

/* Asks an open source for the class of every sample. TN_EINVAL: it is endless, or does not tell classes. */
tn_status tn_balance_make(tn_env *env, const tn_source *source, void *self, const tn_description *description,
                          tn_balance *balance);
void tn_balance_free(const tn_env *env, tn_balance *balance);

typedef struct tn_balanced {
  int64_t index;  /* of the sample */
  uint64_t round; /* how often all samples of its class have come before: a sample that comes again in an
                     epoch does so in another round */
} tn_balanced;
tn_balanced tn_balance_draw(const tn_balance *balance, uint64_t key, int64_t g);

/* The samples of the smallest and of the largest class. */
void tn_balance_extremes(const tn_balance *balance, int64_t *least, int64_t *most);
