/* core/plugin/registry.h: which items exist and where they come from. A registry belongs to a
 * context. Files are opened when an item of theirs is asked for (the index tells), copied
 * (normalized) into structs of the host's size, and never closed. */
#ifndef TN_CORE_PLUGIN_REGISTRY_H
#define TN_CORE_PLUGIN_REGISTRY_H

#include <stdbool.h>

#include "core/base/arena.h"
#include "tenon/plugin/plugin.h"

typedef struct tn_registry tn_registry;

typedef struct tn_entry {
  const tn_item *item; /* normalized; cast to the kind's struct */
  const char *plugin;  /* name of the plugin */
  const char *version;
  const char *file; /* absolute path; "" for items of the core and of a static build */
} tn_entry;

/* `folder` is the plugin folder ("" for none). No file is opened yet; the index is read, and where it
 * is missing or out of date the first question opens what it does not describe. */
tn_status tn_registry_create(const void *handle, const char *folder, tn_registry **registry);
/* One more plugin folder. A build tree has two. */
tn_status tn_registry_add_folder(tn_registry *registry, const void *handle, const char *folder);
void tn_registry_destroy(tn_registry *registry);

/* The plugin folders in the order in which they are searched. Borrowed until one is added. */
const char *const *tn_registry_folders(const tn_registry *registry, int32_t *n);

/* Adds the items of a descriptor that is linked in (the core's ops, a static build). A descriptor
 * that was added before changes nothing. */
tn_status tn_registry_add(tn_registry *registry, const void *handle, const tn_plugin *plugin,
                          const char *file);
/* Opens a file named by the user: a path, or the bare name of a file in a plugin folder ("cuda" for
 * tenon-cuda.so). Refuses world-writable files and folders. TN_EUNAVAILABLE when it is not there, or
 * lacks a library. A file that is open already changes nothing. */
tn_status tn_registry_load(tn_registry *registry, const void *handle, const char *path);
/* Which of the two a word is: what has a '/' or ends in ".so" is a path. */
bool tn_registry_is_path(const char *word);
/* Whether some plugin folder has the file that a bare name stands for. */
bool tn_registry_holds(const tn_registry *registry, const char *name);

/* The item, opening its file if need be. TN_EUNAVAILABLE with the nearest name when there is none;
 * the refusal of its file when that failed. Entries live as long as the registry. */
tn_status tn_registry_find(tn_registry *registry, const void *handle, uint32_t kind, const char *name,
                           const tn_entry **entry);
bool tn_registry_has(tn_registry *registry, uint32_t kind, const char *name);

/* All items of a kind, sorted by name; opens every file that has any. The array lives as long as the
 * registry. Files that were refused are logged as warnings. */
tn_status tn_registry_list(tn_registry *registry, const void *handle, uint32_t kind, const tn_entry **entries,
                           int32_t *n);
/* Kernels of a family, without opening files that hold none of that family. */
tn_status tn_registry_kernels(tn_registry *registry, const void *handle, const char *family,
                              const tn_entry **entries, int32_t *n);

/* Writes the index of a plugin folder (item -> file) beside its plugins; for build and install.
 * Refused files are logged and left out. */
tn_status tn_registry_write_index(const void *handle, const char *folder);

/* "layer", "optimizer" ... for TN_LAYER ... */
const char *tn_kind_name(uint32_t kind);

/* Negotiation, apart from dlopen so that tests can present made-up hosts and plugins.
 * Copies `plugin` into the arena at the host's sizes, or refuses naming each differing field. */
tn_status tn_normalize_plugin(const void *handle, tn_arena *arena, const tn_plugin *plugin,
                              uint16_t host_major, uint16_t host_minor, const char *file,
                              const tn_plugin **out);

#endif
