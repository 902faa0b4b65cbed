/* core/linked.c: the descriptors that are part of libtenon itself: the core's ops and, in a static
 * build, the bundled plugins, whose names the build writes into linked_plugins.h; and the commit of its
 * sources. */
#include "build_commit.h"
#include "core/base/system/host.h"
#include "core/ops/ops.h"
#include "core/plugin/context.h"

#define TN_LINKED(id) const tn_plugin *tn_static_##id(void);
#include "linked_plugins.h"
#undef TN_LINKED

const char tn_commit_text[] = TN_BUILD_COMMIT;

/* clang-format off */
const tn_left_out tn_left_out_parts[] = {
#define TN_LEFT_OUT(name, reason) {name, reason},
#include "left_out.h"
#undef TN_LEFT_OUT
    {NULL, NULL}};
/* clang-format on */

/* clang-format off */
const tn_plugin_entry tn_linked_plugins[] = {
    tn_core_ops,
#define TN_LINKED(id) tn_static_##id,
#include "linked_plugins.h"
#undef TN_LINKED
    NULL};
/* clang-format on */
