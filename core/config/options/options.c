/* core/config/options/options.c: creating, completing, printing and comparing the options struct of an
 * item. */
#include "core/config/options/options.h"

#include <string.h>

#include "core/config/options/option_value.h"

const tn_option *tn_options_at(const tn_item *item, int64_t position) {
  if (item->options == NULL || position < 0) return NULL;
  size_t stride = item->option_stride > 0 ? item->option_stride : sizeof(tn_option);
  const char *at = (const char *)item->options;
  for (;; at += stride, position--) {
    const tn_option *option = (const tn_option *)(const void *)at;
    if (option->name == NULL) return NULL;
    if (position == 0) return option;
  }
}

static int64_t options_count(const tn_item *item) {
  int64_t n = 0;
  while (tn_options_at(item, n) != NULL) n++;
  return n;
}

int64_t tn_options_position(const tn_item *item, const char *name) {
  for (int64_t i = 0;; i++) {
    const tn_option *option = tn_options_at(item, i);
    if (option == NULL) return -1;
    if (strcmp(option->name, name) == 0) return i;
  }
}

const tn_option *tn_options_find(const tn_item *item, const char *name) {
  return tn_options_at(item, tn_options_position(item, name));
}

/* The first option before `position` whose field overlaps this option's field, or NULL. Overlapping fields
 * would let a value be read as another type, for example as an address. */
static const tn_option *options_find_overlap(const tn_item *item, int64_t position) {
  const tn_option *option = tn_options_at(item, position);
  for (int64_t i = 0; i < position; i++) {
    const tn_option *other = tn_options_at(item, i);
    if ((uint64_t)option->offset < (uint64_t)other->offset + other->bytes &&
        (uint64_t)other->offset < (uint64_t)option->offset + option->bytes)
      return other;
  }
  return NULL;
}

/* Checks one entry of an item's option table, since a plugin may be wrong. */
static tn_status options_check_entry(const void *handle, const tn_item *item, int64_t position) {
  const tn_option *option = tn_options_at(item, position);
  const tn_option_type *type = tn_option_type_of(option);
  if (type->field == TN_FIELD_NONE)
    return tn_failf(handle, TN_EABI, "item '%s', option '%s': the type %u is unknown, expected %d to %d",
                    item->name, option->name, option->type, TN_OPT_FLAG, TN_OPT_SCHEDULES);
  if (option->bytes != type->bytes)
    return tn_failf(handle, TN_EABI, "item '%s', option '%s': the field has %u bytes, expected %u for %s",
                    item->name, option->name, option->bytes, type->bytes, type->expected);
  if ((uint64_t)option->offset + option->bytes > item->options_bytes)
    return tn_failf(handle, TN_EABI,
                    "item '%s', option '%s': the field at byte %u ends outside the struct of %u bytes",
                    item->name, option->name, option->offset, item->options_bytes);
  if (!tn_option_range_valid(option))
    return tn_failf(handle, TN_EABI, "item '%s', option '%s': the range '%s' does not suit %s", item->name,
                    option->name, option->range != NULL ? option->range : "", type->expected);
  if (tn_options_position(item, option->name) != position)
    return tn_failf(handle, TN_EABI, "item '%s': the option '%s' is listed twice", item->name, option->name);
  const tn_option *other = options_find_overlap(item, position);
  if (other != NULL)
    return tn_failf(handle, TN_EABI,
                    "item '%s': the fields of the options '%s' (at byte %u) and '%s' (at byte %u) overlap",
                    item->name, other->name, other->offset, option->name, option->offset);
  return TN_OK;
}

static tn_status options_fill_default(const void *handle, tn_options *options, const tn_option *option) {
  tn_option_value value = {0};
  if (option->default_text == NULL) return TN_OK;
  tn_status status =
      tn_option_parse(handle, options->arena, options->folder, option, option->default_text, &value);
  if (status == TN_ENOMEM || status == TN_EIO) return status;
  if (status != TN_OK)
    return tn_failf(handle, TN_EABI, "item '%s', default of %s", options->item->name, tn_error_text(handle));
  tn_option_store(option, options->data, &value);
  return TN_OK;
}

tn_status tn_options_start(const void *handle, tn_arena *arena, const tn_item *item, tn_options *options) {
  int64_t n = options_count(item);
  *options = (tn_options){.item = item, .arena = arena};
  options->data = tn_arena_alloc(arena, item->options_bytes);
  options->given = tn_arena_alloc(arena, (size_t)n);
  if (options->data == NULL || options->given == NULL) return TN_ENOMEM;
  for (int64_t i = 0; i < n; i++) {
    TN_TRY(options_check_entry(handle, item, i));
    TN_TRY(options_fill_default(handle, options, tn_options_at(item, i)));
  }
  return TN_OK;
}

tn_status tn_options_finish(const void *handle, tn_options *options) {
  for (int64_t i = 0;; i++) {
    const tn_option *option = tn_options_at(options->item, i);
    if (option == NULL) return TN_OK;
    if (option->default_text != NULL || options->given[i]) continue;
    return tn_failf(handle, TN_EINVAL, "%s: %s needs this option, expected %s (%s)", option->name,
                    options->item->name, tn_option_type_of(option)->expected,
                    option->doc != NULL ? option->doc : "");
  }
}

static void options_print_changed(tn_text *text, const tn_item *item, const void *data,
                                  const tn_options *defaults) {
  const char *comma = "";
  for (int64_t i = 0;; i++) {
    const tn_option *option = tn_options_at(item, i);
    if (option == NULL) return;
    if (option->default_text != NULL && tn_option_same(option, data, defaults->data)) continue;
    tn_text_addf(text, "%s%s=", comma, option->name);
    tn_options_print_one(text, option, data);
    comma = ", ";
  }
}

void tn_options_print(tn_text *text, const tn_item *item, const void *data) {
  tn_arena arena = tn_arena_new(text->handle);
  tn_options defaults;
  if (tn_options_start(text->handle, &arena, item, &defaults) == TN_OK)
    options_print_changed(text, item, data, &defaults);
  else
    text->failed = true;
  tn_arena_free(&arena);
}

bool tn_options_equal(const tn_item *item, const void *a, const void *b) {
  for (int64_t i = 0;; i++) {
    const tn_option *option = tn_options_at(item, i);
    if (option == NULL) return true;
    if (!tn_option_same(option, a, b)) return false;
  }
}
