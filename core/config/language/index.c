/* core/config/language/index.c: the entries between the brackets behind a value, x[:, 1:-1], with Python's
 * meaning: negative numbers count from the end, and ranges are cut at both ends. */
#include <string.h>

#include "core/config/language/syntax.h"

int64_t tn_index_position(const tn_index *index, int64_t size) {
  int64_t position = index->start < 0 ? index->start + size : index->start;
  return position >= 0 && position < size ? position : -1;
}

/* A bound of a range, counted from the start and cut to 0 .. size. */
static int64_t index_bound(int64_t bound, int64_t size) {
  if (bound < 0) bound += size;
  return bound < 0 ? 0 : bound > size ? size : bound;
}

bool tn_index_range(const tn_index *index, int64_t size, int64_t *start, int64_t *stop) {
  *start = index->has_start ? index_bound(index->start, size) : 0;
  *stop = index->has_stop ? index_bound(index->stop, size) : size;
  return *start < *stop;
}

static void index_print_range(tn_text *text, const tn_index *index) {
  if (index->has_start) tn_text_addf(text, "%lld", (long long)index->start);
  tn_text_add(text, ":");
  if (index->has_stop) tn_text_addf(text, "%lld", (long long)index->stop);
  if (index->step != 1) tn_text_addf(text, ":%lld", (long long)index->step);
}

const char *tn_index_text(tn_arena *arena, const tn_index *index, int32_t n) {
  tn_text text = tn_text_new(arena->handle);
  for (int32_t i = 0; i < n; i++) {
    tn_text_add(&text, i == 0 ? "[" : ", ");
    switch (index[i].kind) {
    case TN_INDEX_ONE: tn_text_addf(&text, "%lld", (long long)index[i].start); break;
    case TN_INDEX_RANGE: index_print_range(&text, &index[i]); break;
    case TN_INDEX_REST: tn_text_add(&text, "..."); break;
    default: tn_text_add(&text, "None"); break;
    }
  }
  tn_text_add(&text, "]");
  const char *kept = text.failed ? NULL : tn_arena_strdup(arena, text.v);
  tn_text_free(&text);
  return kept != NULL ? kept : "[]";
}

static tn_status index_list_range(tn_arena *arena, const tn_value *list, const tn_index *index,
                                  tn_value *value) {
  int64_t start, stop;
  *value = (tn_value){.kind = TN_VALUE_LIST, .bytes = list->bytes};
  if (!tn_index_range(index, list->n_items, &start, &stop)) return TN_OK;
  value->items = tn_arena_alloc(arena, (size_t)(stop - start) * sizeof *value->items);
  if (value->items == NULL) return TN_ENOMEM;
  for (int64_t i = start; i < stop; i += index->step) value->items[value->n_items++] = list->items[i];
  return TN_OK;
}

tn_status tn_index_list(const void *handle, tn_arena *arena, const tn_value *list, const tn_index *index,
                        int32_t n, tn_value *value) {
  const char *text = tn_index_text(arena, index, n);
  if (n != 1 || index->kind == TN_INDEX_REST || index->kind == TN_INDEX_NEW)
    return tn_failf(handle, TN_EINVAL, "%s of a list, expected one number or range, as in dims(x)[1:]", text);
  if (index->kind == TN_INDEX_RANGE) return index_list_range(arena, list, index, value);
  int64_t position = tn_index_position(index, list->n_items);
  if (list->n_items == 0) return tn_failf(handle, TN_EINVAL, "%s of an empty list", text);
  if (position < 0)
    return tn_failf(handle, TN_EINVAL, "%s of a list of %d, expected a number from %d to %d", text,
                    list->n_items, -list->n_items, list->n_items - 1);
  *value = list->items[position];
  return TN_OK;
}
