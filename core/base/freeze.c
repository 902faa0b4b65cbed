/* core/base/freeze.c: see freeze.h. */
#include "core/base/freeze.h"

tn_status tn_freeze_add(tn_arena *arena, tn_freeze *freeze, const tn_words *patterns, int64_t until) {
  size_t n = (size_t)freeze->n, most = n + (size_t)patterns->n + 1;
  tn_freeze all = {.patterns = tn_arena_alloc(arena, tn_size_mul(most, sizeof *all.patterns)),
                   .until = tn_arena_alloc(arena, tn_size_mul(most, sizeof *all.until)),
                   .n = freeze->n + patterns->n};
  if (all.patterns == NULL || all.until == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < (size_t)all.n; i++) {
    all.patterns[i] = i < n ? freeze->patterns[i] : patterns->v[i - n];
    all.until[i] = i < n ? freeze->until[i] : until;
  }
  *freeze = all;
  return TN_OK;
}

int64_t tn_frozen_until(const tn_freeze *freeze, const char *name) {
  for (int32_t i = 0; i < freeze->n; i++)
    if (tn_text_glob(freeze->patterns[i], name)) return freeze->until[i];
  return 0;
}
