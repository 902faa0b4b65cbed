/* plugins/schedules/plugin.c: the constant schedule, and the descriptor. */
#include "plugins/schedules/schedules.h"

#include "plugins/schedules/items.h"

static double constant_factor(const void *options, const tn_schedule_at *at) {
  (void)options, (void)at;
  return 1.0;
}
static const tn_schedule constant = {
    .item = TN_ITEM_PLAIN(tn_schedule, TN_SCHEDULE, "constant", "a constant learning rate"),
    .factor = constant_factor};

TN_PLUGIN(schedules, "0.1.0", "MIT", &constant.item, ITEMS)
