/* core/plugin/context.h: the members of a context (tenon/context.h). */
#pragma once

#include "core/plugin/registry.h"
#include "tenon/context.h"

struct tn_context {
  tn_env env;
  tn_error_record record;
  tn_registry *registry;
  /* The table of op definitions, which core/graph makes when it is first asked for. It is destroyed
   * before the registry that it points into. */
  void *ops;
  void (*ops_destroy)(void *ops);
  bool kept; /* tn_context_close frees nothing: a thread that may never end uses it */
};

static inline tn_registry *tn_context_registry(tn_context *context) { return context->registry; }

/* Entry functions of the plugins that are linked in, in the order in which they are added, ended by NULL.
 * libtenon defines the list: the core's ops, and in a static build the bundled plugins. Here it is empty. */
typedef const tn_plugin *(*tn_plugin_entry)(void);
extern const tn_plugin_entry tn_linked_plugins[];

/* Parts that the build has left out, each with its reason and what to install; ended by a name that is NULL.
 * Of libtenon, too. */
typedef struct tn_left_out {
  const char *name, *reason;
} tn_left_out;
extern const tn_left_out tn_left_out_parts[];

/* Adds the default plugin folders (default_folders.c): those of the build tree that contains this library, or
 * the one of its installation. */
tn_status tn_default_folders(const void *handle, tn_registry *registry);
