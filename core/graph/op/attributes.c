/* core/graph/op/attributes.c: copies and hashes attribute structs field by field, by their option tables. */
#include "core/graph/op/attributes.h"

#include <string.h>

#include "core/base/text/text.h"
#include "core/config/options/options.h"

static bool attributes_holds_text(const tn_option *o) {
  return o->type == TN_OPT_TEXT || o->type == TN_OPT_PATH || o->type == TN_OPT_INIT || o->type == TN_OPT_CODE;
}

/* Replaces the target of a pointer field by a copy; false if memory ran out. Fields are read by memcpy, since
 * a plugin's struct may be packed. */
static bool attributes_copy_field(tn_arena *arena, const tn_option *o, char *field) {
  if (attributes_holds_text(o)) {
    const char *text;
    memcpy(&text, field, sizeof text);
    const char *copy = text != NULL ? tn_arena_strdup(arena, text) : NULL;
    memcpy(field, &copy, sizeof copy);
    return copy != NULL || text == NULL;
  }
  if (o->type == TN_OPT_INTS) {
    tn_ints list;
    memcpy(&list, field, sizeof list);
    list.v = tn_arena_copy(arena, list.v, (size_t)list.n * sizeof *list.v);
    memcpy(field, &list, sizeof list);
    return list.v != NULL;
  }
  if (o->type == TN_OPT_FLOATS) {
    tn_floats list;
    memcpy(&list, field, sizeof list);
    list.v = tn_arena_copy(arena, list.v, (size_t)list.n * sizeof *list.v);
    memcpy(field, &list, sizeof list);
    return list.v != NULL;
  }
  return true;
}

void *tn_attributes_copy(tn_arena *arena, const tn_item *item, const void *attributes) {
  char *copy = tn_arena_alloc(arena, item->options_bytes > 0 ? item->options_bytes : 1);
  if (copy == NULL) return NULL;
  memcpy(copy, attributes, item->options_bytes);
  const tn_option *o;
  for (int64_t i = 0; (o = tn_options_at(item, i)) != NULL; i++)
    if (!attributes_copy_field(arena, o, copy + o->offset)) return NULL;
  return copy;
}

static uint64_t attributes_hash_field(uint64_t hash, const tn_option *o, const char *field) {
  if (attributes_holds_text(o)) {
    const char *text;
    memcpy(&text, field, sizeof text);
    return tn_hash_text(hash, text != NULL ? text : "");
  }
  if (o->type == TN_OPT_INTS) {
    tn_ints list;
    memcpy(&list, field, sizeof list);
    return tn_hash_bytes(hash, list.v, (size_t)list.n * sizeof *list.v);
  }
  if (o->type == TN_OPT_FLOATS) {
    tn_floats list;
    memcpy(&list, field, sizeof list);
    return tn_hash_bytes(hash, list.v, (size_t)list.n * sizeof *list.v);
  }
  return tn_hash_bytes(hash, field, o->bytes);
}

uint64_t tn_attributes_hash(uint64_t hash, const tn_item *item, const void *attributes) {
  const tn_option *o;
  for (int64_t i = 0; (o = tn_options_at(item, i)) != NULL; i++)
    hash = attributes_hash_field(hash, o, (const char *)attributes + o->offset);
  return hash;
}
