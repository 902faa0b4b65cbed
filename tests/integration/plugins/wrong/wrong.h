/* tests/integration/plugins/wrong/wrong.h: the parts from which plugins are made that no host may take as
 * they are. Each file spoils one thing; what it spoils is all that stands in it. */
#pragma once

#include "tenon/plugin/backend.h"
#include "tenon/plugin/observer.h"
#include "tenon/plugin/schedule.h"
#include "tenon/plugin/source.h"

static inline double wrong_factor(const void *options, const tn_schedule_at *at) {
  (void)options, (void)at;
  return 0.5;
}

#define WRONG_SCHEDULE(id)                                                                                   \
  static const tn_schedule id = {.item = TN_ITEM_PLAIN(tn_schedule, TN_SCHEDULE, #id, "a schedule"),         \
                                 .factor = wrong_factor}

/* A descriptor with a field that TN_PLUGIN would have set otherwise. */
#define WRONG_PLUGIN(id, size, major, minor, requires, build, ...)                                           \
  TN_PLUGIN_ENTRY(id);                                                                                       \
  TN_PLUGIN_ENTRY(id) {                                                                                      \
    static const tn_item *const items[] = {__VA_ARGS__, NULL};                                               \
    static const tn_plugin plugin = {size, major, minor, requires, #id, "1.0", "MIT", build, items};         \
    return &plugin;                                                                                          \
  }
