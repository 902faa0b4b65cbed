/* core/plugin/store.h: the members of a registry, shared by registry.c, which fills it, and lookup.c, which
 * reads it. */
#pragma once

#include <stdbool.h>

#include "core/base/vec.h"
#include "core/plugin/index.h"
#include "core/plugin/registry.h"

/* A cached result of tn_registry_list or tn_registry_kernels. */
typedef struct listing {
  uint32_t kind;
  const char *family; /* NULL: any */
  size_t n_known;     /* entries of the registry when it was made */
  tn_entry *entries;
  int32_t n;
} listing;

struct tn_registry {
  const void *handle; /* whose memory it uses */
  tn_arena arena;
  TN_VEC(const tn_entry *) entries;
  tn_plugin_files files;
  TN_VEC(const tn_plugin *) linked; /* descriptors of tn_registry_add */
  TN_VEC(const char *) folders;
  TN_VEC(listing) listings;
  size_t n_listed; /* files before this one are indexed, open or refused */
};

/* Instead of a kind: every kind. */
enum { TN_EVERY_KIND = 0 };

tn_status tn_store_no_memory(const void *handle);

/* Whether an item has this kind, name and family; want_name and want_family NULL: any. */
bool tn_store_fits(const tn_index_item *item, uint32_t want_kind, const char *want_name,
                   const char *want_family);
tn_index_item tn_store_row(const tn_item *item);
const tn_entry *tn_store_entry(const tn_registry *r, uint32_t kind, const char *name, const char *family);
/* Whether a file that has not been opened holds such an item, and the first one that does, or NULL. */
bool tn_store_file_has(const tn_plugin_file *file, uint32_t kind, const char *name, const char *family);
tn_plugin_file *tn_store_file(const tn_registry *r, uint32_t kind, const char *name, const char *family);

/* Opens a file and adds its items. */
tn_status tn_store_open(tn_registry *r, const void *handle, tn_plugin_file *file);
/* For files that are not named by the user: a refusal is one warning. */
tn_status tn_store_open_or_warn(tn_registry *r, const void *handle, tn_plugin_file *file);
/* Loads the files that the index does not describe, so that every item is known by name. */
tn_status tn_store_list_files(tn_registry *r, const void *handle);

/* An empty registry; tn_store_scan adds the files of a folder, with or without its index. */
tn_status tn_store_create(const void *handle, tn_registry **registry);
tn_status tn_store_scan(tn_registry *r, const void *handle, const char *folder, bool use_index);
