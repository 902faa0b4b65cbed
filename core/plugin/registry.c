/* core/plugin/registry.c: items by kind and name. Files are loaded when an item of theirs is looked up. */
#include "core/plugin/store.h"

#include <string.h>

#include "core/base/text/text.h"
#include "core/plugin/kinds.h"
#include "core/base/file/trusted_file.h"
#include "core/plugin/loader.h"

tn_status tn_store_no_memory(const void *handle) {
  return tn_failf(handle, TN_ENOMEM, "out of memory in the registry of plugins");
}

/* ---- entries ------------------------------------------------------------------------------------ */

tn_index_item tn_store_row(const tn_item *item) {
  return (tn_index_item){item->kind, item->name, tn_item_family(item)};
}

bool tn_store_fits(const tn_index_item *item, uint32_t want_kind, const char *want_name,
                   const char *want_family) {
  return item->kind == want_kind && (want_name == NULL || strcmp(item->name, want_name) == 0) &&
         (want_family == NULL || strcmp(item->family, want_family) == 0);
}

const tn_entry *tn_store_entry(const tn_registry *r, uint32_t kind, const char *name, const char *family) {
  for (size_t i = 0; i < r->entries.n; i++) {
    tn_index_item row = tn_store_row(r->entries.v[i]->item);
    if (tn_store_fits(&row, kind, name, family)) return r->entries.v[i];
  }
  return NULL;
}

bool tn_store_file_has(const tn_plugin_file *file, uint32_t kind, const char *name, const char *family) {
  if (file->state != TN_FILE_CLOSED) return false;
  for (int32_t i = 0; i < file->n_items; i++)
    if (tn_store_fits(&file->items[i], kind, name, family)) return true;
  return false;
}

tn_plugin_file *tn_store_file(const tn_registry *r, uint32_t kind, const char *name, const char *family) {
  for (size_t i = 0; i < r->files.n; i++)
    if (tn_store_file_has(&r->files.v[i], kind, name, family)) return &r->files.v[i];
  return NULL;
}

/* ---- adding ------------------------------------------------------------------------------------- */

/* Two items of one kind and name are refused: a configuration would depend on the order of files. */
static tn_status registry_refuse_twin(const void *handle, const tn_item *item, const char *file,
                                      const char *other) {
  bool is_kernel = item->kind == TN_KERNEL;
  return tn_failf(
      handle, TN_EUNAVAILABLE,
      "%s: %s \"%s\"%s%s is there already, from %s; rename it, or leave out one of the two plugins",
      file[0] != '\0' ? file : "a plugin that is linked in", tn_kind_name(item->kind), item->name,
      is_kernel ? " of family " : "", tn_item_family(item), other);
}

/* A linked item may have the name of one in a file that is not loaded; the file is refused when it is loaded.
 */
static tn_status registry_check_twin(const tn_registry *r, const void *handle, const tn_item *item,
                                     const char *file) {
  const char *family = tn_item_family(item);
  const tn_entry *entry = tn_store_entry(r, item->kind, item->name, family);
  if (entry != NULL && entry->file[0] != '\0') return registry_refuse_twin(handle, item, file, entry->file);
  if (entry != NULL) return registry_refuse_twin(handle, item, file, entry->plugin);
  const tn_plugin_file *closed = file[0] != '\0' ? tn_store_file(r, item->kind, item->name, family) : NULL;
  return closed != NULL ? registry_refuse_twin(handle, item, file, closed->path) : TN_OK;
}

/* All items of a negotiated plugin, or none. */
static tn_status registry_add_items(tn_registry *r, const void *handle, const tn_plugin *plugin,
                                    const char *file) {
  size_t n = 0;
  for (; plugin->items[n] != NULL; n++) TN_TRY(registry_check_twin(r, handle, plugin->items[n], file));
  tn_entry *entries = tn_arena_alloc(&r->arena, tn_size_mul(n, sizeof(tn_entry)));
  const char *path = tn_arena_strdup(&r->arena, file);
  if (entries == NULL || path == NULL) return tn_store_no_memory(handle);
  if (tn_vec_reserve(r->handle, &r->entries, r->entries.n + n) != TN_OK) return tn_store_no_memory(handle);
  for (size_t i = 0; i < n; i++) {
    entries[i] = (tn_entry){plugin->items[i], plugin->name, plugin->version, path};
    r->entries.v[r->entries.n++] = &entries[i];
  }
  return TN_OK;
}

static tn_status registry_add_plugin(tn_registry *r, const void *handle, const tn_plugin *plugin,
                                     const char *file) {
  const tn_plugin *negotiated;
  TN_TRY(tn_negotiate_plugin(handle, &r->arena, plugin, TN_ABI_MAJOR, TN_ABI_MINOR, file, &negotiated));
  return registry_add_items(r, handle, negotiated, file);
}

tn_status tn_registry_add(tn_registry *r, const void *handle, const tn_plugin *plugin, const char *file) {
  for (size_t i = 0; i < r->linked.n; i++)
    if (r->linked.v[i] == plugin) return TN_OK;
  if (tn_vec_reserve(r->handle, &r->linked, r->linked.n + 1) != TN_OK) return tn_store_no_memory(handle);
  TN_TRY(registry_add_plugin(r, handle, plugin, file));
  r->linked.v[r->linked.n++] = plugin;
  return TN_OK;
}

/* ---- opening files ------------------------------------------------------------------------------ */

/* `file` counts as open while its items are added, so that its index entries do not count as twins. */
static tn_status registry_open_checked(tn_registry *r, const void *handle, tn_plugin_file *file,
                                       const char *real) {
  const tn_plugin *plugin;
  TN_TRY(tn_plugin_open(handle, real, &plugin));
  file->state = TN_FILE_OPEN;
  file->first_entry = r->entries.n;
  tn_status status = registry_add_plugin(r, handle, plugin, real);
  file->n_entries = r->entries.n - file->first_entry;
  return status;
}

static tn_status registry_open_file(tn_registry *r, const void *handle, tn_plugin_file *file) {
  char *real;
  TN_TRY(tn_trusted_file(handle, "plugin", file->path, &real));
  tn_status status = registry_open_checked(r, handle, file, real);
  tn_release(handle, real);
  return status;
}

/* Keeps the refusal, so that every lookup gives the same answer. A lack of memory is not kept. */
static tn_status registry_keep_refusal(tn_registry *r, const void *handle, tn_plugin_file *file,
                                       tn_status status) {
  file->state = TN_FILE_CLOSED;
  if (status == TN_ENOMEM) return status;
  file->refusal = tn_arena_strdup(&r->arena, tn_error_text(handle));
  if (file->refusal == NULL) return tn_store_no_memory(handle);
  file->state = TN_FILE_REFUSED;
  file->code = status;
  return status;
}

tn_status tn_store_open(tn_registry *r, const void *handle, tn_plugin_file *file) {
  if (file->state == TN_FILE_OPEN) return TN_OK;
  if (file->state == TN_FILE_REFUSED) return tn_failf(handle, file->code, "%s", file->refusal);
  tn_status status = registry_open_file(r, handle, file);
  return status == TN_OK ? TN_OK : registry_keep_refusal(r, handle, file, status);
}

tn_status tn_store_open_or_warn(tn_registry *r, const void *handle, tn_plugin_file *file) {
  if (file->state == TN_FILE_REFUSED) return TN_OK;
  tn_status status = tn_store_open(r, handle, file);
  if (status == TN_OK || status == TN_ENOMEM) return status;
  tn_logf(handle, TN_LOG_WARN, "a plugin was left out: %s", tn_error_text(handle));
  tn_error_clear(handle);
  return TN_OK;
}

tn_status tn_store_list_files(tn_registry *r, const void *handle) {
  for (; r->n_listed < r->files.n; r->n_listed++) {
    tn_plugin_file *file = &r->files.v[r->n_listed];
    if (!file->indexed) TN_TRY(tn_store_open_or_warn(r, handle, file));
  }
  return TN_OK;
}

/* ---- folders ------------------------------------------------------------------------------------ */

tn_status tn_store_scan(tn_registry *r, const void *handle, const char *folder, bool use_index) {
  size_t first = r->files.n;
  char *real;
  TN_TRY(tn_trusted_folder(handle, "plugin", folder, &real));
  const char *kept = tn_arena_strdup(&r->arena, real);
  tn_release(handle, real);
  if (kept == NULL || tn_vec_push(r->handle, &r->folders, kept) != TN_OK) return tn_store_no_memory(handle);
  TN_TRY(tn_folder_scan(handle, &r->arena, kept, &r->files));
  return use_index ? tn_index_read(handle, &r->arena, kept, &r->files, first) : TN_OK;
}

tn_status tn_registry_add_folder(tn_registry *r, const void *handle, const char *folder) {
  return tn_store_scan(r, handle, folder, true);
}

const char *const *tn_registry_folders(const tn_registry *r, int32_t *n) {
  *n = (int32_t)r->folders.n;
  return r->folders.v;
}

tn_status tn_store_create(const void *handle, tn_registry **registry) {
  tn_registry *r = tn_alloc(handle, sizeof(*r));
  *registry = r;
  if (r == NULL) return TN_ENOMEM;
  r->handle = handle;
  r->arena = tn_arena_new(handle);
  return TN_OK;
}

tn_status tn_registry_create(const void *handle, const char *folder, tn_registry **registry) {
  TN_TRY(tn_store_create(handle, registry));
  tn_status status = folder[0] != '\0' ? tn_registry_add_folder(*registry, handle, folder) : TN_OK;
  if (status == TN_OK) return TN_OK;
  tn_registry_destroy(*registry);
  *registry = NULL;
  return status;
}

void tn_registry_destroy(tn_registry *r) {
  if (r == NULL) return;
  tn_vec_free(r->handle, &r->entries);
  tn_vec_free(r->handle, &r->files);
  tn_vec_free(r->handle, &r->linked);
  tn_vec_free(r->handle, &r->folders);
  tn_vec_free(r->handle, &r->listings);
  tn_arena_free(&r->arena);
  tn_release(r->handle, r);
}

/* ---- loading by path ---------------------------------------------------------------------------- */

/* The file in a plugin folder with this bare name; NULL: there is no such file. */
static tn_plugin_file *registry_file_named(const tn_registry *r, const char *name) {
  for (size_t i = 0; i < r->files.n; i++) {
    const char *relative = r->files.v[i].relative, *slash = strrchr(relative, '/');
    const char *base = slash != NULL ? slash + 1 : relative;
    if (tn_text_starts(base, "tenon-")) base += strlen("tenon-");
    size_t n = strlen(name);
    if (strncmp(base, name, n) == 0 && strcmp(base + n, ".so") == 0) return &r->files.v[i];
  }
  return NULL;
}

static tn_plugin_file *registry_same_file(const tn_registry *r, const tn_plugin_file *file) {
  for (size_t i = 0; i < r->files.n; i++)
    if (r->files.v[i].device == file->device && r->files.v[i].inode == file->inode) return &r->files.v[i];
  return NULL;
}

/* A refused file may be repaired and named again, so the refusal is not kept. */
static tn_status registry_load_path(tn_registry *r, const void *handle, const char *real) {
  tn_plugin_file file = {.path = tn_arena_strdup(&r->arena, real), .relative = ""};
  if (file.path == NULL) return tn_store_no_memory(handle);
  TN_TRY(tn_plugin_file_stat(handle, &file));
  tn_plugin_file *known = registry_same_file(r, &file);
  if (known != NULL && known->state != TN_FILE_REFUSED) return tn_store_open(r, handle, known);
  if (tn_vec_reserve(r->handle, &r->files, r->files.n + 1) != TN_OK) return tn_store_no_memory(handle);
  TN_TRY(registry_open_checked(r, handle, &file, real));
  r->files.v[r->files.n++] = file;
  return TN_OK;
}

static tn_status registry_load_named(tn_registry *r, const void *handle, const char *name) {
  tn_plugin_file *file = registry_file_named(r, name);
  if (file != NULL) return tn_store_open(r, handle, file);
  return tn_failf(handle, TN_EUNAVAILABLE,
                  "no plugin folder holds tenon-%s.so; a plugin elsewhere is named by its path, \"./%s.so\"",
                  name, name);
}

bool tn_registry_is_path(const char *word) { return strchr(word, '/') != NULL || tn_text_ends(word, ".so"); }

bool tn_registry_has_loaded(tn_registry *r, const void *handle, const char *path) {
  tn_plugin_file file = {.path = path, .relative = ""};
  if (tn_plugin_file_stat(handle, &file) != TN_OK) {
    tn_error_clear(handle);
    return false;
  }
  const tn_plugin_file *known = registry_same_file(r, &file);
  return known != NULL && known->state != TN_FILE_REFUSED;
}

bool tn_registry_holds(const tn_registry *r, const char *name) {
  return registry_file_named(r, name) != NULL;
}

tn_status tn_registry_load(tn_registry *r, const void *handle, const char *path) {
  TN_TRY(tn_store_list_files(r, handle)); /* items of the folders come first */
  if (!tn_registry_is_path(path)) return registry_load_named(r, handle, path);
  char *real;
  TN_TRY(tn_trusted_file(handle, "plugin", path, &real));
  tn_status status = registry_load_path(r, handle, real);
  tn_release(handle, real);
  return status;
}
