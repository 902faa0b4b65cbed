/* core/plugin/registry.h: the items of all plugins. A registry belongs to a context. It loads a file when an
 * item of the file, by the folder's index, is looked up, copies the items into structs of the host's size
 * (negotiate.c), and never unloads a file. */
#pragma once

#include <stdbool.h>

#include "core/base/arena.h"
#include "tenon/plugin/plugin.h"

typedef struct tn_registry tn_registry;

typedef struct tn_entry {
  const tn_item *item; /* negotiated; cast to the kind's struct */
  const char *plugin;  /* name of the plugin */
  const char *version;
  const char *file; /* absolute path; "" for items of the core and of a static build */
} tn_entry;

/* `folder` is the plugin folder, or "". The index is read; files that it does not describe are loaded at the
 * first lookup. */
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
/* Loads a file: a path, or the bare name of a file in a plugin folder ("cuda" for tenon-cuda.so). Refuses
 * world-writable files and folders. TN_EUNAVAILABLE: there is no such file, or it lacks a library. A file
 * that is loaded already changes nothing. */
tn_status tn_registry_load(tn_registry *registry, const void *handle, const char *path);
/* Whether a word is a path: it has a '/' or ends in ".so". */
bool tn_registry_is_path(const char *word);
/* Whether a plugin folder has a file of this bare name. */
bool tn_registry_holds(const tn_registry *registry, const char *name);
/* Whether the file at this path has been loaded, or belongs to a plugin folder. */
bool tn_registry_has_loaded(tn_registry *registry, const void *handle, const char *path);

/* The item of a kind and name; loads its file where needed. TN_EUNAVAILABLE, with the nearest name, where
 * there is no such item; else the code and text of the refusal of its file. Entries live as long as the
 * registry. */
tn_status tn_registry_find(tn_registry *registry, const void *handle, uint32_t kind, const char *name,
                           const tn_entry **entry);
bool tn_registry_has(tn_registry *registry, uint32_t kind, const char *name);

/* All items of a kind, sorted by name; loads every file that has one. The array lives as long as the
 * registry. Refused files are logged as warnings. */
tn_status tn_registry_list(tn_registry *registry, const void *handle, uint32_t kind, const tn_entry **entries,
                           int32_t *n);
/* Kernels of a family; loads only files that have one. */
tn_status tn_registry_kernels(tn_registry *registry, const void *handle, const char *family,
                              const tn_entry **entries, int32_t *n);

/* Plugin number `index` of those that are loaded, by an item of it; NULL: there are no more. */
const tn_entry *tn_registry_plugin(const tn_registry *registry, int32_t index);

/* Plugin file number `index`; false: there are no more. A file that no lookup has needed is not loaded. */
typedef struct tn_registry_file {
  const char *path;
  const tn_entry *entry; /* an item of it; NULL: it is not loaded */
  const char *refusal;   /* why it cannot be loaded; NULL: it can */
} tn_registry_file;
bool tn_registry_file_at(const tn_registry *registry, int32_t index, tn_registry_file *file);

/* Writes the index of a plugin folder (item -> file) beside its plugins; for build and install.
 * Refused files are logged and left out. */
tn_status tn_registry_write_index(const void *handle, const char *folder);

/* Negotiation, without dlopen. Copies `plugin` into the arena at the host's sizes, or refuses it and names
 * each field that differs. */
tn_status tn_negotiate_plugin(const void *handle, tn_arena *arena, const tn_plugin *plugin,
                              uint16_t host_major, uint16_t host_minor, const char *file,
                              const tn_plugin **out);
