/* An extension of the bundled backend whose library does not start. */
#include "wrong.h"

static tn_status open_broken(tn_env *env, const void *options, void **backend) {
  (void)options, (void)backend;
  return tn_fail(env, TN_EUNAVAILABLE, NULL, "its library is of version 3, expected 4; install libbroken4");
}
static void close_broken(tn_env *env, void *backend) { (void)backend, (void)env; }
static const tn_backend broken = {.item = TN_ITEM_PLAIN(tn_backend, TN_BACKEND, "broken", "a backend"),
                                  .extends = "cpu",
                                  .open = open_broken,
                                  .close = close_broken,
                                  .preference = 1000};

TN_PLUGIN(backend, "1.0", "MIT", &broken.item)
