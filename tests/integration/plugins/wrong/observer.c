/* An observer that cannot be opened. */
#include "wrong.h"

static tn_status open_deaf(tn_env *env, const void *options, const tn_run_info *run, void **observer) {
  (void)options, (void)run, (void)observer;
  return tn_fail(env, TN_EUNAVAILABLE, NULL, "it receives no events");
}
static tn_status event(tn_env *env, void *observer, const tn_event *e) {
  (void)observer, (void)e;
  return tn_fail(env, TN_EINTERNAL, NULL, "it was not opened");
}
static void close_deaf(tn_env *env, void *observer) { (void)observer, (void)env; }
static const tn_observer deaf = {.item = TN_ITEM_PLAIN(tn_observer, TN_OBSERVER, "deaf", "an observer"),
                                 .always = 1,
                                 .open = open_deaf,
                                 .event = event,
                                 .close = close_deaf};

TN_PLUGIN(observer, "1.0", "MIT", &deaf.item)
