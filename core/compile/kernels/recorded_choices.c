/* core/compile/kernels/recorded_choices.c: look-up of recorded choices. */
#include "core/compile/kernels/recorded_choices.h"

#include <stdlib.h>

static int compare_choice_keys(const void *left, const void *right) {
  const tn_recorded_choice *a = left, *b = right;
  return a->key < b->key ? -1 : a->key > b->key;
}

void tn_recorded_sort(tn_recorded_choices *replay) {
  if (replay->n_choices > 0)
    qsort(replay->choices, (size_t)replay->n_choices, sizeof *replay->choices, compare_choice_keys);
}

bool tn_recorded_has_kernel(const tn_recorded_choices *replay, const tn_entry *entry) {
  for (int32_t i = 0; i < replay->n_kernels; i++)
    if (tn_text_equal(replay->kernels[i].kernel, entry->item->name) &&
        tn_text_equal(replay->kernels[i].plugin, entry->plugin))
      return true;
  return false;
}

const tn_recorded_choice *tn_recorded_find(const tn_recorded_choices *replay, const char *program,
                                           uint64_t key) {
  const tn_recorded_choice wanted = {.key = key}, *end = replay->choices + replay->n_choices, *found;
  if (replay->n_choices == 0) return NULL;
  found = bsearch(&wanted, replay->choices, (size_t)replay->n_choices, sizeof wanted, compare_choice_keys);
  if (found == NULL) return NULL;
  while (found > replay->choices && found[-1].key == key) found--;
  for (; found < end && found->key == key; found++)
    if (found->program == NULL || tn_text_equal(found->program, program)) return found;
  return NULL;
}

const char *tn_recorded_layout(const tn_recorded_choices *replay, const char *path) {
  for (int32_t i = 0; i < replay->n_states; i++)
    if (tn_text_equal(replay->states[i].path, path)) return replay->states[i].layout;
  return NULL;
}

static uint64_t hash_value_type(uint64_t hash, const tn_type *type) {
  hash = tn_hash_bytes(hash, &type->dtype, sizeof type->dtype);
  return tn_hash_bytes(hash, type->dims, (size_t)type->rank * sizeof *type->dims);
}

uint64_t tn_recorded_key(const tn_graph *graph, const uint32_t *nodes, int32_t n) {
  uint64_t hash = TN_HASH_START;
  for (int32_t i = 0; i < n; i++) {
    const tn_gnode *node = &graph->nodes.v[nodes[i]];
    hash = tn_hash_text(hash, node->op->item.name);
    hash = tn_hash_text(hash, node->layer != NULL ? node->layer : "");
    for (int32_t k = 0; k < node->n_in; k++)
      if (node->in[k] != 0) hash = hash_value_type(hash, tn_graph_type(graph, node->in[k]));
    for (int32_t k = 0; k < node->n_out; k++)
      hash = hash_value_type(hash, tn_graph_type(graph, node->first_out + (tn_val)k));
  }
  return hash != 0 ? hash : 1;
}
