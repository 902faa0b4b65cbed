/* backends/shared/define_kernel.h: what the kernels of a backend are defined with: their descriptor, their
 * callbacks and their variants. */
#pragma once

#include "tenon/plugin/kernel.h"

/* Defines `const tn_kernel tn_kernel_FAMILY_ID`: a kernel called `name_` for the pattern `pattern_`. The
 * arguments after `doc_` are its callbacks as designated initializers, such as TN_KERNEL_CALLBACKS(pool). The
 * build makes the plugin's list of those that the backend defines (tools/list-items). */
#define TN_DEFINE_KERNEL(family_, id_, name_, pattern_, doc_, ...)                                           \
  const tn_kernel tn_kernel_##family_##_##id_ = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, name_, doc_),   \
                                                 .family = #family_,                                         \
                                                 .pattern = pattern_,                                        \
                                                 __VA_ARGS__}

/* Adds a variant that computes the same bits in every launch and can be captured, as nearly all do. */
static inline tn_status tn_offer(tn_query *q, tn_variant v) {
  v.struct_size = sizeof v;
  v.deterministic = v.capturable = 1;
  tn_add_variant(q, &v);
  return TN_OK;
}

/* For kernels whose prepared object is one block of memory. */
static inline void tn_delete_prepared(tn_env *env, void *made) { tn_delete(env, made); }

/* The callbacks PREFIX_query, PREFIX_prepare, PREFIX_release and PREFIX_launch of one file. The second macro
 * takes the release function, which several kernels may share. */
#define TN_KERNEL_CALLBACKS(prefix) TN_KERNEL_CALLBACKS_WITH(prefix, prefix##_release)
#define TN_KERNEL_CALLBACKS_WITH(prefix, release_)                                                           \
  .query = prefix##_query, .prepare = prefix##_prepare, .release = release_, .launch = prefix##_launch
