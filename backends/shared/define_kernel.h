/* backends/shared/define_kernel.h: the two macros that define a kernel of a backend. */
#ifndef TN_BACKENDS_SHARED_DEFINE_KERNEL_H
#define TN_BACKENDS_SHARED_DEFINE_KERNEL_H

#include "tenon/plugin/kernel.h"

/* Defines `const tn_kernel tn_kernel_FAMILY_ID`: a kernel called `name_` for the pattern `pattern_`. The
 * arguments after `doc_` are its callbacks as designated initializers, such as TN_KERNEL_CALLBACKS(pool). The
 * build makes the plugin's list of those that the backend defines (tools/list-items). */
#define TN_DEFINE_KERNEL(family_, id_, name_, pattern_, doc_, ...)                                           \
  const tn_kernel tn_kernel_##family_##_##id_ = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, name_, doc_),   \
                                                 .family = #family_,                                         \
                                                 .pattern = pattern_,                                        \
                                                 __VA_ARGS__}

/* The callbacks PREFIX_query, PREFIX_prepare, PREFIX_release and PREFIX_launch of one file. */
#define TN_KERNEL_CALLBACKS(prefix)                                                                          \
  .query = prefix##_query, .prepare = prefix##_prepare, .release = prefix##_release, .launch = prefix##_launch

#endif
