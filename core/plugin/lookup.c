/* core/plugin/lookup.c: lookups in a registry: one item, all items of a kind, the text of the index. */
#include <stdlib.h>
#include <string.h>

#include "core/base/file/file.h"
#include "core/base/text/text.h"
#include "core/plugin/habits.h"
#include "core/plugin/kinds.h"
#include "core/plugin/store.h"

/* Entries of one plugin are neighbours. */
const tn_entry *tn_registry_plugin(const tn_registry *r, int32_t index) {
  for (size_t i = 0; i < r->entries.n; i++) {
    bool first = i == 0 || strcmp(r->entries.v[i]->plugin, r->entries.v[i - 1]->plugin) != 0;
    if (first && index-- == 0) return r->entries.v[i];
  }
  return NULL;
}

bool tn_registry_file_at(const tn_registry *r, int32_t index, tn_registry_file *file) {
  if ((size_t)index >= r->files.n) return false;
  const tn_plugin_file *f = &r->files.v[index];
  bool open = f->state == TN_FILE_OPEN && f->n_entries > 0;
  *file = (tn_registry_file){.path = f->path,
                             .entry = open ? r->entries.v[f->first_entry] : NULL,
                             .refusal = f->state == TN_FILE_REFUSED ? f->refusal : NULL};
  return true;
}

/* ---- finding ------------------------------------------------------------------------------------ */

typedef TN_VEC(const char *) name_list;

/* The names of a kind, known or indexed, each once. */
static tn_status lookup_add_name(const tn_registry *r, name_list *names, const char *name) {
  for (size_t i = 0; i < names->n; i++)
    if (strcmp(names->v[i], name) == 0) return TN_OK;
  return tn_vec_push(r->handle, names, name);
}

static int lookup_by_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static tn_status lookup_names(const tn_registry *r, uint32_t kind, name_list *names) {
  for (size_t i = 0; i < r->entries.n; i++)
    if (r->entries.v[i]->item->kind == kind) TN_TRY(lookup_add_name(r, names, r->entries.v[i]->item->name));
  for (size_t i = 0; i < r->files.n; i++) {
    const tn_plugin_file *file = &r->files.v[i];
    for (int32_t k = 0; file->state == TN_FILE_CLOSED && k < file->n_items; k++)
      if (file->items[k].kind == kind) TN_TRY(lookup_add_name(r, names, file->items[k].name));
  }
  if (names->n > 1) qsort(names->v, names->n, sizeof(*names->v), lookup_by_text);
  return TN_OK;
}

/* "; write linear(10)" for a name of another framework. */
static bool lookup_suggest_habit(const tn_registry *r, tn_text *text, uint32_t kind, const char *name,
                                 const name_list *names) {
  tn_text advice = tn_text_new(r->handle);
  bool known = names->n > 0 && tn_habits_add(r, tn_kind_name(kind), name, names->v, names->n, &advice);
  if (known && !advice.failed) tn_text_addf(text, "; write %s", advice.v);
  tn_text_free(&advice);
  return known;
}

/* "; did you mean ...", or the whole lookup_list where it is short. */
static void lookup_suggest(const tn_registry *r, tn_text *text, uint32_t kind, const char *name,
                           const name_list *names, const name_list *candidates) {
  if (lookup_suggest_habit(r, text, kind, name, candidates)) return;
  const char *nearest = tn_text_nearest(name, candidates->v, candidates->n);
  if (nearest != NULL) {
    tn_text_addf(text, "; did you mean \"%s\"?", nearest);
    return;
  }
  if (names->n > 12)
    tn_text_addf(text, "; `tenon inspect` lists the %zu that there are, and --plugin FILE loads others",
                 names->n);
  if (names->n == 0 || names->n > 12) return;
  tn_text_add(text, "; there is");
  for (size_t i = 0; i < names->n; i++) tn_text_addf(text, "%s%s", i > 0 ? ", " : " ", names->v[i]);
}

static void lookup_add_searched(const tn_registry *r, tn_text *text) {
  if (r->folders.n == 0) tn_text_add(text, "; no plugin folder was searched");
  for (size_t i = 0; i < r->folders.n; i++)
    tn_text_addf(text, "%s%s", i > 0 ? ", " : "; plugins were searched in ", r->folders.v[i]);
}

static void lookup_add_refused(const tn_registry *r, tn_text *text) {
  const char *first = NULL;
  size_t n = 0;
  for (size_t i = 0; i < r->files.n; i++) {
    if (r->files.v[i].state != TN_FILE_REFUSED) continue;
    if (n++ == 0) first = r->files.v[i].refusal;
  }
  if (n == 1) tn_text_addf(text, "; a plugin was refused: %s", first);
  if (n > 1) tn_text_addf(text, "; %zu plugins were refused, the first one: %s", n, first);
}

/* The names that may be meant: an op can be a line of a model, as a layer can. */
static tn_status lookup_candidates(const tn_registry *r, uint32_t kind, const char *name,
                                   name_list *candidates) {
  TN_TRY(lookup_names(r, kind, candidates));
  bool op = kind == TN_LAYER && tn_store_entry(r, TN_OP, name, NULL) == NULL;
  return op ? lookup_names(r, TN_OP, candidates) : TN_OK;
}

static tn_status lookup_not_found(const tn_registry *r, const void *handle, uint32_t kind, const char *name) {
  name_list names = {0}, candidates = {0};
  tn_text text = tn_text_new(r->handle);
  tn_status status = lookup_names(r, kind, &names);
  if (status == TN_OK) status = lookup_candidates(r, kind, name, &candidates);
  tn_text_addf(&text, "no %s is called \"%s\"", tn_kind_name(kind), name);
  lookup_suggest(r, &text, kind, name, &names, &candidates);
  if (names.n == 0) lookup_add_searched(r, &text);
  lookup_add_refused(r, &text);
  bool complete = status == TN_OK && !text.failed;
  if (complete) tn_failf(handle, TN_EUNAVAILABLE, "%s", text.v);
  tn_text_free(&text);
  tn_vec_free(r->handle, &names);
  tn_vec_free(r->handle, &candidates);
  return complete ? TN_EUNAVAILABLE : tn_store_no_memory(handle);
}

tn_status tn_registry_find(tn_registry *r, const void *handle, uint32_t kind, const char *name,
                           const tn_entry **entry) {
  *entry = NULL;
  TN_TRY(tn_store_list_files(r, handle));
  *entry = tn_store_entry(r, kind, name, NULL);
  tn_plugin_file *file = *entry == NULL ? tn_store_file(r, kind, name, NULL) : NULL;
  if (file != NULL) {
    TN_TRY(tn_store_open(r, handle, file));
    *entry = tn_store_entry(r, kind, name, NULL);
  }
  return *entry != NULL ? TN_OK : lookup_not_found(r, handle, kind, name);
}

bool tn_registry_has(tn_registry *r, uint32_t kind, const char *name) {
  if (tn_store_list_files(r, r->handle) != TN_OK) return false;
  return tn_store_entry(r, kind, name, NULL) != NULL || tn_store_file(r, kind, name, NULL) != NULL;
}

/* ---- listing ------------------------------------------------------------------------------------ */

static int lookup_by_name(const void *a, const void *b) {
  tn_index_item x = tn_store_row(((const tn_entry *)a)->item), y = tn_store_row(((const tn_entry *)b)->item);
  int order = strcmp(x.name, y.name);
  return order != 0 ? order : strcmp(x.family, y.family);
}

static tn_status lookup_open_all(tn_registry *r, const void *handle, uint32_t kind, const char *family) {
  TN_TRY(tn_store_list_files(r, handle));
  for (size_t i = 0; i < r->files.n; i++)
    if (kind == TN_EVERY_KIND || tn_store_file_has(&r->files.v[i], kind, NULL, family))
      TN_TRY(tn_store_open_or_warn(r, handle, &r->files.v[i]));
  return TN_OK;
}

static listing *lookup_find_listing(const tn_registry *r, uint32_t kind, const char *family) {
  for (size_t i = 0; i < r->listings.n; i++) {
    listing *l = &r->listings.v[i];
    if (l->kind == kind && tn_text_equal(l->family, family)) return l;
  }
  return NULL;
}

/* Makes a new array after items were added; arrays that were returned before stay valid. */
static tn_status lookup_fill_listing(tn_registry *r, const void *handle, listing *l) {
  l->entries = tn_arena_alloc(&r->arena, tn_size_mul(r->entries.n, sizeof(tn_entry)));
  if (l->entries == NULL) return tn_store_no_memory(handle);
  l->n = 0;
  for (size_t i = 0; i < r->entries.n; i++) {
    tn_index_item row = tn_store_row(r->entries.v[i]->item);
    if (tn_store_fits(&row, l->kind, NULL, l->family)) l->entries[l->n++] = *r->entries.v[i];
  }
  if (l->n > 1) qsort(l->entries, (size_t)l->n, sizeof(*l->entries), lookup_by_name);
  l->n_known = r->entries.n;
  return TN_OK;
}

static tn_status lookup_listing(tn_registry *r, const void *handle, uint32_t kind, const char *family,
                                listing **out) {
  *out = lookup_find_listing(r, kind, family);
  if (*out != NULL) return TN_OK;
  listing fresh = {.kind = kind, .family = NULL, .n_known = SIZE_MAX};
  if (family != NULL && (fresh.family = tn_arena_strdup(&r->arena, family)) == NULL)
    return tn_store_no_memory(handle);
  if (tn_vec_push(r->handle, &r->listings, fresh) != TN_OK) return tn_store_no_memory(handle);
  *out = &r->listings.v[r->listings.n - 1];
  return TN_OK;
}

static tn_status lookup_list(tn_registry *r, const void *handle, uint32_t kind, const char *family,
                             const tn_entry **entries, int32_t *n) {
  listing *l;
  *entries = NULL;
  *n = 0;
  TN_TRY(lookup_open_all(r, handle, kind, family));
  TN_TRY(lookup_listing(r, handle, kind, family, &l));
  if (l->n_known != r->entries.n) TN_TRY(lookup_fill_listing(r, handle, l));
  *entries = l->entries;
  *n = l->n;
  return TN_OK;
}

tn_status tn_registry_list(tn_registry *r, const void *handle, uint32_t kind, const tn_entry **entries,
                           int32_t *n) {
  return lookup_list(r, handle, kind, NULL, entries, n);
}

tn_status tn_registry_kernels(tn_registry *r, const void *handle, const char *family,
                              const tn_entry **entries, int32_t *n) {
  return lookup_list(r, handle, TN_KERNEL, family, entries, n);
}

/* ---- the index ---------------------------------------------------------------------------------- */

static tn_status lookup_print_file(const tn_registry *r, const tn_plugin_file *file, tn_text *text) {
  tn_index_item *items = tn_alloc(r->handle, tn_size_mul(file->n_entries, sizeof(tn_index_item)));
  if (items == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < file->n_entries; i++)
    items[i] = tn_store_row(r->entries.v[file->first_entry + i]->item);
  tn_index_print_file(text, file, items, (int32_t)file->n_entries);
  tn_release(r->handle, items);
  return TN_OK;
}

static tn_status lookup_print_index(tn_registry *r, const void *handle, const char *folder, tn_text *text) {
  TN_TRY(tn_store_scan(r, handle, folder, false));
  TN_TRY(lookup_open_all(r, handle, TN_EVERY_KIND, NULL));
  tn_index_print_head(text);
  for (size_t i = 0; i < r->files.n; i++)
    if (r->files.v[i].state == TN_FILE_OPEN) TN_TRY(lookup_print_file(r, &r->files.v[i], text));
  return text->failed ? tn_store_no_memory(handle) : TN_OK;
}

tn_status tn_registry_write_index(const void *handle, const char *folder) {
  tn_registry *r;
  TN_TRY(tn_store_create(handle, &r));
  tn_text text = tn_text_new(handle);
  char *path = tn_path_join(handle, folder, TN_INDEX_NAME);
  tn_status status = path != NULL ? lookup_print_index(r, handle, folder, &text) : TN_ENOMEM;
  if (status == TN_OK) status = tn_file_write_atomic(handle, path, text.v, text.n);
  tn_release(handle, path);
  tn_text_free(&text);
  tn_registry_destroy(r);
  return status;
}
