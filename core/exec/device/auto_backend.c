/* core/exec/device/auto_backend.c: the order of backends by their own preference. */
#include "core/exec/device/auto_backend.h"

#include <stdlib.h>
#include <string.h>

#include "tenon/plugin/backend.h"

static int32_t auto_preference(const tn_entry *entry) {
  return ((const tn_backend *)entry->item)->preference;
}

static int auto_compare(const void *left, const void *right) {
  const tn_entry *a = left, *b = right;
  int32_t first = auto_preference(a), second = auto_preference(b);
  if (first != second) return first > second ? -1 : 1;
  return strcmp(a->item->name, b->item->name);
}

/* A sorted copy of all backends. */
static tn_status auto_list(tn_env *env, tn_registry *registry, tn_arena *arena, tn_entry **entries,
                           int32_t *n) {
  const tn_entry *all = NULL;
  TN_TRY(tn_registry_list(registry, env, TN_BACKEND, &all, n));
  *entries = tn_arena_copy(arena, all, (size_t)*n * sizeof **entries);
  if (*entries == NULL) return TN_ENOMEM;
  if (*n > 1) qsort(*entries, (size_t)*n, sizeof **entries, auto_compare);
  return TN_OK;
}

static void auto_add_name(tn_words *words, const char *name) {
  if (!tn_words_contain(words, name)) words->v[words->n++] = name;
}

tn_status tn_backend_names_read(tn_env *env, tn_registry *registry, tn_arena *arena, const char *use,
                                tn_backend_names *names) {
  tn_words given;
  tn_entry *entries = NULL;
  int32_t n = 0;
  TN_TRY(tn_words_split(arena, use, &given));
  *names = (tn_backend_names){given, tn_words_contain(&given, "auto")};
  if (!names->automatic) return TN_OK;
  TN_TRY(auto_list(env, registry, arena, &entries, &n));
  names->words = (tn_words){tn_arena_alloc(arena, (size_t)(given.n + n) * sizeof *given.v), 0};
  if (names->words.v == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < given.n; i++) {
    bool is_auto = tn_text_equal(given.v[i], "auto");
    if (!is_auto) auto_add_name(&names->words, given.v[i]);
    for (int32_t k = 0; is_auto && k < n; k++)
      if (auto_preference(&entries[k]) > 0) auto_add_name(&names->words, entries[k].item->name);
  }
  if (names->words.n > 0) return TN_OK;
  return tn_failf(env, TN_EUNAVAILABLE,
                  "auto finds no backend; `tenon doctor` lists those that are installed, and [backend] use "
                  "names one");
}
