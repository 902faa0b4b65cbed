/* A source that cannot be opened. */
#include "wrong.h"

static tn_status open_dry(tn_env *env, const void *options, int32_t split, uint64_t seed, void **source) {
  (void)options, (void)split, (void)seed, (void)source;
  return tn_fail(env, TN_EUNAVAILABLE, NULL, "the well is dry");
}
static void close_dry(tn_env *env, void *source) { (void)source, (void)env; }
static tn_status describe(tn_env *env, void *source, tn_description *description) {
  (void)source, (void)env, (void)description;
  return TN_OK;
}
static tn_status read_dry(tn_sample *s, void *source) {
  (void)source;
  return tn_fail(s, TN_EINTERNAL, NULL, "it was not opened");
}
static const tn_source dry = {.item = TN_ITEM_PLAIN(tn_source, TN_SOURCE, "dry", "a source"),
                              .open = open_dry,
                              .close = close_dry,
                              .describe = describe,
                              .read = read_dry};

TN_PLUGIN(source, "1.0", "MIT", &dry.item)
