/* A backend: synchronous devices on the host, without threads. Memory, streams, events and copies are the
 * host's defaults, and the kernels are those of the cpu. `[backend] use = plain`. */
#include <tenon/plugin/backend.h>

/* Devices have no state, so the number is arbitrary. */
static tn_status count(tn_env *env, void *self, int32_t *n) { return (void)self, (void)env, *n = 4, TN_OK; }

static const tn_backend plain = {.item = TN_ITEM_PLAIN(tn_backend, TN_BACKEND, "plain", "one host thread"),
                                 .accepts = "cpu",
                                 .count = count};

TN_PLUGIN(plain_backend, "1.0", "MIT", &plain.item)
