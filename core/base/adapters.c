/* core/base/adapters.c: see adapters.h. */
#include "core/base/adapters.h"

#include <string.h>

const tn_adapter *tn_adapters_find(const tn_adapters *adapters, const char *layer) {
  for (int32_t i = 0; i < adapters->n; i++)
    if (tn_words_match(&adapters->v[i].match, layer)) return &adapters->v[i];
  return NULL;
}

/* The length in front of ".PART" at the end of a name; 0: it ends otherwise. */
static size_t adapter_in_front(const char *name, const char *part) {
  size_t n = strlen(name), k = strlen(part);
  return n > k + 1 && name[n - k - 1] == '.' && strcmp(name + n - k, part) == 0 ? n - k - 1 : 0;
}

size_t tn_adapter_layer(const char *name) {
  size_t n = adapter_in_front(name, TN_ADAPTER_DOWN);
  return n > 0 ? n : adapter_in_front(name, TN_ADAPTER_EMBEDDING_DOWN);
}

bool tn_adapter_owns(const char *name) {
  return tn_adapter_layer(name) > 0 || adapter_in_front(name, TN_ADAPTER_UP) > 0 ||
         adapter_in_front(name, TN_ADAPTER_EMBEDDING_UP) > 0;
}
