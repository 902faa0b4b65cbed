/* core/base/adapters.c: see adapters.h. */
#include "core/base/adapters.h"

#include <math.h>
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

size_t tn_adapter_magnitude_layer(const char *name) { return adapter_in_front(name, TN_ADAPTER_MAGNITUDE); }

bool tn_adapter_owns(const char *name) {
  return tn_adapter_layer(name) > 0 || tn_adapter_magnitude_layer(name) > 0 ||
         adapter_in_front(name, TN_ADAPTER_UP) > 0 || adapter_in_front(name, TN_ADAPTER_EMBEDDING_UP) > 0;
}

void tn_adapter_norms(const float *weight, int64_t rows, int64_t columns, bool embedding, float *norms) {
  int64_t units = embedding ? columns : rows, elements = embedding ? rows : columns;
  int64_t step = embedding ? columns : 1, next = embedding ? 1 : columns;
  for (int64_t u = 0; u < units; u++) {
    double sum = 0;
    for (int64_t i = 0; i < elements; i++) {
      double element = (double)weight[u * next + i * step];
      sum += element * element;
    }
    norms[u] = (float)sqrt(sum);
  }
}
